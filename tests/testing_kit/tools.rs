//! Recording tools do what they are told and say what happened.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;
use youyou_agent::testing::{CallLog, Gate, RecordingTool};
use youyou_agent::{ToolContext, ToolError, ToolHandler as _, ToolInput, ToolOutput};

fn input(call_id: &str) -> ToolInput {
    ToolInput::new(call_id, "t", json!({ "n": 1 }))
}

async fn run(tool: &RecordingTool) -> Result<ToolOutput, ToolError> {
    tool.call(input("c1"), ToolContext::detached()).await
}

#[tokio::test]
async fn a_tool_answers_as_it_is_told() {
    let tool = || RecordingTool::read_only("t");
    assert_eq!(run(&tool()).await.unwrap().content, "ok");
    assert_eq!(run(&tool().echo()).await.unwrap().content, r#"{"n":1}"#);
    assert_eq!(run(&tool().big(1_000)).await.unwrap().content.len(), 1_000);
    assert_eq!(
        run(&tool().failing("no such file"))
            .await
            .unwrap_err()
            .message,
        "no such file"
    );
    let output = ToolOutput::error("half").with_metadata(json!(1));
    assert_eq!(run(&tool().answering(output.clone())).await, Ok(output));
    let definition = RecordingTool::mutating("w")
        .parameters(json!({ "type": "object", "x": 1 }))
        .definition();
    assert!(definition.mutating && definition.parameters.get("x").is_some());
}

#[tokio::test]
async fn the_log_tells_the_order_of_several_tools() {
    let log = CallLog::new();
    let door = Gate::closed();
    let slow = RecordingTool::read_only("slow")
        .logged_in(&log)
        .gated(&door);
    let quick = RecordingTool::read_only("quick").logged_in(&log);
    let running =
        tokio::spawn(async move { slow.call(input("c1"), ToolContext::detached()).await });
    log.started(1).await;
    quick
        .call(input("c2"), ToolContext::detached())
        .await
        .unwrap();
    door.open();
    running.await.unwrap().unwrap();
    log.ended(2).await;
    assert_eq!(
        log.order(),
        ["c1 started", "c2 started", "c2 ended", "c1 ended"]
    );
    assert_eq!(log.inputs(), [input("c1"), input("c2")]);
}

#[tokio::test]
async fn a_hanging_tool_is_seen_to_be_dropped() {
    let tool = RecordingTool::read_only("hang").hanging();
    assert_eq!(run(&tool).now_or_never(), None);
    assert_eq!(tool.log().order(), ["c1 started", "c1 stopped"]);
    tool.log().stopped(1).await;
}

#[tokio::test]
async fn panics_come_at_once_or_while_awaited_with_text_or_without() {
    let panic_of = async |tool: RecordingTool| {
        let result = std::panic::AssertUnwindSafe(async { run(&tool).await })
            .catch_unwind()
            .await;
        assert_eq!(tool.log().order(), ["c1 started", "c1 stopped"]);
        result.unwrap_err()
    };
    let tool = || RecordingTool::read_only("boom");
    let text = panic_of(tool().panicking("later")).await;
    assert_eq!(text.downcast_ref::<String>().unwrap(), "later");
    let number = panic_of(tool().panicking_without_text()).await;
    assert!(number.downcast_ref::<String>().is_none() && number.downcast_ref::<&str>().is_none());

    let at_once = tool().panicking_at_once("now");
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(at_once.call(input("c1"), ToolContext::detached()));
    }));
    assert_eq!(made.unwrap_err().downcast_ref::<String>().unwrap(), "now");
    assert_eq!(at_once.log().order(), ["c1 started", "c1 stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_takes_its_time_and_may_answer_too_late() {
    let tool = RecordingTool::read_only("slow").taking(Duration::from_millis(300));
    let begin = tokio::time::Instant::now();
    run(&tool).await.unwrap();
    assert_eq!(begin.elapsed().as_millis(), 300);

    let late = RecordingTool::read_only("late")
        .until_timed_out()
        .taking(Duration::from_secs(10));
    let context = ToolContext::detached();
    let mut call = late.call(input("c1"), context.clone());
    assert_eq!((&mut call).now_or_never(), None);
    context.timed_out.cancel();
    let cancelled = tokio::time::Instant::now();
    call.await.unwrap();
    assert_eq!(cancelled.elapsed().as_secs(), 10);
}

//! Section 12: what a model sends is bounded before it is worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use youyou_agent::testing::{RecordingTool, Step, call, done, text};
use youyou_agent::{AgentBuilder, AgentConfig, ErrorCode, ErrorOrigin};

use crate::look::{
    assert_completed, assert_failed, calls, errors, result, results, starts, warnings,
};
use crate::rig::{Rig, config, provider};
use crate::said::stored_lines;
use crate::tools_storable::{asking, survives};

#[tokio::test(start_paused = true)]
async fn arguments_beyond_their_limit_are_an_error_result_that_says_so() {
    let limit = 40;
    for (bytes, runs) in [(40, true), (41, false), (5_000, false)] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let settings = AgentConfig {
            tool_arguments_limit_bytes: limit,
            ..config()
        };
        let raw = json!({ "a": "x".repeat(bytes - 8) }).to_string();
        assert_eq!(raw.len(), bytes);
        let rig = Rig::with(asking(raw), settings, |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(log.inputs().len(), usize::from(runs));
        if !runs {
            assert_eq!(
                result(&rig.request(2), "c1"),
                format!(
                    "TOOL_EXECUTION_ERROR: the arguments have {bytes} bytes, the limit is {limit}; the tool was not run. Do it in several calls with less in each"
                )
            );
            assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), json!({}))]);
        }
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn eight_megabytes_of_arguments_are_refused_by_default() {
    // X6
    let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(4_000_000));
    let rig = Rig::with(asking(raw), config(), |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    let told = result(&rig.request(2), "c1");
    assert!(told.contains("the limit is 4194304"), "{told}");
    rig.epilogue().await;
}

fn takes_texts() -> RecordingTool {
    RecordingTool::read_only("t").parameters(json!({
        "type": "object",
        "properties": { "xs": { "type": "array", "items": { "type": "string" } } },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_million_violations_of_the_schema_are_told_by_the_first() {
    // X6
    let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(1_000_000));
    let rig = Rig::with(asking(raw), config(), |builder| builder.tool(takes_texts())).await;
    assert_completed(&rig.send("go").await, "ok");
    assert_eq!(
        result(&rig.request(2), "c1"),
        "TOOL_EXECUTION_ERROR: the arguments do not fit the schema of \"t\": /xs/0: 1 is not of type \"string\"; the tool was not run"
    );
    rig.epilogue().await;
}

#[test]
fn large_arguments_are_read_and_checked_beside_the_runtime() {
    // X6: on a runtime with one thread every other thread is one for work that blocks.
    for (numbers, beside) in [(100, false), (100_000, true)] {
        let threads = Arc::new(AtomicUsize::new(0));
        let started = Arc::clone(&threads);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_start(move || {
                started.fetch_add(1, Ordering::Relaxed);
            })
            .build()
            .unwrap();
        runtime.block_on(async {
            let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(numbers));
            let rig = Rig::with(asking(raw), config(), |builder| builder.tool(takes_texts()));
            let rig = rig.await;
            assert_completed(&rig.send("go").await, "ok");
            rig.epilogue().await;
        });
        assert_eq!(threads.load(Ordering::Relaxed) > 0, beside, "{numbers}");
    }
}

fn many_calls(count: usize) -> Vec<Step> {
    let calls = (1..=count).map(|n| call(format!("c{n}"), "t", "{}"));
    calls.chain([done()]).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_far_beyond_the_limit_are_dropped_while_they_stream() {
    // X5
    let tool = RecordingTool::read_only("t");
    let log = tool.log().clone();
    let settings = AgentConfig {
        max_tool_calls_per_turn: 3,
        ..config()
    };
    let provider = provider()
        .reply(many_calls(100_000))
        .reply([text("went on"), done()]);
    let rig = Rig::with(provider, settings, |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
    assert_eq!(errors(&events).len(), 1);
    assert_eq!(starts(&events).len(), 3);
    assert_eq!(log.inputs().len(), 3);

    assert_completed(&rig.send("go on").await, "went on");
    let told = results(&rig.request(2));
    let kept: Vec<String> = (1..=67).map(|n| format!("c{n}")).collect();
    let ids: Vec<&String> = told.iter().map(|(id, _)| id).collect();
    assert_eq!(ids, Vec::from_iter(&kept));
    let not_run = "MAX_TOOL_CALLS_EXCEEDED: [not executed] This call did not run. A turn has at most 3 tool calls.";
    for (id, content) in &told[3..66] {
        assert_eq!(content, not_run, "{id}");
    }
    assert_eq!(
        told[66].1,
        format!(
            "{not_run} 99933 more calls came after this one; they did not run either and are not kept."
        )
    );
    survives(rig).await;
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_earlier_answers_count_for_what_is_dropped() {
    // X5
    let settings = AgentConfig {
        max_tool_calls_per_turn: 3,
        ..config()
    };
    let provider = provider().reply(many_calls(2)).reply(many_calls(100));
    let rig = Rig::with(provider, settings, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_failed(&rig.send("go").await, ErrorCode::MaxToolCallsExceeded);
    let stored = stored_lines(&rig.stored());
    let results = stored.iter().filter(|line| line.starts_with("result"));
    assert_eq!(results.count(), 2 + 1 + 64);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_end_are_cut_with_their_answer() {
    // X5: calls that hold nothing at all have a size, too.
    let settings = AgentConfig {
        max_tool_calls_per_turn: 2,
        response_limit_bytes: 1_000,
        ..config()
    };
    let endless = (0..5_000).map(|_| call("", "", ""));
    let provider = provider().reply(endless);
    let rig = Rig::with(provider, settings, |builder| builder).await;
    let events = rig.send("go").await;
    assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
    let cut = (
        ErrorOrigin::Provider,
        "the answer of \"m1\" was cut at 1000 bytes".to_owned(),
    );
    assert_eq!(warnings(&events), [cut]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn many_calls_with_one_id_all_get_their_own() {
    // X5
    let settings = AgentConfig {
        max_tool_calls_per_turn: 2_000,
        ..config()
    };
    let same = (0..2_000).map(|_| call("same", "t", "{}"));
    let provider = provider()
        .reply(same.chain([done()]))
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, settings, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    let mut ids: Vec<String> = calls(&rig.request(2))
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!((ids.len(), ids[0].as_str()), (2_000, "same"));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2_000);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_name_and_a_long_id_are_not_kept() {
    // X9
    let provider = provider()
        .reply([
            call("i".repeat(20_000_000), "t", "{}"),
            call("c2", "读".repeat(3_000_000), "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    let events = rig.send("go").await;
    assert_completed(&events, "ok");
    let sent = calls(&rig.request(2));
    assert!(sent[0].0.starts_with("call_") && sent[0].0.len() < 64);
    let told = result(&rig.request(2), "c2");
    let words = format!("TOOL_NOT_FOUND: there is no tool \"{}…\"", "读".repeat(200));
    assert!(told.starts_with(&words), "{told}");
    let stored = serde_json::to_string(&rig.stored()).unwrap();
    assert!(stored.len() < 20_000, "{}", stored.len());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_name_that_a_provider_would_refuse_fails_the_build() {
    let build = async |name: &str| {
        let builder = AgentBuilder::new(config()).provider(provider());
        builder.tool(RecordingTool::read_only(name)).build().await
    };
    let longest = "n".repeat(64);
    for name in ["t", "read_file", "read-file", "9", "_", "-", "T0", &longest] {
        assert_eq!(build(name).await.unwrap().tools()[0].name, name);
    }
    let long = "n".repeat(65);
    for name in [
        "",
        " ",
        "read file",
        "读文件",
        "ns.tool",
        "a/b",
        "a:b",
        "é",
        "t\n",
        &long,
    ] {
        let error = build(name).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert_eq!(
            error.message,
            format!(
                "tool: the name \"{name}\" is not allowed; a name has 1 to 64 characters, each one of A-Z, a-z, 0-9, \"_\" and \"-\""
            )
        );
    }
    let endless = "n".repeat(20_000_000);
    assert!(build(&endless).await.unwrap_err().message.len() < 500);
}

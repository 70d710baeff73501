//! Area B, second part: calls that fail or are refused, and what is told of those that run
//! (chapter 5.4).

use serde_json::{Value, json};
use youyou_agent::testing::{RecordingTool, call, done, kinds, shape, text};
use youyou_agent::{AgentConfig, AgentEventKind, ErrorCode, SessionEventKind, ToolOutput};

use crate::look::{
    assert_completed, assert_failed, calls, ends, errors, result, results, starts, stored_calls,
    stored_results,
};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_an_error_result_that_lists_the_known_ones() {
    // B8
    for name in ["reed_file", "", "READ_FILE", "读文件"] {
        let hooks = Lines::default();
        let lines = hooks.clone();
        let probe = Probe::tapping("p", move |registry| {
            let (before, after) = (lines.clone(), lines.clone());
            registry.before_tool_use("before", move |_| {
                before.add("before");
                async { Ok(youyou_agent::HookOutcome::Continue) }
            });
            registry.after_tool_use("after", move |_| {
                after.add("after");
                async { Ok(youyou_agent::HookOutcome::Continue) }
            });
        });
        let provider = provider()
            .reply([call("c1", name, "{}"), done()])
            .reply([text("done"), done()]);
        let rig = Rig::with(provider, config(), |builder| {
            builder
                .tool(RecordingTool::read_only("read_file"))
                .tool(RecordingTool::mutating("write_file"))
                .plugin(probe)
        })
        .await;
        let events = rig.send("go").await;
        assert_eq!(
            kinds(&events),
            [
                "turnStarted",
                "toolCallStart",
                "toolCallEnd",
                "textDelta",
                "turnComplete"
            ]
        );
        let [end] = &ends(&events)[..] else {
            panic!("{events:?}")
        };
        assert_eq!(
            (end.success, end.error),
            (false, Some(ErrorCode::ToolNotFound))
        );
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("TOOL_NOT_FOUND: "), "{told}");
        assert!(told.contains("read_file, write_file"), "{told}");
        assert_eq!(hooks.all(), Vec::<String>::new());
        assert_completed(&events, "done");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_wrong_call_for_ever_ends_at_the_limit() {
    // B9
    let limit = AgentConfig {
        max_tool_calls_per_turn: 5,
        ..config()
    };
    let provider = provider().always(|request| {
        let id = format!("c{}", request.messages.len());
        [call(id, "nope", "{}"), done()]
    });
    let rig = Rig::with(provider, limit, |builder| builder).await;
    let events = rig.send("go").await;
    assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
    assert!(rig.provider.request_count() <= 6);
    assert_eq!(ends(&events).len(), 5);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_do_not_run_and_the_model_is_told() {
    // B19
    for mutating in [false, true] {
        let tool = if mutating {
            RecordingTool::mutating("t").echo()
        } else {
            RecordingTool::read_only("t").echo()
        };
        let log = tool.log().clone();
        let limit = AgentConfig {
            max_tool_calls_per_turn: 3,
            ..config()
        };
        let five = (1..=5).map(|n| call(format!("c{n}"), "t", "{}"));
        let provider = provider()
            .reply(five.chain([done()]))
            .reply([call("c6", "t", "{}"), done()])
            .reply([text("went on"), done()]);
        let rig = Rig::with(provider, limit, |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        let error = assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
        assert!(!error.retryable);
        assert!(error.message.contains('3'), "{}", error.message);
        assert_eq!(errors(&events).len(), 1);
        let shown: Vec<String> = starts(&events).into_iter().map(|(id, _)| id).collect();
        assert_eq!(shown, ["c1", "c2", "c3"]);
        assert_eq!(rig.provider.request_count(), 1);

        // The count starts anew, and the model sees what was left out.
        assert_completed(&rig.send("go on").await, "went on");
        let told = results(&rig.request(2));
        let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5"]);
        for (_, content) in &told[3..] {
            assert!(
                content.starts_with("MAX_TOOL_CALLS_EXCEEDED: "),
                "{content}"
            );
        }
        let ran: Vec<String> = log
            .inputs()
            .iter()
            .map(|input| input.call_id.to_string())
            .collect();
        assert_eq!(ran, ["c1", "c2", "c3", "c6"]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_the_limit_is_allowed() {
    // B19
    let limit = AgentConfig {
        max_tool_calls_per_turn: 2,
        ..config()
    };
    let provider = provider()
        .reply([call("c1", "t", "{}"), call("c2", "t", "{}"), done()])
        .reply([text("two"), done()]);
    let rig = Rig::with(provider, limit, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("go").await, "two");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_that_break_the_schema_do_not_reach_the_tool() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer", "minimum": 1 }, "mode": { "enum": ["a", "b"] } },
        "required": ["n"],
        "additionalProperties": false,
    });
    for (raw, named) in [
        (r#"{"n":"1"}"#, "/n"),
        (r#"{"n":0}"#, "/n"),
        (r#"{"n":1,"mode":"c"}"#, "/mode"),
        (r#"{"n":1,"extra":true}"#, "extra"),
        (r#"{"mode":"a"}"#, "\"n\""),
    ] {
        let tool = RecordingTool::read_only("t").parameters(schema.clone());
        let log = tool.log().clone();
        let provider = provider()
            .reply([call("c1", "t", raw), call("c2", "t", r#"{"n":2}"#), done()])
            .reply([text("oh"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        let ran: Vec<String> = log
            .inputs()
            .iter()
            .map(|input| input.call_id.to_string())
            .collect();
        assert_eq!(ran, ["c2"], "{raw}");
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("TOOL_EXECUTION_ERROR: "), "{told}");
        assert!(told.contains(named), "{told}");
        // The model's own arguments stay what it sees of its call.
        assert_eq!(
            calls(&rig.request(2))[0].1,
            serde_json::from_str::<Value>(raw).unwrap()
        );
        assert_eq!(stored_calls(&rig.stored()).len(), 1);
        assert_completed(&events, "oh");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_any_kind_is_an_error_result_and_its_siblings_run() {
    for mutating in [false, true] {
        let make = |n: &str| {
            if mutating {
                RecordingTool::mutating(n)
            } else {
                RecordingTool::read_only(n)
            }
        };
        let failing = make("fails").failing("the disk is full");
        let soft = make("soft").answering(ToolOutput::error("nothing found"));
        let provider = provider()
            .reply([
                call("c1", "fails", "{}"),
                call("c2", "soft", "{}"),
                call("c3", "fine", "{}"),
                done(),
            ])
            .reply([text("ok"), done()]);
        let rig = Rig::with(provider, config(), |builder| {
            builder.tool(failing).tool(soft).tool(make("fine"))
        })
        .await;
        let events = rig.send("go").await;
        assert_eq!(
            results(&rig.request(2)),
            [
                (
                    "c1".to_owned(),
                    "TOOL_EXECUTION_ERROR: the disk is full".to_owned()
                ),
                ("c2".to_owned(), "nothing found".to_owned()),
                ("c3".to_owned(), "ok".to_owned()),
            ]
        );
        assert_eq!(stored_results(&rig.stored()), results(&rig.request(2)));
        let mut ends = ends(&events);
        ends.sort_by(|a, b| a.call_id.cmp(&b.call_id));
        let told: Vec<_> = ends.iter().map(|end| (end.success, end.error)).collect();
        let failed = (false, Some(ErrorCode::ToolExecutionError));
        assert_eq!(told, [failed, failed, (true, None)]);
        assert_completed(&events, "ok");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_for_the_caller_and_never_for_the_model() {
    let output = ToolOutput::text("2 hits").with_metadata(json!({"secret": [1, 2]}));
    let tool = RecordingTool::read_only("search").answering(output);
    let provider = provider()
        .reply([call("c1", "search", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    let shown = events.iter().find_map(|event| match &event.kind {
        AgentEventKind::ToolCallEnd { metadata, .. } => metadata.clone(),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some(&json!({"secret": [1, 2]})));
    let stored = rig.stored().into_iter().find_map(|event| match event.kind {
        SessionEventKind::ToolResult { metadata, .. } => metadata,
        _ => None,
    });
    assert_eq!(stored.as_deref(), Some(&json!({"secret": [1, 2]})));
    assert!(!format!("{:?}", rig.request(2).messages).contains("secret"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_between_start_and_end_and_cut_at_a_character() {
    let long = "频".repeat(3_000);
    let tool = RecordingTool::read_only("t").saying("half").saying(long);
    let provider = provider()
        .reply([call("c1", "t", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    assert_eq!(
        shape(&events),
        [
            "turnStarted",
            "toolCallStart",
            "toolProgress",
            "toolProgress",
            "toolCallEnd",
            "textDelta",
            "turnComplete"
        ]
    );
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::ToolProgress { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["half", "频".repeat(4_096 / 3).as_str()]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_without_tool_use_is_offered_none() {
    let provider = provider().model(youyou_agent::testing::toolless_model("plain"));
    let rig = Rig::with(provider.reply([text("hi"), done()]), config(), |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    let options = youyou_agent::SendOptions {
        model_id: Some("plain".into()),
        ..Default::default()
    };
    let turn = rig.session.send_with("hello", options).unwrap();
    turn.outcome().await;
    let request = rig.request(1);
    assert!(request.tools.is_empty());
    assert!(!crate::look::system(&request).contains("# Tools"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn reached_calls_are_stored_before_they_run_and_unreached_ones_are_not() {
    let provider = provider()
        .reply([call("c1", "t", "{}"), call("c2", "nope", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::mutating("t"))
    })
    .await;
    rig.send("go").await;
    let kinds: Vec<String> = rig
        .stored()
        .iter()
        .filter_map(|event| match &event.kind {
            SessionEventKind::ToolCall { call_id, .. } => Some(format!("call {call_id}")),
            SessionEventKind::ToolResult { call_id, .. } => Some(format!("result {call_id}")),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["call c1", "result c1", "result c2"]);
    rig.epilogue().await;
}

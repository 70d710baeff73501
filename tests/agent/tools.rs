//! Area B, first part: what a model asks for, and what becomes of it when it is wrong
//! (chapters 3.2 and 5.4, section 12).

use serde_json::{Value, json};
use youyou_agent::testing::{
    RecordingTool, call, done, done_with, kinds, shape, text,
};
use youyou_agent::{
    AgentConfig, AgentEventKind, ErrorCode, SessionEventKind, StopReason, ToolOutput,
};

use crate::look::{
    assert_completed, assert_failed, calls, ends, errors, result, results, starts, stored_calls,
    stored_results,
};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

fn takes_path(name: &str) -> RecordingTool {
    RecordingTool::mutating(name).parameters(json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    }))
}

#[tokio::test(start_paused = true)]
async fn cut_arguments_never_run_whatever_the_stop_reason_says() {
    // B1
    let cut = [
        r#"{"path":"a","content":"hel"#,
        r#"{"path":"a""#,
        r#"{"path":"a","#,
        r#"{"path":"a","n":1"#,
        r#"{"path":"a","ok":tru"#,
        r#"{"path":"a\u00"#,
        r#"{"path":"a","list":[1,2"#,
        "{",
    ];
    let reasons = [Some(StopReason::Length), Some(StopReason::ToolUse), None];
    for raw in cut {
        for reason in reasons {
            let (write, echo) = (takes_path("mu_write"), RecordingTool::read_only("ro_echo").echo());
            let (written, echoed) = (write.log().clone(), echo.log().clone());
            let provider = provider()
                .reply([
                    call("c1", "mu_write", raw),
                    call("c2", "ro_echo", r#"{"x":1}"#),
                    done_with(None, reason),
                ])
                .reply([text("again"), done()]);
            let rig = Rig::with(provider, config(), |b| b.tool(write).tool(echo)).await;
            let events = rig.send("write it").await;
            assert_eq!(written.inputs(), [], "{raw}");
            assert_eq!(echoed.inputs().len(), 1);
            let told = result(&rig.request(2), "c1");
            assert!(told.starts_with("TOOL_EXECUTION_ERROR: "), "{told}");
            assert!(told.contains("cut") && told.contains("not run"), "{told}");
            assert_eq!(
                calls(&rig.request(2)),
                [("c1".to_owned(), json!({})), ("c2".to_owned(), json!({"x": 1}))]
            );
            assert_completed(&events, "again");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_output_limit_left_no_room_for_are_cut_too() {
    // B1
    let tool = RecordingTool::mutating("delete_all");
    let log = tool.log().clone();
    let provider = provider()
        .reply([
            call("c1", "delete_all", ""),
            done_with(None, StopReason::Length),
        ])
        .reply([text("again"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("clean up").await;
    assert_eq!(log.inputs(), []);
    let told = result(&rig.request(2), "c1");
    assert!(told.contains("cut"), "{told}");
    assert_completed(&events, "again");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn broken_arguments_are_quoted_in_the_result_and_never_sent_back() {
    // B2
    let long = format!("{{a:{}", "啊".repeat(5_000));
    for raw in ["{a:1,,}", r#"{"a":1}{"b":2}"#, r#"{"a":1} trailing"#, "{'a':1}", &long, "nope"] {
        let tool = RecordingTool::read_only("ro_echo").echo();
        let log = tool.log().clone();
        let provider = provider()
            .reply([call("c1", "ro_echo", raw), done()])
            .reply([text("sorry"), done()])
            .reply([text("hello"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "sorry");
        assert_completed(&rig.send("hi").await, "hello");
        assert_eq!(log.inputs(), []);
        for number in [2, 3] {
            let request = rig.request(number);
            assert_eq!(calls(&request), [("c1".to_owned(), json!({}))]);
            let told = result(&request, "c1");
            assert!(told.starts_with("TOOL_EXECUTION_ERROR: "), "{told}");
            let quoted: String = raw.chars().take(200).collect();
            assert!(told.contains(&quoted), "{told}");
            assert!(told.chars().count() < 600, "{}", told.len());
        }
        let [end] = &ends(&events)[..] else { panic!("{events:?}") };
        assert_eq!(end.error, Some(ErrorCode::ToolExecutionError));
        assert_eq!(starts(&events), [("c1".to_owned(), json!({}))]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_arguments_are_an_empty_object() {
    // B3, B4
    for raw in ["", "  ", "\n\t", "null", " null ", "{}"] {
        let now = RecordingTool::read_only("now").echo();
        let log = now.log().clone();
        let provider = provider()
            .reply([call("c1", "now", raw), done()])
            .reply([text("noon"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder.tool(now)).await;
        let events = rig.send("what time is it").await;
        assert_eq!(log.inputs()[0].arguments, json!({}), "{raw:?}");
        assert_eq!(starts(&events), [("c1".to_owned(), json!({}))]);
        assert_completed(&events, "noon");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_arguments_where_one_is_required_name_what_is_missing() {
    // B4
    for raw in ["", "null", "{}"] {
        let tool = takes_path("mu_write");
        let log = tool.log().clone();
        let provider = provider()
            .reply([call("c1", "mu_write", raw), done()])
            .reply([text("oh"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
        assert_completed(&rig.send("go").await, "oh");
        assert_eq!(log.inputs(), []);
        let told = result(&rig.request(2), "c1");
        assert!(told.contains("path") && told.contains("required"), "{told}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn arrays_and_scalars_are_no_arguments() {
    // B4
    for raw in ["[1]", "[]", "7", "-1.5", "true", "false", r#""text""#, r#""[1]""#, r#""7""#] {
        for tool in [RecordingTool::read_only("t"), takes_path("t")] {
            let log = tool.log().clone();
            let provider = provider()
                .reply([call("c1", "t", raw), done()])
                .reply([text("oh"), done()]);
            let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
            let events = rig.send("go").await;
            assert_eq!(log.inputs(), [], "{raw}");
            assert_eq!(ends(&events)[0].error, Some(ErrorCode::ToolExecutionError));
            assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), json!({}))]);
            assert_completed(&events, "oh");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_json_string_is_unwrapped_once_and_at_top_level_only() {
    let once = Value::String(r#"{"a":"{\"b\":1}"}"#.to_owned()).to_string();
    let twice = Value::String(once.clone()).to_string();
    let tool = RecordingTool::read_only("t").echo();
    let log = tool.log().clone();
    let provider = provider()
        .reply([call("c1", "t", once), call("c2", "t", twice), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    let inner = json!({"a": "{\"b\":1}"});
    let used: Vec<Value> = log.inputs().into_iter().map(|input| input.arguments).collect();
    assert_eq!(used, [inner.clone()]);
    assert_eq!(
        calls(&rig.request(2)),
        [("c1".to_owned(), inner), ("c2".to_owned(), json!({}))]
    );
    let successes: Vec<bool> = ends(&events).iter().map(|end| end.success).collect();
    assert!(successes.contains(&true) && successes.contains(&false));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn call_ids_are_unique_in_events_context_and_storage() {
    // B6
    for ids in [["x", "x"], ["x", ""], ["", ""], [" ", "x"]] {
        let tool = RecordingTool::read_only("ro_echo").echo();
        let log = tool.log().clone();
        let provider = provider()
            .reply([
                call(ids[0], "ro_echo", r#"{"n":"a"}"#),
                call(ids[1], "ro_echo", r#"{"n":"b"}"#),
                done(),
            ])
            .reply([text("done"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        let sent = calls(&rig.request(2));
        assert_ne!(sent[0].0, sent[1].0);
        for (given, (id, _)) in ids.iter().zip(&sent) {
            assert!(!id.trim().is_empty());
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            assert!(id == given || id.chars().all(plain), "{id}");
        }
        let id_and_output: Vec<(String, String)> = sent
            .iter()
            .map(|(id, arguments)| (id.clone(), arguments.to_string()))
            .collect();
        assert_eq!(results(&rig.request(2)), id_and_output);
        assert_eq!(stored_calls(&rig.stored()), sent);
        assert_eq!(starts(&events), sent);
        let mut ended: Vec<String> = ends(&events).into_iter().map(|end| end.call_id).collect();
        let mut called: Vec<String> = sent.iter().map(|(id, _)| id.clone()).collect();
        ended.sort();
        called.sort();
        assert_eq!(ended, called);
        assert_eq!(log.inputs().len(), 2);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_an_earlier_turn_is_replaced() {
    // B6
    let tool = RecordingTool::read_only("t").echo();
    let provider = provider()
        .reply([call("call_0", "t", r#"{"n":1}"#), done()])
        .reply([text("one"), done()])
        .reply([call("call_0", "t", r#"{"n":2}"#), done()])
        .reply([text("two"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    rig.send("first").await;
    rig.send("second").await;
    let sent = calls(&rig.request(4));
    assert_eq!(sent[0], ("call_0".to_owned(), json!({"n": 1})));
    assert_eq!(sent[1].1, json!({"n": 2}));
    assert_ne!(sent[1].0, "call_0");
    assert_eq!(stored_calls(&rig.stored()), sent);
    rig.epilogue().await;
}

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
            ["turnStarted", "toolCallStart", "toolCallEnd", "textDelta", "turnComplete"]
        );
        let [end] = &ends(&events)[..] else { panic!("{events:?}") };
        assert_eq!((end.success, end.error), (false, Some(ErrorCode::ToolNotFound)));
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
            assert!(content.starts_with("MAX_TOOL_CALLS_EXCEEDED: "), "{content}");
        }
        let ran: Vec<String> = log.inputs().iter().map(|input| input.call_id.to_string()).collect();
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
        let ran: Vec<String> = log.inputs().iter().map(|input| input.call_id.to_string()).collect();
        assert_eq!(ran, ["c2"], "{raw}");
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("TOOL_EXECUTION_ERROR: "), "{told}");
        assert!(told.contains(named), "{told}");
        // The model's own arguments stay what it sees of its call.
        assert_eq!(calls(&rig.request(2))[0].1, serde_json::from_str::<Value>(raw).unwrap());
        assert_eq!(stored_calls(&rig.stored()).len(), 1);
        assert_completed(&events, "oh");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_any_kind_is_an_error_result_and_its_siblings_run() {
    for mutating in [false, true] {
        let name = |tool: RecordingTool| tool;
        let make = |n: &str| {
            if mutating {
                RecordingTool::mutating(n)
            } else {
                RecordingTool::read_only(n)
            }
        };
        let failing = name(make("fails").failing("the disk is full"));
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
                ("c1".to_owned(), "TOOL_EXECUTION_ERROR: the disk is full".to_owned()),
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

//! Area B, first part: what a model asks for, and what becomes of it when it is wrong
//! (chapters 3.2 and 5.4, section 12).

use serde_json::{Value, json};
use youyou_agent::testing::{RecordingTool, call, done, done_with, text};
use youyou_agent::{ErrorCode, StopReason};

use crate::look::{assert_completed, calls, ends, result, results, starts, stored_calls};
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
    let reasons = [Some(StopReason::Length), Some(StopReason::EndTurn), None];
    for raw in cut {
        for reason in reasons {
            let (write, echo) = (
                takes_path("mu_write"),
                RecordingTool::read_only("ro_echo").echo(),
            );
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
                [
                    ("c1".to_owned(), json!({})),
                    ("c2".to_owned(), json!({"x": 1}))
                ]
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
    for raw in [
        "{a:1,,}",
        r#"{"a":1}{"b":2}"#,
        r#"{"a":1} trailing"#,
        "{'a':1}",
        &long,
        "nope",
    ] {
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
        let [end] = &ends(&events)[..] else {
            panic!("{events:?}")
        };
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
    for raw in [
        "[1]",
        "[]",
        "7",
        "-1.5",
        "true",
        "false",
        r#""text""#,
        r#""[1]""#,
        r#""7""#,
    ] {
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
    let used: Vec<Value> = log
        .inputs()
        .into_iter()
        .map(|input| input.arguments)
        .collect();
    assert_eq!(used, std::slice::from_ref(&inner));
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

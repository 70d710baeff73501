//! Requirements 3.5: the hooks around a tool, which may change what it gets and what the model
//! sees of it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use youyou_agent::testing::{RecordingTool, ScriptedProvider, call, done, kinds, text};
use youyou_agent::{AfterToolUse, BeforeToolUse, ErrorCode, HookOutcome, ToolOutput};

use crate::look::{assert_completed, calls, ends, result, starts, stored_calls};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

fn one_call(arguments: &Value) -> ScriptedProvider {
    provider()
        .reply([call("c1", "t", arguments.to_string()), done()])
        .reply([text("ok"), done()])
}

fn tool() -> RecordingTool {
    RecordingTool::mutating("t").echo().parameters(json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    }))
}

fn rewriting(id: &str, change: Value) -> Probe {
    Probe::tapping(id, move |hooks| {
        let change = change.clone();
        hooks.before_tool_use("rewrite", move |_| {
            let change = change.clone();
            async { Ok(HookOutcome::ContinueWith(change)) }
        });
    })
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_are_used_shown_and_stored_and_the_model_sees_its_own() {
    let own = json!({"path": "/etc/passwd"});
    let used = json!({"path": "/tmp/safe"});
    let tool = tool();
    let log = tool.log().clone();
    let rig = Rig::with(one_call(&own), config(), |b| {
        b.tool(tool).plugin(rewriting("sandbox", used.clone()))
    })
    .await;
    let events = rig.send("go").await;
    assert_eq!(log.inputs()[0].arguments, used);
    assert_eq!(starts(&events), [("c1".to_owned(), used.clone())]);
    assert_eq!(stored_calls(&rig.stored()), [("c1".to_owned(), used)]);
    assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), own)]);
    assert_completed(&events, "ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_that_break_the_schema_stop_the_tool() {
    // G4
    for bad in [
        json!({"other": 1}),
        json!({"path": 7}),
        json!({}),
        json!([1]),
        json!("x"),
        Value::Null,
    ] {
        let tool = tool();
        let log = tool.log().clone();
        let lines = Lines::default();
        let seen = lines.clone();
        let later = Probe::tapping("later", move |hooks| {
            let seen = seen.clone();
            hooks.before_tool_use("late", move |_| {
                seen.add("called");
                async { Ok(HookOutcome::Continue) }
            });
        });
        let rig = Rig::with(one_call(&json!({"path": "a"})), config(), |b| {
            b.tool(tool)
                .plugin(rewriting("clumsy", bad.clone()))
                .plugin(later)
        })
        .await;
        let events = rig.send("go").await;
        assert_eq!(log.inputs(), [], "{bad}");
        assert_eq!(lines.all(), Vec::<String>::new());
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("HOOK_ABORTED: "), "{told}");
        assert!(
            told.contains("\"clumsy\"") && told.contains("not run"),
            "{told}"
        );
        let named = if bad.is_object() { "path" } else { "object" };
        assert!(told.contains(named), "{told}");
        let [end] = &ends(&events)[..] else {
            panic!("{events:?}")
        };
        assert_eq!(end.error, Some(ErrorCode::HookAborted));
        assert_completed(&events, "ok");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_stay_an_object_even_where_the_schema_takes_anything() {
    // G4
    for bad in [json!([1]), json!("x"), json!(7), Value::Null] {
        let tool = RecordingTool::read_only("t").parameters(json!({}));
        let log = tool.log().clone();
        let rig = Rig::with(one_call(&json!({})), config(), |b| {
            b.tool(tool).plugin(rewriting("clumsy", bad.clone()))
        })
        .await;
        assert_completed(&rig.send("go").await, "ok");
        assert_eq!(log.inputs(), [], "{bad}");
        let told = result(&rig.request(2), "c1");
        assert!(
            told.contains("\"clumsy\"") && told.contains("object"),
            "{told}"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_handler_sees_what_the_one_before_made_and_an_abort_stops_the_rest() {
    // G6
    let lines = Lines::default();
    let step = |id: &'static str, answer: fn(Value) -> HookOutcome<Value>| {
        let lines = lines.clone();
        Probe::tapping(id, move |hooks| {
            let lines = lines.clone();
            hooks.before_tool_use("step", move |call: BeforeToolUse| {
                lines.add(format!(
                    "{id} {} {}",
                    call.arguments["path"], call.plugin_config
                ));
                async move { Ok(answer(Value::clone(&call.arguments))) }
            });
        })
    };
    let a = step("a", |_| HookOutcome::ContinueWith(json!({"path": "b"})));
    let b = step("b", |_| HookOutcome::ContinueWith(json!({"path": "c"})));
    let c = step("c", |_| HookOutcome::Abort("c says no".into()));
    let d = step("d", |_| HookOutcome::Continue);
    let tool = tool();
    let log = tool.log().clone();
    let rig = Rig::with(one_call(&json!({"path": "a"})), config(), |builder| {
        builder
            .tool(tool)
            .plugin_with_config(a, json!(1))
            .plugin_with_config(b, json!(2))
            .plugin_with_config(c, json!(3))
            .plugin_with_config(d, json!(4))
    })
    .await;
    let events = rig.send("go").await;
    assert_eq!(lines.all(), ["a \"a\" 1", "b \"b\" 2", "c \"c\" 3"]);
    assert_eq!(log.inputs(), []);
    let told = result(&rig.request(2), "c1");
    assert!(
        told.contains("c says no") && told.contains("\"c\""),
        "{told}"
    );
    // What the model asked for is shown: nothing else was used.
    assert_eq!(starts(&events), [("c1".to_owned(), json!({"path": "a"}))]);
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
    assert_completed(&events, "ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn output_is_changed_in_a_chain_and_the_payload_says_how_it_went() {
    // G6
    let given: Arc<Mutex<Vec<AfterToolUse>>> = Arc::default();
    let seen = Arc::clone(&given);
    let first = Probe::tapping("first", |hooks| {
        hooks.after_tool_use("mark", |call: AfterToolUse| async move {
            Ok(HookOutcome::ContinueWith(format!("<{}>", call.output)))
        });
    });
    let second = Probe::tapping("second", move |hooks| {
        let seen = Arc::clone(&seen);
        hooks.after_tool_use("keep", move |call: AfterToolUse| {
            seen.lock().unwrap().push(call);
            async { Ok(HookOutcome::Continue) }
        });
    });
    let tool = RecordingTool::read_only("t")
        .taking(std::time::Duration::from_millis(70))
        .answering(ToolOutput::error("broken"));
    let rig = Rig::with(one_call(&json!({})), config(), |b| {
        b.tool(tool)
            .plugin(first)
            .plugin_with_config(second, json!("two"))
    })
    .await;
    let events = rig.send("go").await;
    let [payload] = &given.lock().unwrap().clone()[..] else {
        panic!("once")
    };
    assert_eq!(&*payload.output, "<broken>");
    assert_eq!((payload.success, payload.duration_ms), (false, 70));
    assert_eq!(
        (&*payload.tool_name, &*payload.turn_id),
        ("t", &*events[0].turn_id)
    );
    assert_eq!(*payload.plugin_config, json!("two"));
    assert_eq!(result(&rig.request(2), "c1"), "<broken>");
    let [end] = &ends(&events)[..] else {
        panic!("{events:?}")
    };
    // A changed text does not make a failure a success.
    assert_eq!(
        (end.success, end.error),
        (false, Some(ErrorCode::ToolExecutionError))
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_after_the_tool_withholds_its_output() {
    let output = ToolOutput::text("SECRET").with_metadata(json!("SECRET"));
    let tool = RecordingTool::mutating("t").answering(output);
    let probe = Probe::tapping("censor", |hooks| {
        hooks.after_tool_use("hide", |_| async {
            Ok(HookOutcome::Abort("confidential".into()))
        });
        hooks.after_tool_use("late", |_| async { panic!("not called after an abort") });
    });
    let rig = Rig::with(one_call(&json!({})), config(), |b| {
        b.tool(tool).plugin(probe)
    })
    .await;
    let events = rig.send("go").await;
    let told = result(&rig.request(2), "c1");
    assert!(told.starts_with("HOOK_ABORTED: "), "{told}");
    assert!(
        told.contains("\"censor\"") && told.contains("confidential"),
        "{told}"
    );
    assert!(told.contains("the tool ran"), "{told}");
    let [end] = &ends(&events)[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (end.success, end.error),
        (false, Some(ErrorCode::HookAborted))
    );
    assert!(!format!("{events:?} {:?}", rig.stored()).contains("SECRET"));
    assert_completed(&events, "ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_cancels_its_turn_is_waited_for_and_the_tool_does_not_start() {
    let tool = tool();
    let log = tool.log().clone();
    let session: Arc<Mutex<Option<youyou_agent::Session>>> = Arc::default();
    let shared = Arc::clone(&session);
    let probe = Probe::tapping("stop", move |hooks| {
        let shared = Arc::clone(&shared);
        hooks.before_tool_use("cancel", move |_| {
            let session = shared.lock().unwrap().clone().unwrap();
            async move {
                assert!(session.cancel(None));
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                Ok(HookOutcome::Continue)
            }
        });
    });
    let rig = Rig::with(one_call(&json!({"path": "a"})), config(), |b| {
        b.tool(tool).plugin(probe)
    })
    .await;
    *session.lock().unwrap() = Some(rig.session.clone());
    let events = rig.send("go").await;
    assert_eq!(kinds(&events), ["turnStarted", "turnCancelled"]);
    assert_eq!(log.inputs(), []);
    rig.send("and now").await;
    assert_eq!(result(&rig.request(2), "c1"), "[已取消] not executed");
    *session.lock().unwrap() = None;
    rig.epilogue().await;
}

//! Section 12: what is stored can be read again, whatever a model, a hook and a tool make.

use serde_json::{Value, json};
use youyou_agent::testing::{InMemorySessions, RecordingTool, ScriptedProvider, call, done, text};
use youyou_agent::{
    AgentConfig, AgentEventKind, ErrorCode, ErrorOrigin, HookOutcome, SessionEvent,
    SessionEventKind, ToolOutput,
};

use crate::look::{assert_completed, calls, ends, result, stored_calls, warnings};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::said::said;

/// One call of `t` with these arguments, with a text before it, then "ok".
pub(crate) fn asking(arguments: impl Into<String>) -> ScriptedProvider {
    provider()
        .reply([text("I ask."), call("c1", "t", arguments.into()), done()])
        .reply([text("ok"), done()])
}

/// This many arrays and objects within each other, the outermost an object.
fn nested(levels: usize) -> Value {
    let inner = (1..levels).fold(json!(1), |inner, _| json!([inner]));
    json!({ "a": inner })
}

/// Everything that was stored, as a storage that keeps JSON finds it later.
fn read_again(stored: &[SessionEvent]) -> Vec<SessionEvent> {
    let again = |event: &SessionEvent| {
        let json = serde_json::to_string(event).unwrap();
        serde_json::from_str(&json).expect("a record can be read again")
    };
    stored.iter().map(again).collect()
}

/// The session goes on from what a storage that keeps JSON finds of it, with the same words.
pub(crate) async fn survives(rig: Rig) {
    let stored = rig.stored();
    assert_eq!(read_again(&stored), stored);
    let storage = InMemorySessions::new();
    storage.preload(rig.session.id(), read_again(&stored));
    let before = said(&rig.request(2));
    let provider = provider().reply([text("on"), done()]);
    let id = rig.session.id().to_owned();
    let resumed = Rig::resumed(provider, config(), storage, &id, |builder| builder).await;
    resumed.send("go on").await;
    assert_eq!(said(&resumed.request(1))[..before.len()], before);
    rig.epilogue().await;
    resumed.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_nested_deeper_than_sixty_four_levels_are_an_error_result() {
    // X1
    for levels in [65, 124, 127, 5_000] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let raw = format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(ends(&events)[0].error, Some(ErrorCode::ToolExecutionError));
        assert!(log.inputs().is_empty());
        let told = result(&rig.request(2), "c1");
        let words = "TOOL_EXECUTION_ERROR: the arguments are nested deeper than 64 levels; ";
        assert!(told.starts_with(words), "{told}");
        assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), json!({}))]);
        assert_eq!(said(&rig.request(2))[1], "assistant: I ask. <c1 t>");
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_sixty_four_levels_run_and_can_be_read_again() {
    // X1, also as one JSON string
    for raw in [
        nested(64).to_string(),
        Value::String(nested(64).to_string()).to_string(),
    ] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
        assert_completed(&rig.send("go").await, "ok");
        assert_eq!(log.inputs()[0].arguments, nested(64));
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn depth_counts_in_a_json_string_too() {
    // X1
    let tool = RecordingTool::read_only("t");
    let log = tool.log().clone();
    let raw = Value::String(nested(65).to_string()).to_string();
    let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
    assert_completed(&rig.send("go").await, "ok");
    assert!(log.inputs().is_empty());
    survives(rig).await;
}

fn changing_arguments(changed: Value) -> Probe {
    Probe::tapping("p", move |hooks| {
        let changed = changed.clone();
        hooks.before_tool_use("wrap", move |_| {
            let changed = changed.clone();
            async move { Ok(HookOutcome::ContinueWith(changed)) }
        });
    })
}

#[tokio::test(start_paused = true)]
async fn a_hooks_change_that_could_not_be_read_again_keeps_the_tool_from_running() {
    // X1
    let too_long = json!({ "a": "x".repeat(1_000) });
    for (changed, reason) in [
        (nested(65), "it is nested deeper than 64 levels"),
        (nested(124), "it is nested deeper than 64 levels"),
        (too_long, "its JSON is longer than 1000 bytes"),
    ] {
        let tool = RecordingTool::mutating("t");
        let log = tool.log().clone();
        let settings = AgentConfig {
            tool_arguments_limit_bytes: 1_000,
            ..config()
        };
        let rig = Rig::with(asking("{}"), settings, |builder| {
            builder.tool(tool).plugin(changing_arguments(changed))
        })
        .await;
        assert_completed(&rig.send("go").await, "ok");
        assert!(log.inputs().is_empty());
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("HOOK_ABORTED: "), "{told}");
        assert!(told.contains(reason), "{told}");
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hooks_change_of_sixty_four_levels_is_used() {
    // X1
    let tool = RecordingTool::mutating("t");
    let log = tool.log().clone();
    let rig = Rig::with(asking("{}"), config(), |builder| {
        builder.tool(tool).plugin(changing_arguments(nested(64)))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    assert_eq!(log.inputs()[0].arguments, nested(64));
    assert_eq!(stored_calls(&rig.stored())[0].1, nested(64));
    survives(rig).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_that_could_not_be_read_again_is_left_out_with_a_warning() {
    // X1, X10
    let of_size = |bytes: usize| json!("x".repeat(bytes - 2));
    for (metadata, reason) in [
        (nested(64), None),
        (nested(65), Some("it is nested deeper than 64 levels")),
        (nested(124), Some("it is nested deeper than 64 levels")),
        (of_size(1_048_576), None),
        (
            of_size(1_048_577),
            Some("its JSON is longer than 1048576 bytes"),
        ),
    ] {
        let output = ToolOutput::text("out").with_metadata(metadata.clone());
        let tool = RecordingTool::read_only("t").answering(output);
        let rig = Rig::with(asking("{}"), config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(result(&rig.request(2), "c1"), "out");
        let kept = reason.is_none().then_some(&metadata);
        let shown = events.iter().find_map(|event| match &event.kind {
            AgentEventKind::ToolCallEnd { metadata, .. } => metadata.clone(),
            _ => None,
        });
        assert_eq!(shown.as_deref(), kept);
        let stored = rig.stored().into_iter().find_map(|event| match event.kind {
            SessionEventKind::ToolResult { metadata, .. } => metadata,
            _ => None,
        });
        assert_eq!(stored.as_deref(), kept);
        let told = reason.map(|reason| {
            let told = format!("the metadata of a result of the tool \"t\" is left out: {reason}");
            (ErrorOrigin::Tool, told)
        });
        assert_eq!(warnings(&events), Vec::from_iter(told));
        survives(rig).await;
    }
}

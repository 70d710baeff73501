//! Chapter 5.1: the turn loop.

use serde_json::json;
use youyou_agent::testing::{RecordingTool, call, done, kinds, shape, text, text_of, wait};
use youyou_agent::{AgentEventKind, SessionEventKind, TurnStatus};

use crate::rig::{Rig, config, provider};

#[tokio::test(start_paused = true)]
async fn a_plain_answer_streams_and_completes() {
    let rig = Rig::new(provider().reply([text("Hel"), text("lo"), done()])).await;
    let events = rig.send("hi").await;
    assert_eq!(
        kinds(&events),
        ["turnStarted", "textDelta", "textDelta", "turnComplete"]
    );
    assert_eq!(text_of(&events), "Hello");
    let AgentEventKind::TurnComplete {
        status,
        error,
        assistant_output,
        ..
    } = &events.last().unwrap().kind
    else {
        panic!("{events:?}");
    };
    assert_eq!(*status, TurnStatus::Completed);
    assert_eq!(*error, None);
    assert_eq!(assistant_output, "Hello");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_round_goes_back_to_the_model() {
    let tool = RecordingTool::read_only("ro_echo").echo();
    let log = tool.log().clone();
    let provider = provider()
        .reply([call("c1", "ro_echo", json!({"text": "x"}).to_string()), done()])
        .reply([text("done"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("use it").await;
    assert_eq!(
        shape(&events),
        ["turnStarted", "toolCallStart", "toolCallEnd", "textDelta", "turnComplete"]
    );
    assert_eq!(log.inputs().len(), 1);
    assert_eq!(rig.provider.request_count(), 2);
    let kinds: Vec<&'static str> = rig
        .stored()
        .iter()
        .map(|event| match event.kind {
            SessionEventKind::UserMessage { .. } => "user",
            SessionEventKind::AssistantMessage { .. } => "assistant",
            SessionEventKind::ToolCall { .. } => "call",
            SessionEventKind::ToolResult { .. } => "result",
            SessionEventKind::SystemMessage { .. } => "system",
            SessionEventKind::Metadata { .. } => "metadata",
        })
        .collect();
    assert_eq!(
        kinds,
        ["metadata", "user", "assistant", "call", "result", "assistant"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_mid_text_keeps_what_was_shown() {
    // A5
    let rig = Rig::new(provider().reply([text("AB"), text("CD"), wait()])).await;
    let turn = rig.session.send("hi").unwrap();
    rig.provider.asked(1).await;
    let reader = tokio::spawn(youyou_agent::testing::collect(rig.agent.turn(turn.id()).unwrap()));
    tokio::task::yield_now().await;
    assert!(turn.cancel());
    let events = reader.await.unwrap();
    assert_eq!(text_of(&events), "ABCD");
    assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");
    rig.epilogue().await;
}

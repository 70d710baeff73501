//! Chapter 6.2: a cancel right before a tool starts, and a tool that follows one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;
use youyou_agent::testing::{
    Fault, Faults, FaultySessions, Gate, InMemorySessions, RecordingTool, ScriptedProvider,
    SessionOperation, When, assert_event_invariants, call, collect, done, text,
};
use youyou_agent::{AgentConfig, Notes, ToolContext, ToolError, tool};

use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::told;

const SKIPPED: &str = "[已取消] not executed";
/// Appends of a turn before that of its first call: the message, and the answer.
const BEFORE_THE_CALL: usize = 2;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn one_call() -> ScriptedProvider {
    provider().reply([call("c1", "tool", "{}"), done()])
}

fn kinds_of_tools() -> [RecordingTool; 2] {
    [
        RecordingTool::mutating("tool"),
        RecordingTool::read_only("tool"),
    ]
}

async fn over_faults(
    provider: ScriptedProvider,
    tool: RecordingTool,
) -> (Rig, Faults<SessionOperation>) {
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let faults = wrapped.faults().clone();
    let register = |builder: youyou_agent::AgentBuilder| builder.tool(tool);
    let rig = Rig::over(provider, config(), storage, wrapped, register).await;
    (rig, faults)
}

/// The call was skipped: stored with its result, told to the model as not executed, now and
/// after a resume.
async fn was_skipped(mut rig: Rig) {
    let expected = [
        "user: hi",
        "assistant: <c1 tool>",
        "error c1: [已取消] not executed",
        "note: [此消息因用户取消而中断]",
        "user: next",
    ];
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(said(&rig.request(2)), expected);
    rig.reopen().await;
    assert_eq!(
        stored_lines(&rig.stored())[3..6],
        [
            "call c1",
            &format!("result c1: {SKIPPED}"),
            "interrupted: Cancelled"
        ]
    );
    rig.provider.queue([text("ok"), done()]);
    rig.send("more").await;
    assert_eq!(said(&rig.request(3))[..5], expected);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_call_is_being_stored_when_the_user_cancels_never_starts() {
    // C22
    for tool in kinds_of_tools() {
        let log = tool.log().clone();
        let (rig, faults) = over_faults(one_call(), tool).await;
        let writing = Gate::closed();
        faults.inject(
            SessionOperation::Append,
            When::Nth(BEFORE_THE_CALL + 1),
            Fault::Gate(writing.clone()),
        );
        let turn = rig.session.send("hi").unwrap();
        writing.arrived(1).await;
        assert!(turn.cancel());
        writing.open();
        let events = collect(turn).await;
        assert_event_invariants(&events);
        assert_eq!(told(&events), ["started", "cancelled"]);
        assert!(log.inputs().is_empty());
        was_skipped(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_call_hangs_in_the_storage_when_the_user_cancels_never_starts() {
    // C22
    for tool in kinds_of_tools() {
        let log = tool.log().clone();
        let (rig, faults) = over_faults(one_call(), tool).await;
        let at = BEFORE_THE_CALL + 1;
        faults.inject(SessionOperation::Append, When::Nth(at), Fault::Hang);
        let turn = rig.session.send("hi").unwrap();
        faults.called(SessionOperation::Append, at).await;
        let cancelled_at = Instant::now();
        assert!(turn.cancel());
        let events = collect(turn).await;
        assert_event_invariants(&events);
        assert!(cancelled_at.elapsed() <= Duration::from_secs(1));
        assert_eq!(
            told(&events),
            ["started", "error STORAGE_ERROR", "cancelled"]
        );
        assert!(log.inputs().is_empty());
        was_skipped(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_stored_is_told_as_skipped_in_the_words_of_the_config() {
    let settings = AgentConfig {
        notes: Notes::english(),
        ..config()
    };
    let (first, tool) = (Gate::closed(), RecordingTool::mutating("tool"));
    let provider = provider()
        .reply([call("c1", "first", "{}"), call("c2", "tool", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, settings, |builder| {
        let gated = RecordingTool::mutating("first").gated(&first);
        builder.tool(gated).tool(tool)
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    first.arrived(1).await;
    assert!(turn.cancel());
    first.open();
    collect(turn).await;
    let notes = Notes::english();
    assert_eq!(
        stored_lines(&rig.stored())[5],
        format!("result c2: {}", notes.call_cancelled)
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_tells_of_its_calls_in_the_words_of_the_config() {
    let settings = AgentConfig {
        notes: Notes::english(),
        max_retries: 0,
        ..config()
    };
    let provider = provider()
        .reply([text("I will"), call("c1", "tool", "{}")])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, settings, |builder| {
        builder.tool(RecordingTool::mutating("tool"))
    })
    .await;
    rig.send("hi").await;
    let notes = Notes::english();
    assert_eq!(
        stored_lines(&rig.stored())[3],
        format!("result c1: {}", notes.call_not_executed)
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_follows_a_cancel_ends_early_and_its_output_is_kept() {
    for tool in kinds_of_tools() {
        let started = Gate::opened();
        let tool = tool
            .gated(&started)
            .until_cancel_requested()
            .answering("as far as it got");
        let rig = Rig::with(one_call(), config(), |builder| builder.tool(tool)).await;
        let turn = rig.session.send("hi").unwrap();
        started.arrived(1).await;
        let cancelled_at = Instant::now();
        assert!(turn.cancel());
        let events = collect(turn).await;
        assert_eq!(
            told(&events),
            [
                "started",
                "start c1 tool",
                "end c1: as far as it got",
                "cancelled"
            ]
        );
        assert_eq!(cancelled_at.elapsed(), Duration::ZERO);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn closing_the_session_asks_a_tool_to_end_early_too() {
    let started = Gate::opened();
    let tool = RecordingTool::mutating("tool")
        .gated(&started)
        .until_cancel_requested();
    let log = tool.log().clone();
    let rig = Rig::with(one_call(), config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("hi").unwrap();
    started.arrived(1).await;
    rig.session.close().await.unwrap();
    assert_eq!(log.order(), ["c1 started", "c1 ended"]);
    assert_eq!(told(&collect(turn).await).last().unwrap(), "cancelled");
    rig.anew().await.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_token_does_not_fire_without_a_cancel_and_a_tool_fires_only_its_own() {
    // A tool that fires its token cancels neither the turn nor its sibling.
    let fires = |name: &str| {
        tool::typed(
            name,
            "Fires.",
            |_: Nothing, context: ToolContext| async move {
                let fired = context.cancel_requested.is_cancelled();
                context.cancel_requested.cancel();
                Ok::<_, ToolError>(if fired { "fired" } else { "quiet" })
            },
        )
        .mutating()
    };
    let provider = provider()
        .reply([call("c1", "one", "{}"), call("c2", "two", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(fires("one")).tool(fires("two"))
    })
    .await;
    assert_eq!(
        told(&rig.send("hi").await),
        [
            "started",
            "start c1 one",
            "end c1: quiet",
            "start c2 two",
            "end c2: quiet",
            "text 1: ok",
            "completed: ok"
        ]
    );
    rig.epilogue().await;
}

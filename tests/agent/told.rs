//! What a turn told, a line per event, so that whole turns are compared at a glance.

use futures_util::StreamExt as _;
use youyou_agent::testing::{assert_event_invariants, collect, text_of};
use youyou_agent::{AgentEvent, AgentEventKind, ErrorCode, Turn, TurnStatus};

/// The events: `started`, `text 0: ..` and `reasoning 0: ..` with their step, `start c1 ..`,
/// `progress c1: ..`, `end c1: ..` (`failed c1 CODE: ..`), `retry 2 in 500 ms`,
/// `warning: ..`, `error CODE`, `compacted`, `skipped 12`, and last `completed: ..`, `failed CODE` or
/// `cancelled`.
pub(crate) fn told(events: &[AgentEvent]) -> Vec<String> {
    events.iter().map(|event| line(&event.kind)).collect()
}

fn line(kind: &AgentEventKind) -> String {
    match kind {
        AgentEventKind::TurnStarted => "started".to_owned(),
        AgentEventKind::TextDelta { step, delta, .. } => format!("text {step}: {delta}"),
        AgentEventKind::ReasoningDelta { step, delta, .. } => format!("reasoning {step}: {delta}"),
        AgentEventKind::ToolCallStart {
            call_id, tool_name, ..
        } => format!("start {call_id} {tool_name}"),
        AgentEventKind::ToolProgress { call_id, message } => {
            format!("progress {call_id}: {message}")
        }
        AgentEventKind::ToolCallEnd {
            call_id,
            output,
            error,
            ..
        } => match error {
            None => format!("end {call_id}: {output}"),
            Some(code) => format!("failed {call_id} {}: {output}", name(*code)),
        },
        AgentEventKind::ContextCompacted { .. } => "compacted".to_owned(),
        AgentEventKind::ProviderRetry {
            attempt, delay_ms, ..
        } => format!("retry {attempt} in {delay_ms} ms"),
        AgentEventKind::Warning { message, .. } => format!("warning: {message}"),
        AgentEventKind::Error { error } => format!("error {}", name(error.code)),
        AgentEventKind::TurnComplete {
            status,
            error,
            assistant_output,
            ..
        } => match (status, error) {
            (TurnStatus::Completed, _) => format!("completed: {assistant_output}"),
            (_, Some(error)) => format!("failed {}", name(error.code)),
            (status, None) => format!("{status:?} without an error"),
        },
        AgentEventKind::TurnCancelled { .. } => "cancelled".to_owned(),
        AgentEventKind::Skipped { events } => format!("skipped {events}"),
        other => format!("{other:?}"),
    }
}

fn name(code: ErrorCode) -> String {
    let name = serde_json::to_value(code).unwrap();
    name.as_str().unwrap().to_owned()
}

/// Reads a turn until what it told ends with this line.
pub(crate) async fn read_until(turn: &mut Turn, line: &str) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while told(&events).last().is_none_or(|last| last != line) {
        events.push(turn.next().await.expect("the turn goes on"));
    }
    events
}

/// Reads a turn until it shows this text, cancels it, and reads it to its end.
pub(crate) async fn cancel_at(mut turn: Turn, shown: &str) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while text_of(&events) != shown {
        events.push(turn.next().await.expect("the turn goes on"));
    }
    assert!(turn.cancel(), "the turn was running");
    events.extend(collect(turn).await);
    assert_event_invariants(&events);
    events
}

//! Looking at the events of a turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt as _;

use crate::{AgentEvent, AgentEventKind};

/// Reads a turn to its end.
pub async fn collect(events: impl Stream<Item = AgentEvent>) -> Vec<AgentEvent> {
    events.collect().await
}

/// The text that the events show, joined.
#[must_use]
pub fn text_of(events: &[AgentEvent]) -> String {
    let text = |event: &AgentEvent| match &event.kind {
        AgentEventKind::TextDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The reasoning that the events show, joined.
#[must_use]
pub fn reasoning_of(events: &[AgentEvent]) -> String {
    let text = |event: &AgentEvent| match &event.kind {
        AgentEventKind::ReasoningDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The types of the events, by their wire names.
#[must_use]
pub fn kinds(events: &[AgentEvent]) -> Vec<&'static str> {
    events.iter().map(|event| kind(&event.kind)).collect()
}

/// Like [`kinds`], neighbouring deltas of one type as one: the shape of a turn, however
/// its text was cut into pieces.
#[must_use]
pub fn shape(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut shape = kinds(events);
    shape.dedup_by(|a, b| a == b && a.ends_with("Delta"));
    shape
}

fn kind(kind: &AgentEventKind) -> &'static str {
    match kind {
        AgentEventKind::TurnStarted => "turnStarted",
        AgentEventKind::TextDelta { .. } => "textDelta",
        AgentEventKind::ReasoningDelta { .. } => "reasoningDelta",
        AgentEventKind::ToolCallStart { .. } => "toolCallStart",
        AgentEventKind::ToolProgress { .. } => "toolProgress",
        AgentEventKind::ToolCallEnd { .. } => "toolCallEnd",
        AgentEventKind::ContextCompacted { .. } => "contextCompacted",
        AgentEventKind::ProviderRetry { .. } => "providerRetry",
        AgentEventKind::Warning { .. } => "warning",
        AgentEventKind::Error { .. } => "error",
        AgentEventKind::TurnComplete { .. } => "turnComplete",
        AgentEventKind::TurnCancelled { .. } => "turnCancelled",
        AgentEventKind::Skipped { .. } => "skipped",
    }
}

/// Asserts what holds for the events of any whole turns, in the order they came.
///
/// - `sequence` rises strictly, coalesced deltas counted from their first part.
/// - `TurnStarted` is first and a terminal event last, each exactly once per turn, and
///   turns do not overlap.
/// - `Skipped` stands between turns, in place of turns that are not there.
/// - Each `ToolCallStart` has exactly one `ToolCallEnd`, later and in the same turn; there
///   is no end or progress without a start.
///
/// # Panics
/// When something does not hold, with what and all events.
#[track_caller]
pub fn assert_event_invariants(events: &[AgentEvent]) {
    let violations = event_violations(events);
    assert!(
        violations.is_empty(),
        "the events break the rules:\n- {}\nevents: {events:#?}",
        violations.join("\n- ")
    );
}

/// What [`assert_event_invariants`] finds wrong; nothing if all is well.
#[must_use]
pub fn event_violations(events: &[AgentEvent]) -> Vec<String> {
    let mut check = Check::default();
    for event in events {
        check.numbering(event);
        check.turn(event);
        check.tool_calls(event);
    }
    if let Some(turn_id) = check.turn {
        check
            .violations
            .push(format!("turn {turn_id} has no terminal event"));
    }
    check.violations
}

#[derive(Default)]
struct Check {
    last_sequence: Option<u64>,
    /// The turn that has started and not ended.
    turn: Option<Arc<str>>,
    /// Turns that have ended.
    ended: HashSet<Arc<str>>,
    /// Whether each call that has started has ended.
    calls: HashMap<Arc<str>, bool>,
    violations: Vec<String>,
}

impl Check {
    fn report(&mut self, event: &AgentEvent, what: &str) {
        let line = format!("{} {}: {what}", kind(&event.kind), event.sequence);
        self.violations.push(line);
    }

    fn numbering(&mut self, event: &AgentEvent) {
        let first = match &event.kind {
            AgentEventKind::TextDelta { first_sequence, .. }
            | AgentEventKind::ReasoningDelta { first_sequence, .. } => *first_sequence,
            _ => event.sequence,
        };
        if first > event.sequence {
            self.report(event, "its first part has a higher number than its last");
        }
        if self.last_sequence.is_some_and(|last| first <= last) {
            self.report(event, "its number does not rise");
        }
        self.last_sequence = Some(event.sequence);
    }

    fn turn(&mut self, event: &AgentEvent) {
        let turn_id = &event.turn_id;
        if let AgentEventKind::Skipped { .. } = event.kind {
            if self.turn.is_some() {
                self.report(event, "it comes within a turn");
            }
            self.ended.insert(Arc::clone(turn_id));
            return;
        }
        if self.ended.contains(turn_id) {
            self.report(event, "it comes after the terminal event of its turn");
        } else if self.turn.as_ref() == Some(turn_id) {
            if matches!(event.kind, AgentEventKind::TurnStarted) {
                self.report(event, "its turn has started already");
            }
        } else {
            if self.turn.is_some() {
                self.report(event, "the turn before has no terminal event yet");
            }
            if !matches!(event.kind, AgentEventKind::TurnStarted) {
                self.report(event, "it comes before the start of its turn");
            }
            self.turn = Some(Arc::clone(turn_id));
        }
        if event.kind.is_terminal() {
            self.turn = None;
            self.ended.insert(Arc::clone(turn_id));
            let open: Vec<Arc<str>> = self
                .calls
                .drain()
                .filter(|(_, ended)| !ended)
                .map(|(call_id, _)| call_id)
                .collect();
            for call_id in open {
                self.report(event, &format!("the tool call {call_id} has no end"));
            }
        }
    }

    fn tool_calls(&mut self, event: &AgentEvent) {
        let fault = match &event.kind {
            AgentEventKind::ToolCallStart { call_id, .. } => {
                let known = self.calls.insert(Arc::clone(call_id), false).is_some();
                known.then(|| format!("the tool call {call_id} starts twice"))
            }
            AgentEventKind::ToolProgress { call_id, .. } => {
                let runs = self.calls.get(call_id) == Some(&false);
                (!runs).then(|| format!("the tool call {call_id} is not running"))
            }
            AgentEventKind::ToolCallEnd { call_id, .. } => {
                let ran = self.calls.insert(Arc::clone(call_id), true) == Some(false);
                (!ran).then(|| format!("the tool call {call_id} is not running"))
            }
            _ => None,
        };
        if let Some(fault) = fault {
            self.report(event, &fault);
        }
    }
}

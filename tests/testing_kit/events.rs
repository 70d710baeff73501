//! The event rules find what is wrong with a row of events, and nothing else.

use std::sync::Arc;

use youyou_agent::testing::{assert_event_invariants, event_violations, kinds, shape, text_of};
use youyou_agent::{AgentEvent, AgentEventKind, TurnStatus, Usage};

fn event(turn_id: &str, sequence: u64, kind: AgentEventKind) -> AgentEvent {
    AgentEvent {
        session_id: "s1".into(),
        turn_id: turn_id.into(),
        timestamp: 0,
        sequence,
        kind,
    }
}

fn text(delta: &str, first_sequence: u64) -> AgentEventKind {
    AgentEventKind::TextDelta {
        step: 0,
        delta: delta.to_owned(),
        first_sequence,
    }
}

fn start(call_id: &str) -> AgentEventKind {
    AgentEventKind::ToolCallStart {
        step: 0,
        call_id: call_id.into(),
        tool_name: "t".into(),
        arguments: Arc::new(serde_json::json!({})),
    }
}

fn end(call_id: &str) -> AgentEventKind {
    AgentEventKind::ToolCallEnd {
        step: 0,
        call_id: call_id.into(),
        tool_name: "t".into(),
        output: "out".into(),
        metadata: None,
        duration_ms: 1,
        success: true,
        error: None,
    }
}

fn progress(call_id: &str) -> AgentEventKind {
    AgentEventKind::ToolProgress {
        call_id: call_id.into(),
        message: "half".to_owned(),
    }
}

fn complete() -> AgentEventKind {
    AgentEventKind::TurnComplete {
        status: TurnStatus::Completed,
        error: None,
        stop_reason: None,
        assistant_output: "".into(),
        usage: Usage::default(),
        session_usage: Usage::default(),
        context_tokens: 0,
        context_window: 0,
    }
}

fn cancelled() -> AgentEventKind {
    AgentEventKind::TurnCancelled {
        usage: Usage::default(),
    }
}

use AgentEventKind::TurnStarted;

/// The kinds as the events of one turn, numbered from 1.
fn turn(kinds: Vec<AgentEventKind>) -> Vec<AgentEvent> {
    (1..)
        .zip(kinds)
        .map(|(sequence, kind)| event("t1", sequence, kind))
        .collect()
}

#[test]
fn whole_turns_pass() {
    let mut events = turn(vec![
        TurnStarted,
        text("a", 2),
        start("c1"),
        start("c2"),
        progress("c2"),
        end("c2"),
        end("c1"),
        complete(),
    ]);
    events.push(event("t2", 9, TurnStarted));
    // Joined from 10 to 14.
    events.push(event("t2", 14, text("bcdef", 10)));
    events.push(event("t2", 20, text("g", 20)));
    events.push(event("t2", 21, cancelled()));
    assert_event_invariants(&events);
    assert_eq!(text_of(&events), "abcdefg");
    assert_eq!(kinds(&events).len(), 12);
    assert_eq!(
        shape(events.get(8..).unwrap()),
        ["turnStarted", "textDelta", "turnCancelled"]
    );
}

// INV-2
#[test]
fn each_violation_is_found() {
    let numbered = |sequences: [u64; 3], first: u64| {
        let kinds = [TurnStarted, text("a", first), complete()];
        let numbered = sequences.into_iter().zip(kinds);
        numbered
            .map(|(sequence, kind)| event("t1", sequence, kind))
            .collect::<Vec<_>>()
    };
    let mut overlapping = turn(vec![TurnStarted]);
    overlapping.push(event("t2", 2, TurnStarted));
    overlapping.push(event("t2", 3, complete()));
    let cases = [
        (
            numbered([1, 1, 2], 1),
            "textDelta 1: its number does not rise",
        ),
        (
            numbered([2, 3, 3], 3),
            "turnComplete 3: its number does not rise",
        ),
        (
            numbered([5, 6, 7], 4),
            "textDelta 6: its number does not rise",
        ),
        (numbered([1, 2, 9], 3), "first part has a higher number"),
        (
            turn(vec![TurnStarted, text("a", 2)]),
            "turn t1 has no terminal event",
        ),
        (
            turn(vec![TurnStarted, complete(), cancelled()]),
            "after the terminal event",
        ),
        (
            turn(vec![TurnStarted, complete(), text("a", 3)]),
            "after the terminal event",
        ),
        (
            turn(vec![TurnStarted, TurnStarted, complete()]),
            "has started already",
        ),
        (
            turn(vec![text("a", 1), complete()]),
            "before the start of its turn",
        ),
        (overlapping, "the turn before has no terminal event"),
        (
            turn(vec![TurnStarted, start("c1"), complete()]),
            "c1 has no end",
        ),
        (
            turn(vec![
                TurnStarted,
                end("c1"),
                start("c1"),
                end("c1"),
                complete(),
            ]),
            "c1 is not running",
        ),
        (
            turn(vec![
                TurnStarted,
                start("c1"),
                end("c1"),
                end("c1"),
                complete(),
            ]),
            "c1 is not running",
        ),
        (
            turn(vec![
                TurnStarted,
                start("c1"),
                start("c1"),
                end("c1"),
                complete(),
            ]),
            "c1 starts twice",
        ),
        (
            turn(vec![
                TurnStarted,
                start("c1"),
                end("c1"),
                progress("c1"),
                complete(),
            ]),
            "c1 is not running",
        ),
    ];
    for (events, expected) in cases {
        let found = event_violations(&events);
        assert!(
            found.iter().any(|violation| violation.contains(expected)),
            "expected {expected:?}, found {found:?}"
        );
    }
}

//! The log of one turn: numbers events, holds text once, wakes who waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use super::size::parts_of;
use super::wakers::Wakers;
use crate::agent::clock::now_ms;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::{AgentEvent, AgentEventKind, TurnStatus};
use crate::agent::provider::{StopReason, Usage};

/// Longest progress message, in bytes.
const PROGRESS_BYTES: usize = 4_096;

/// One turn's events.
#[derive(Debug)]
pub(crate) struct TurnLog {
    session_id: Arc<str>,
    turn_id: Arc<str>,
    /// Milliseconds since the Unix epoch; times of deltas are stored relative to it.
    began_at: u64,
    /// Shared with the event_log and raised under `state` only, so that the order of entries
    /// is the order of numbers.
    sequence: Arc<AtomicU64>,
    state: Mutex<LogState>,
    /// Set right before the last event is published.
    outcome: OnceLock<TurnOutcome>,
}

#[derive(Debug, Default)]
pub(super) struct LogState {
    pub(super) entries: Vec<Entry>,
    /// Whether the last event is there; nothing is added after it.
    pub(super) ended: bool,
    /// Calls between their start and end event: only these may report progress.
    running: Vec<Arc<str>>,
    waiting: Wakers,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "an entry is made once and never moved; a box would be one more allocation per event"
)]
pub(super) enum Entry {
    Event(AgentEvent),
    Deltas(Deltas),
}

/// Neighbouring deltas of one kind and step: one text, and where each part ends.
#[derive(Debug)]
pub(super) struct Deltas {
    pub(super) kind: DeltaKind,
    pub(super) step: u32,
    pub(super) first_sequence: u64,
    pub(super) text: String,
    pub(super) parts: Vec<Part>,
}

/// The end of a part in its text, and its time after the start of the turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) end: u32,
    pub(super) after_ms: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeltaKind {
    Text,
    Reasoning,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The turn.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub turn_id: Arc<str>,
    /// How it ended.
    pub status: TurnStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub error: Option<AgentError>,
    /// Why the model stopped in its last response, if the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub stop_reason: Option<StopReason>,
    /// Number of its last event.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub last_sequence: u64,
    /// Text of its last response, as the `TurnEnd` hooks left it. Empty for a cancelled turn:
    /// what was shown is in its events and in the history.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub assistant_output: Arc<str>,
    /// What it cost.
    pub usage: Usage,
}

impl TurnLog {
    pub(super) fn new(
        session_id: &Arc<str>,
        turn_id: &Arc<str>,
        sequence: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            session_id: Arc::clone(session_id),
            turn_id: Arc::clone(turn_id),
            began_at: now_ms(),
            sequence: Arc::clone(sequence),
            state: Mutex::default(),
            outcome: OnceLock::new(),
        }
    }

    pub(crate) fn session_id(&self) -> &Arc<str> {
        &self.session_id
    }

    pub(crate) fn turn_id(&self) -> &Arc<str> {
        &self.turn_id
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.state).ended
    }

    /// How the turn ended, once it has.
    pub(crate) fn outcome(&self) -> Option<&TurnOutcome> {
        self.outcome.get()
    }

    /// Adds an event other than a delta.
    pub(crate) fn push(&self, kind: AgentEventKind) {
        self.push_if(kind, |_| true);
    }

    /// Adds an event if the state of the log allows it, looked at under the same lock.
    fn push_if(&self, kind: AgentEventKind, allowed: impl FnOnce(&LogState) -> bool) {
        let woken = {
            let mut state = lock(&self.state);
            if state.ended || !allowed(&state) {
                return;
            }
            match &kind {
                AgentEventKind::ToolCallStart { call_id, .. } => {
                    state.running.push(Arc::clone(call_id));
                }
                AgentEventKind::ToolCallEnd { call_id, .. } => {
                    state.running.retain(|running| running != call_id);
                }
                _ => {}
            }
            self.add_event(&mut state, kind);
            state.waiting.take()
        };
        woken.wake();
    }

    /// Ends a log that is no turn's: without a last event.
    pub(super) fn close(&self) {
        lock(&self.state).ended = true;
    }

    /// Adds the last event and fixes the outcome. Answers who is to be woken, once no lock
    /// is held: a reader may go on from within its waker.
    #[must_use = "readers wait to be woken"]
    pub(crate) fn end(&self, kind: AgentEventKind) -> Wakers {
        debug_assert!(kind.is_terminal());
        let mut state = lock(&self.state);
        if state.ended {
            return Wakers::default();
        }
        let sequence = self.add_event(&mut state, kind.clone());
        let _ = self.outcome.set(self.outcome_of(kind, sequence));
        state.ended = true;
        state.waiting.take()
    }

    fn outcome_of(&self, kind: AgentEventKind, last_sequence: u64) -> TurnOutcome {
        let (status, error, stop_reason, assistant_output, usage) = match kind {
            AgentEventKind::TurnComplete {
                status,
                error,
                stop_reason,
                assistant_output,
                usage,
                ..
            } => (
                status,
                error.map(|error| *error),
                stop_reason,
                assistant_output,
                usage,
            ),
            AgentEventKind::TurnCancelled { usage } => {
                (TurnStatus::Cancelled, None, None, Arc::default(), usage)
            }
            _ => (
                TurnStatus::Failed,
                None,
                None,
                Arc::default(),
                Usage::default(),
            ),
        };
        TurnOutcome {
            turn_id: Arc::clone(&self.turn_id),
            status,
            error,
            stop_reason,
            last_sequence,
            assistant_output,
            usage,
        }
    }

    fn add_event(&self, state: &mut LogState, kind: AgentEventKind) -> u64 {
        let sequence = self.next_sequence();
        state.entries.push(Entry::Event(AgentEvent {
            session_id: Arc::clone(&self.session_id),
            turn_id: Arc::clone(&self.turn_id),
            timestamp: now_ms(),
            sequence,
            kind,
        }));
        sequence
    }

    /// Called under `state` only.
    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Adds a delta; a long one becomes several parts with a number each.
    pub(crate) fn push_delta(&self, kind: DeltaKind, step: u32, text: &str) {
        if text.is_empty() {
            return;
        }
        let woken = {
            let mut state = lock(&self.state);
            if state.ended {
                return;
            }
            for part in parts_of(text) {
                self.add_part(&mut state, kind, step, part);
            }
            state.waiting.take()
        };
        woken.wake();
    }

    fn add_part(&self, state: &mut LogState, kind: DeltaKind, step: u32, text: &str) {
        let sequence = self.next_sequence();
        let elapsed = now_ms().saturating_sub(self.began_at);
        let after_ms = u32::try_from(elapsed).unwrap_or(u32::MAX);
        if let Some(Entry::Deltas(deltas)) = state.entries.last_mut()
            && deltas.kind == kind
            && deltas.step == step
            && deltas.first_sequence + deltas.parts.len() as u64 == sequence
            && let Ok(end) = u32::try_from(deltas.text.len() + text.len())
        {
            deltas.text.push_str(text);
            deltas.parts.push(Part { end, after_ms });
            return;
        }
        state.entries.push(Entry::Deltas(Deltas {
            kind,
            step,
            first_sequence: sequence,
            text: text.to_owned(),
            parts: vec![Part {
                // A part is at most PART_JSON_BYTES long.
                end: u32::try_from(text.len()).unwrap_or(u32::MAX),
                after_ms,
            }],
        }));
    }

    /// Adds the progress of a running call. What a call says after its end is dropped.
    pub(crate) fn progress(&self, call_id: &Arc<str>, mut message: String) {
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES));
        let kind = AgentEventKind::ToolProgress {
            call_id: Arc::clone(call_id),
            message,
        };
        self.push_if(kind, |state| state.running.contains(call_id));
    }

    /// Reads under the log's lock; where `read` gives nothing and the turn goes on, the
    /// task is woken at the next event.
    pub(super) fn poll_read<T>(
        &self,
        context: &Context<'_>,
        read: impl FnOnce(&TurnLog, &LogState) -> Option<T>,
    ) -> Poll<Option<T>> {
        let mut state = lock(&self.state);
        match read(self, &state) {
            Some(read) => Poll::Ready(Some(read)),
            None if state.ended => Poll::Ready(None),
            None => {
                state.waiting.add(context);
                Poll::Pending
            }
        }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&TurnLog, &LogState) -> T) -> T {
        read(self, &lock(&self.state))
    }

    pub(super) fn began_at(&self) -> u64 {
        self.began_at
    }
}

//! The log of one turn: numbers events, holds text once, wakes who waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use super::entries::{DeltaKind, Entries, NewPart};
use super::position::{Coalescing, Position};
use super::size::parts_of;
use super::wakers::Wakers;
use crate::agent::clock::now_ms;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::{AgentEvent, AgentEventKind, TurnStatus};
use crate::agent::provider::{StopReason, Usage};

/// Longest progress message, in bytes.
const PROGRESS_BYTES: usize = 4_096;

/// Progress events that are kept of a call.
const PROGRESS_KEPT: usize = 32;

/// One turn's events.
#[derive(Debug)]
pub(crate) struct TurnLog {
    session_id: Arc<str>,
    turn_id: Arc<str>,
    /// Milliseconds since the Unix epoch; times of deltas are stored relative to it.
    began_at: u64,
    /// Shared with the event log and raised under `state` only, so that the order of entries
    /// is the order of numbers.
    sequence: Arc<AtomicU64>,
    state: Mutex<LogState>,
    /// Set right before the last event is published.
    outcome: OnceLock<TurnOutcome>,
}

#[derive(Debug, Default)]
struct LogState {
    entries: Entries,
    /// Whether the last event is there; nothing is added after it.
    ended: bool,
    /// Calls between their start and end event: only these may report progress.
    running: Vec<RunningCall>,
    waiting: Wakers,
}

#[derive(Debug)]
struct RunningCall {
    id: Arc<str>,
    /// Numbers of its progress events that are kept, oldest first.
    progress: VecDeque<u64>,
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

    /// Adds an event other than a delta or progress.
    pub(crate) fn push(&self, kind: AgentEventKind) {
        let woken = {
            let mut state = lock(&self.state);
            if state.ended {
                return;
            }
            match &kind {
                AgentEventKind::ToolCallStart { call_id, .. } => {
                    state.running.push(RunningCall {
                        id: Arc::clone(call_id),
                        progress: VecDeque::new(),
                    });
                }
                AgentEventKind::ToolCallEnd { call_id, .. } => {
                    state.running.retain(|running| running.id != *call_id);
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
        state.entries.push(AgentEvent {
            session_id: Arc::clone(&self.session_id),
            turn_id: Arc::clone(&self.turn_id),
            timestamp: now_ms(),
            sequence,
            kind,
        });
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
        state.entries.push_part(NewPart {
            kind,
            step,
            text,
            sequence,
            after_ms,
        });
    }

    /// Adds the progress of a running call and drops its oldest, if it has too much. What a call
    /// says after its end is not told.
    pub(crate) fn progress(&self, call_id: &Arc<str>, mut message: String) {
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES));
        message.shrink_to_fit();
        let woken = {
            let mut state = lock(&self.state);
            let of_call = |running: &RunningCall| running.id == *call_id;
            let Some(call) = state.running.iter().position(of_call) else {
                return;
            };
            let kind = AgentEventKind::ToolProgress {
                call_id: Arc::clone(call_id),
                message,
            };
            let sequence = self.add_event(&mut state, kind);
            let LogState {
                entries, running, ..
            } = &mut *state;
            if let Some(call) = running.get_mut(call) {
                call.progress.push_back(sequence);
                if call.progress.len() > PROGRESS_KEPT
                    && let Some(oldest) = call.progress.pop_front()
                {
                    entries.drop_event(oldest);
                }
            }
            state.waiting.take()
        };
        woken.wake();
    }

    /// The next event of a reader that is at `position`; where it has read all and the turn goes
    /// on, its task is woken at the next event.
    pub(super) fn poll_event(
        &self,
        context: &Context<'_>,
        position: &mut Position,
        coalescing: Coalescing,
    ) -> Poll<Option<AgentEvent>> {
        let mut state = lock(&self.state);
        match position.next(self, &state.entries, state.ended, coalescing) {
            Some(event) => Poll::Ready(Some(event)),
            None if state.ended => Poll::Ready(None),
            None => {
                state.waiting.add(context);
                Poll::Pending
            }
        }
    }

    /// The next event, if it is there; and whether nothing follows where it is not.
    pub(super) fn try_event(
        &self,
        position: &mut Position,
        coalescing: Coalescing,
    ) -> (Option<AgentEvent>, bool) {
        let state = lock(&self.state);
        let event = position.next(self, &state.entries, state.ended, coalescing);
        (event, state.ended)
    }

    /// How the turn ended; until it has, the task is woken at the next event.
    pub(super) fn poll_outcome(&self, context: &Context<'_>) -> Poll<TurnOutcome> {
        let mut state = lock(&self.state);
        match self.outcome.get() {
            Some(outcome) => Poll::Ready(outcome.clone()),
            None => {
                state.waiting.add(context);
                Poll::Pending
            }
        }
    }

    /// All text that was shown.
    pub(super) fn text(&self) -> String {
        lock(&self.state).entries.text()
    }

    /// The memory that the events take, in bytes, once the turn has ended.
    pub(super) fn bytes_once_ended(&self) -> Option<usize> {
        let state = lock(&self.state);
        state.ended.then(|| state.entries.bytes())
    }

    /// The last event, if it lies beyond number `after`, and how many events do.
    pub(super) fn unread_after(&self, after: u64) -> Option<(AgentEvent, u64)> {
        lock(&self.state).entries.unread_after(after, self)
    }

    pub(super) fn began_at(&self) -> u64 {
        self.began_at
    }
}

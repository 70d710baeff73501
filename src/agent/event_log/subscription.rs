//! The handle of a subscriber to many turns.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::EventLog;
use super::chain::Found;
use super::log::TurnLog;
use super::position::{Coalescing, Position};
use crate::agent::contain::lock;
use crate::agent::event::AgentEvent;

/// The events of all turns of a session, or of all sessions, past and to come: a `Stream` of
/// [`AgentEvent`]s, like [`Turn`](super::Turn).
///
/// That of a session ends when the session is closed, that of an agent when the agent is shut
/// down or its last handle is dropped; what was told until then comes first.
///
/// # Order
/// Turn after turn, each from its start to its last event. What a subscriber has not come to
/// waits for it, as long as all that the agent keeps of ended turns stays within
/// `event_log_limit_bytes` of the [config](crate::AgentConfig). Beyond that the oldest turns are
/// dropped whole, and a subscriber that had not begun them gets one
/// [`Skipped`](crate::AgentEventKind::Skipped) in their place. A turn that it has begun it can
/// read to the end.
pub struct Subscription {
    event_log: Arc<EventLog>,
    /// Its number in the chain.
    reader: u64,
    /// Events up to this number are left out.
    after: u64,
    /// The turn that is being read, and how far.
    turn: Option<(Arc<TurnLog>, Position)>,
    coalescing: Coalescing,
    /// Whether to wait for what is still to come.
    live: bool,
    ended: bool,
}

impl Subscription {
    pub(super) fn new(event_log: &Arc<EventLog>, reader: u64, after: u64) -> Self {
        Self {
            event_log: Arc::clone(event_log),
            reader,
            after,
            turn: None,
            coalescing: Coalescing::WhenLagging,
            live: true,
            ended: false,
        }
    }

    /// Sets when neighbouring deltas are coalesced.
    #[must_use]
    pub fn coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Ends after what is there already: nothing more can come.
    pub(crate) fn past_only(mut self) -> Self {
        self.live = false;
        self
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<AgentEvent> {
        loop {
            if let Some((log, position)) = &mut self.turn {
                match log.try_event(position, self.coalescing) {
                    (None, true) => self.turn = None,
                    (event, _) => return event,
                }
            }
            match self.enter_next(None) {
                Step::Entered => {}
                Step::Told(event) => return Some(*event),
                Step::Waiting | Step::Ended => return None,
            }
        }
    }

    fn poll_event(&mut self, context: &Context<'_>) -> Poll<Option<AgentEvent>> {
        loop {
            if let Some((log, position)) = &mut self.turn {
                match log.poll_event(context, position, self.coalescing) {
                    Poll::Ready(None) => self.turn = None,
                    polled => return polled,
                }
            }
            match self.enter_next(Some(context)) {
                Step::Entered => {}
                Step::Told(event) => return Poll::Ready(Some(*event)),
                Step::Waiting => return Poll::Pending,
                Step::Ended => return Poll::Ready(None),
            }
        }
    }

    /// Goes on to the next turn. Where there is none yet, the task is woken once there is.
    fn enter_next(&mut self, context: Option<&Context<'_>>) -> Step {
        if self.ended {
            return Step::Ended;
        }
        // Locked until the waker is in, so that no turn comes between looking and waiting.
        let mut chain = lock(&self.event_log.chain);
        match chain.advance(self.reader) {
            Found::Turn(log) => {
                self.turn = Some((log, Position::after(self.after)));
                Step::Entered
            }
            Found::Skipped(event) => Step::Told(event),
            Found::Nothing if self.live => {
                if let Some(context) = context {
                    chain.waiting.add(context);
                }
                Step::Waiting
            }
            Found::Nothing | Found::End => {
                chain.leave(self.reader);
                self.ended = true;
                Step::Ended
            }
        }
    }
}

/// What came of looking for the next turn.
enum Step {
    Entered,
    Told(Box<AgentEvent>),
    Waiting,
    Ended,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.event_log.chain).leave(self.reader);
    }
}

impl Stream for Subscription {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.get_mut().poll_event(context)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("after", &self.after)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

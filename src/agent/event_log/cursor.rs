//! Subscribers: positions in the logs.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::log::{DeltaKind, Deltas, Entry, LogState, TurnLog, TurnOutcome};
use super::size::{PART_JSON_BYTES, json_bytes};
use super::{Content, EventLog, Link};
use crate::agent::contain::lock;
use crate::agent::event::{AgentEvent, AgentEventKind};

/// Unread parts of a text above which a subscriber counts as lagging.
const LAG: usize = 64;

/// When neighbouring deltas of one kind come as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coalescing {
    /// Once the subscriber is more than 64 deltas behind.
    WhenLagging,
    /// Always; for consumers that pace themselves.
    Always,
}

/// A position in one log.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    entry: usize,
    /// Parts read of the deltas at `entry`.
    part: usize,
}

impl Position {
    /// The first event after number `after` that is not read yet, and moves on.
    fn next(
        &mut self,
        log: &TurnLog,
        state: &LogState,
        after: u64,
        joining: Coalescing,
    ) -> Option<AgentEvent> {
        loop {
            match state.entries.get(self.entry)? {
                Entry::Event(event) => {
                    self.entry += 1;
                    if event.sequence > after {
                        return Some(event.clone());
                    }
                }
                Entry::Deltas(deltas) => {
                    let skipped = (after + 1).saturating_sub(deltas.first_sequence);
                    self.part = self
                        .part
                        .max(usize::try_from(skipped).unwrap_or(usize::MAX));
                    if self.part < deltas.parts.len() {
                        return self.join(log, deltas, joining);
                    }
                    // More parts may come as long as nothing follows.
                    if self.entry + 1 == state.entries.len() && !state.ended {
                        return None;
                    }
                    *self = Self {
                        entry: self.entry + 1,
                        part: 0,
                    };
                }
            }
        }
    }

    fn join(&mut self, log: &TurnLog, deltas: &Deltas, joining: Coalescing) -> Option<AgentEvent> {
        let unread = deltas.parts.get(self.part..)?;
        let from = match self.part.checked_sub(1) {
            Some(before) => deltas.parts.get(before)?.end as usize,
            None => 0,
        };
        let count = match joining {
            Coalescing::WhenLagging if unread.len() <= LAG => 1,
            Coalescing::WhenLagging | Coalescing::Always => parts_that_fit(deltas, unread, from),
        };
        let last = unread.get(count - 1)?;
        let delta = deltas.text.get(from..last.end as usize)?.to_owned();
        let first_sequence = deltas.first_sequence + self.part as u64;
        self.part += count;
        let step = deltas.step;
        Some(AgentEvent {
            session_id: Arc::clone(log.session_id()),
            turn_id: Arc::clone(log.turn_id()),
            timestamp: log.began_at() + u64::from(last.after_ms),
            sequence: first_sequence + count as u64 - 1,
            kind: match deltas.kind {
                DeltaKind::Text => AgentEventKind::TextDelta {
                    step,
                    delta,
                    first_sequence,
                },
                DeltaKind::Reasoning => AgentEventKind::ReasoningDelta {
                    step,
                    delta,
                    first_sequence,
                },
            },
        })
    }
}

/// How many of the unread parts fit into one message, at least one.
fn parts_that_fit(deltas: &Deltas, unread: &[super::log::Part], from: usize) -> usize {
    let mut bytes = 0;
    let mut start = from;
    let fitting = unread.iter().take_while(|part| {
        let end = part.end as usize;
        bytes += deltas.text.get(start..end).map_or(0, json_bytes);
        start = end;
        bytes <= PART_JSON_BYTES
    });
    fitting.count().max(1)
}

/// The events of one turn, from its start to its last: a `Stream` of [`AgentEvent`]s.
///
/// With `futures_util::StreamExt` in scope, `turn.next().await` gives the next event, and
/// `None` after the last; with [`outcome`](Self::outcome) the events need not be read.
/// Dropping it does not cancel the turn. A consumer that is more than 64 deltas behind
/// gets neighbouring deltas of one kind joined.
pub struct Turn {
    log: Arc<TurnLog>,
    position: Position,
    cancel: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Turn {
    pub(crate) fn new(
        log: Arc<TurnLog>,
        cancel: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            log,
            position: Position::default(),
            cancel: Box::new(cancel),
        }
    }

    /// The turn's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.log.turn_id()
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> &str {
        self.log.session_id()
    }

    /// Cancels the turn. Answers whether it was running; a late cancel changes nothing.
    /// The model stops at once, running tools are awaited, and then comes `TurnCancelled`.
    pub fn cancel(&self) -> bool {
        (self.cancel)()
    }

    /// Waits for the end of the turn, whether or not its events are read.
    pub async fn outcome(&self) -> TurnOutcome {
        loop {
            // The read gives nothing on purpose: it only waits for something new.
            let () = poll_fn(|context| {
                match self
                    .log
                    .poll_read(context, |_, state| state.ended.then_some(()))
                {
                    Poll::Ready(_) => Poll::Ready(()),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            if let Some(outcome) = self.log.outcome() {
                return outcome.clone();
            }
        }
    }
}

impl Stream for Turn {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let this = self.get_mut();
        let position = &mut this.position;
        this.log.poll_read(context, |log, state| {
            position.next(log, state, 0, Coalescing::WhenLagging)
        })
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("id", &self.id())
            .field("session_id", &self.session_id())
            .finish_non_exhaustive()
    }
}

/// The events of all turns of a session, or of all sessions, past and to come: a `Stream` of
/// [`AgentEvent`]s, like [`Turn`].
///
/// That of a session ends when the session is closed, that of an agent never.
pub struct Subscription {
    event_log: Arc<EventLog>,
    link: Arc<Link>,
    position: Position,
    /// Number of the newest link at the start: a close before it was another opening of
    /// the session.
    since: u64,
    /// Only this session, if set.
    session_id: Option<Arc<str>>,
    /// Events up to this number are left out.
    after: u64,
    joining: Coalescing,
    /// Whether to wait for what is still to come.
    live: bool,
    ended: bool,
}

impl Subscription {
    pub(super) fn new(
        event_log: &Arc<EventLog>,
        link: Arc<Link>,
        since: u64,
        session_id: Option<Arc<str>>,
        after: u64,
    ) -> Self {
        Self {
            event_log: Arc::clone(event_log),
            link,
            position: Position::default(),
            since,
            session_id,
            after,
            joining: Coalescing::WhenLagging,
            live: true,
            ended: false,
        }
    }

    /// Sets when neighbouring deltas come as one.
    #[must_use]
    pub fn joining(mut self, joining: Coalescing) -> Self {
        self.joining = joining;
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
            if self.ended {
                return None;
            }
            match self.read_link() {
                (Some(event), _) => return Some(event),
                (None, false) => return None,
                (None, true) => {
                    let next = self.link.next.get().cloned()?;
                    self.enter(next);
                }
            }
        }
    }

    fn of_interest(&self) -> Option<&Arc<TurnLog>> {
        self.link.turn().filter(|log| {
            self.session_id
                .as_ref()
                .is_none_or(|wanted| wanted == log.session_id())
        })
    }

    /// The next event of the current link, and whether the link is complete.
    fn read_link(&mut self) -> (Option<AgentEvent>, bool) {
        let (after, joining) = (self.after, self.joining);
        let mut position = self.position;
        let read = self.of_interest().map(|log| {
            log.read(|log, state| (position.next(log, state, after, joining), state.ended))
        });
        self.position = position;
        read.unwrap_or((None, true))
    }

    fn enter(&mut self, link: Arc<Link>) {
        if let (Content::SessionClosed(closed), Some(wanted)) = (&link.content, &self.session_id)
            && closed == wanted
            && link.number > self.since
        {
            self.ended = true;
        }
        self.link = link;
        self.position = Position::default();
    }

    fn poll_event(&mut self, context: &Context<'_>) -> Poll<Option<AgentEvent>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(log) = self.of_interest().cloned() {
                let (after, joining) = (self.after, self.joining);
                let mut position = self.position;
                let polled = log.poll_read(context, |log, state| {
                    position.next(log, state, after, joining)
                });
                self.position = position;
                match polled {
                    Poll::Ready(Some(event)) => return Poll::Ready(Some(event)),
                    Poll::Ready(None) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
            // Everything of this link is read; go on with the next or wait for it. The lock
            // makes sure that no link comes between looking and waiting.
            let mut chain = lock(&self.event_log.chain);
            let next = self.link.next.get().cloned();
            if next.is_none() && self.live {
                chain.waiting.add(context);
            }
            drop(chain);
            match next {
                Some(next) => self.enter(next),
                None if !self.live => self.ended = true,
                None => return Poll::Pending,
            }
        }
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
            .field("session_id", &self.session_id)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

//! Where events go: one append-only log per turn, and subscribers as cursors into it.
//!
//! Numbering, joining, replay and any number of subscribers all follow from that. A slow or
//! late subscriber costs no memory of its own: the log holds each text once.

mod cursor;
mod log;
pub(crate) mod size;
mod wakers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use cursor::{Coalescing, Subscription, Turn};
pub use log::TurnOutcome;
pub(crate) use log::{DeltaKind, TurnLog};

use super::contain::lock;
use super::event::AgentEventKind;
use wakers::Wakers;

/// Logs of ended turns that stay for late subscribers and for `wait_turn`.
const RECENT_TURNS: usize = 8;

/// The events of an agent's life: a chain of turn logs.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// Number of the newest event. Only the running turn's log raises it.
    sequence: Arc<AtomicU64>,
    /// The newest link. Written when a turn begins or a session closes.
    chain: Mutex<Chain>,
}

#[derive(Debug)]
struct Chain {
    newest: Arc<Link>,
    /// Links of the newest turns, oldest first, kept alive for late subscribers.
    recent: VecDeque<Arc<Link>>,
    /// Subscribers that have read everything and wait for the next link.
    waiting: Wakers,
}

/// A link holds the next one, so that a cursor keeps alive exactly what it has not read.
#[derive(Debug)]
struct Link {
    content: Content,
    /// Position in the chain.
    number: u64,
    next: OnceLock<Arc<Link>>,
}

#[derive(Debug)]
enum Content {
    Start,
    Turn(Arc<TurnLog>),
    SessionClosed(Arc<str>),
}

impl Drop for Link {
    /// Unlinks step by step: a recursive drop would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.next.take();
        }
    }
}

impl Link {
    fn new(content: Content, number: u64) -> Arc<Self> {
        Arc::new(Self {
            content,
            number,
            next: OnceLock::new(),
        })
    }

    fn turn(&self) -> Option<&Arc<TurnLog>> {
        match &self.content {
            Content::Turn(log) => Some(log),
            Content::Start | Content::SessionClosed(_) => None,
        }
    }
}

impl EventLog {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            sequence: Arc::new(AtomicU64::new(0)),
            chain: Mutex::new(Chain {
                newest: Link::new(Content::Start, 0),
                recent: VecDeque::new(),
                waiting: Wakers::default(),
            }),
        })
    }

    /// Number of the newest event.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Begins the log of a turn.
    pub(crate) fn begin_turn(&self, session_id: &Arc<str>, turn_id: &Arc<str>) -> Arc<TurnLog> {
        let log = Arc::new(TurnLog::new(session_id, turn_id, &self.sequence));
        self.link(Content::Turn(Arc::clone(&log)));
        log
    }

    /// Tells subscribers of a session what happened between turns: events without a turn id.
    pub(crate) fn tell(&self, session_id: &Arc<str>, events: Vec<AgentEventKind>) {
        if events.is_empty() {
            return;
        }
        let log = TurnLog::new(session_id, &Arc::default(), &self.sequence);
        for event in events {
            log.push(event);
        }
        log.close();
        self.link(Content::Turn(Arc::new(log)));
    }

    /// Tells subscribers of a session that nothing will follow.
    pub(crate) fn close_session(&self, session_id: &Arc<str>) {
        self.link(Content::SessionClosed(Arc::clone(session_id)));
    }

    fn link(&self, content: Content) {
        let woken = {
            let mut chain = lock(&self.chain);
            let link = Link::new(content, chain.newest.number + 1);
            // The newest link has no next yet: only this function sets it, under the lock.
            let _ = chain.newest.next.set(Arc::clone(&link));
            chain.newest = Arc::clone(&link);
            if link.turn().is_some() {
                chain.recent.push_back(link);
                if chain.recent.len() > RECENT_TURNS {
                    chain.recent.pop_front();
                }
            }
            chain.waiting.take()
        };
        woken.wake();
    }

    /// The log of a running or recent turn.
    pub(crate) fn turn(&self, turn_id: &str) -> Option<Arc<TurnLog>> {
        lock(&self.chain)
            .recent
            .iter()
            .filter_map(|link| link.turn())
            .find(|log| !turn_id.is_empty() && &**log.turn_id() == turn_id)
            .cloned()
    }

    /// A subscriber to all sessions, from now on.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        let newest = Arc::clone(&lock(&self.chain).newest);
        let since = newest.number;
        Subscription::new(self, newest, since, None, self.last_sequence())
    }

    /// A subscriber to one session: to what comes after event `after`, as far as it is
    /// kept; without `after`, from the start of the running turn or, between turns, from
    /// now on.
    pub(crate) fn subscribe_session(
        self: &Arc<Self>,
        session_id: &Arc<str>,
        after: Option<u64>,
    ) -> Subscription {
        let chain = lock(&self.chain);
        let of_session = |link: &&Arc<Link>| {
            link.turn()
                .is_some_and(|log| log.session_id() == session_id)
        };
        let start = match after {
            Some(_) => chain.recent.iter().find(of_session),
            None => chain
                .recent
                .back()
                .filter(of_session)
                .filter(|link| link.turn().is_some_and(|log| !log.has_ended())),
        };
        let first = Arc::clone(start.unwrap_or(&chain.newest));
        let after = match (after, start) {
            (Some(after), _) => after,
            (None, Some(_)) => 0,
            (None, None) => self.last_sequence(),
        };
        let since = chain.newest.number;
        Subscription::new(self, first, since, Some(Arc::clone(session_id)), after)
    }
}

//! Where events go: one append-only log per turn, and subscribers as cursors into it.
//!
//! Numbering, coalescing, replay and any number of subscribers all follow from that. A slow or
//! late subscriber costs no memory of its own: the log holds each text once. What the logs of
//! past turns take together is limited; a subscriber that falls behind further is told.

mod chain;
mod entries;
mod log;
mod position;
pub(crate) mod size;
mod subscription;
mod turn;
mod wakers;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) use entries::DeltaKind;
pub(crate) use log::TurnLog;
pub use log::TurnOutcome;
pub use position::Coalescing;
pub use subscription::Subscription;
pub use turn::Turn;

use super::contain::lock;
use super::event::AgentEventKind;
use chain::{Chain, Content};

/// The events of an agent's life: a chain of turn logs.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// Number of the newest event. Only the running turn's log raises it.
    sequence: Arc<AtomicU64>,
    /// Written when a turn begins, a session closes, and a subscriber comes, goes or takes the
    /// next turn. A turn's log may be locked under it, never the other way round.
    chain: Mutex<Chain>,
}

impl EventLog {
    /// An empty one, whose ended turns take at most `limit_bytes` together.
    pub(crate) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            sequence: Arc::new(AtomicU64::new(0)),
            chain: Mutex::new(Chain::new(limit_bytes)),
        })
    }

    /// Number of the newest event.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Begins the log of a turn.
    pub(crate) fn begin_turn(&self, session_id: &Arc<str>, turn_id: &Arc<str>) -> Arc<TurnLog> {
        let log = Arc::new(TurnLog::new(session_id, turn_id, &self.sequence));
        self.add(Content::Turn(Arc::clone(&log)));
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
        self.add(Content::Turn(Arc::new(log)));
    }

    /// Tells subscribers of a session that nothing will follow.
    pub(crate) fn close_session(&self, session_id: &Arc<str>) {
        self.add(Content::SessionClosed(Arc::clone(session_id)));
    }

    /// Tells all subscribers that nothing will follow.
    pub(crate) fn close(&self) {
        let woken = lock(&self.chain).close();
        woken.wake();
    }

    fn add(&self, content: Content) {
        let woken = lock(&self.chain).add(content);
        woken.wake();
    }

    /// The log of a running or recent turn.
    pub(crate) fn turn(&self, turn_id: &str) -> Option<Arc<TurnLog>> {
        // What is told between turns has an empty id.
        let named = !turn_id.is_empty();
        named.then(|| lock(&self.chain).turn(turn_id)).flatten()
    }

    /// A subscriber to all sessions, from now on.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        let after = self.last_sequence();
        let reader = lock(&self.chain).read_all(after);
        Subscription::new(self, reader, after)
    }

    /// A subscriber to one session: to what comes after event `after`, as far as it is kept;
    /// without `after`, from the start of the running turn or, between turns, from now on.
    pub(crate) fn subscribe_session(
        self: &Arc<Self>,
        session_id: &Arc<str>,
        after: Option<u64>,
    ) -> Subscription {
        // A number that no event has yet means: from now on.
        let after = after.map(|after| after.min(self.last_sequence()));
        let reader = lock(&self.chain).read_session(session_id, after);
        Subscription::new(self, reader, after.unwrap_or(0))
    }
}

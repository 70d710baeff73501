//! The right to work in a session, for one turn or one compaction.

use std::sync::Arc;

use super::{OpenSession, SessionCore};
use crate::agent::error::AgentError;
use crate::agent::event::{AgentEventKind, TurnStatus};
use crate::agent::event_log::TurnLog;
use crate::agent::provider::Usage;

/// Holds what a session works with until it is given back.
///
/// However its holder ends, the session goes on: dropped without [`give_back`](Self::give_back)
/// (a panic, a runtime that is shut down) it ends the log of its turn and gives the work back.
pub(crate) struct Lease {
    open: Arc<OpenSession>,
    /// Absent once it was given back.
    work: Option<Box<SessionCore>>,
    /// The events of the turn; a compaction has none.
    log: Option<Arc<TurnLog>>,
}

impl Lease {
    /// The lease of a turn.
    pub(crate) fn of_turn(
        open: &Arc<OpenSession>,
        work: Box<SessionCore>,
        log: &Arc<TurnLog>,
    ) -> Self {
        Self {
            open: Arc::clone(open),
            work: Some(work),
            log: Some(Arc::clone(log)),
        }
    }

    /// The lease of what runs between turns.
    pub(crate) fn between_turns(open: &Arc<OpenSession>, work: Box<SessionCore>) -> Self {
        Self {
            open: Arc::clone(open),
            work: Some(work),
            log: None,
        }
    }

    pub(crate) fn open(&self) -> &Arc<OpenSession> {
        &self.open
    }

    /// What the session works with; nothing once it was given back.
    pub(crate) fn work(&mut self) -> Option<&mut SessionCore> {
        self.work.as_deref_mut()
    }

    /// Gives the work back and tells the turn's last event in the same moment.
    pub(crate) fn give_back(mut self, last: Option<AgentEventKind>) {
        self.settle(last);
    }

    fn settle(&mut self, last: Option<AgentEventKind>) {
        let Some(work) = self.work.take() else { return };
        let log = self.log.take();
        let woken = self
            .open
            .give_back(work, || log.zip(last).map(|(log, last)| log.end(last)));
        // Outside the lock: a reader may go on from within its waker.
        if let Some(woken) = woken {
            woken.wake();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let error = if std::thread::panicking() {
            AgentError::internal("the turn panicked")
        } else {
            AgentError::agent_shut_down()
        };
        let last = self.work.as_ref().map(|work| AgentEventKind::TurnComplete {
            status: TurnStatus::Failed,
            error: Some(Box::new(error)),
            stop_reason: None,
            assistant_output: Arc::default(),
            usage: Usage::default(),
            session_usage: work.usage,
            context_tokens: work.context.tokens(),
            context_window: 0,
        });
        self.settle(last);
    }
}

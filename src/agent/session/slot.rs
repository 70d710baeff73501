//! The one place a session can be open in (chapters 6.2 and 10).

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::SessionInner;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;

/// Holds at most one session.
#[derive(Default)]
pub(crate) struct Slot {
    held: Mutex<Held>,
    /// Told when an opening is over, one way or another.
    opened: Notify,
}

#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    /// A session is being created, or this one is being resumed.
    Opening(Option<Arc<str>>),
    Open(Arc<SessionInner>),
    /// The agent was shut down: nothing is opened any more.
    Sealed,
}

/// The right to put a session into the slot; dropped unused, the slot is free again.
pub(crate) struct SlotTicket {
    slot: Arc<Slot>,
    used: bool,
}

impl Slot {
    pub(crate) fn current(&self) -> Option<Arc<SessionInner>> {
        match &*lock(&self.held) {
            Held::Open(session) => Some(Arc::clone(session)),
            Held::Nothing | Held::Opening(_) | Held::Sealed => None,
        }
    }

    /// Whether a session is open, or being resumed.
    pub(crate) fn holds(&self, session_id: &str) -> bool {
        match &*lock(&self.held) {
            Held::Open(session) => &*session.id == session_id,
            Held::Opening(Some(id)) => &**id == session_id,
            Held::Nothing | Held::Opening(None) | Held::Sealed => false,
        }
    }

    /// Whether the slot could be taken.
    ///
    /// # Errors
    /// `SESSION_BUSY`, `AGENT_SHUT_DOWN`.
    pub(crate) fn check_free(&self) -> Result<(), AgentError> {
        lock(&self.held).check_free()
    }

    /// Takes the slot, atomically: for a stored session, or for a new one.
    ///
    /// # Errors
    /// `SESSION_BUSY`, `AGENT_SHUT_DOWN`.
    pub(crate) fn take(
        self: &Arc<Self>,
        session_id: Option<&Arc<str>>,
    ) -> Result<SlotTicket, AgentError> {
        let mut held = lock(&self.held);
        held.check_free()?;
        *held = Held::Opening(session_id.cloned());
        Ok(SlotTicket {
            slot: Arc::clone(self),
            used: false,
        })
    }

    /// Waits for an opening that is under way. Answers the session that is open then.
    pub(crate) async fn occupant(&self) -> Option<Arc<SessionInner>> {
        self.when_opened(|_| ()).await
    }

    /// Waits for an opening that is under way. Answers the session that is open then; if
    /// there is none, none can be opened any more.
    pub(crate) async fn settle(&self) -> Option<Arc<SessionInner>> {
        self.when_opened(|held| *held = Held::Sealed).await
    }

    /// `if_none` is done with a slot that holds no session, before anybody else can take it.
    async fn when_opened(&self, if_none: impl Fn(&mut Held)) -> Option<Arc<SessionInner>> {
        loop {
            let opened = self.opened.notified();
            let mut opened = std::pin::pin!(opened);
            // Listening begins before looking, so that no change is missed.
            opened.as_mut().enable();
            {
                let mut held = lock(&self.held);
                match &*held {
                    Held::Open(session) => return Some(Arc::clone(session)),
                    Held::Nothing | Held::Sealed => {
                        if_none(&mut held);
                        return None;
                    }
                    Held::Opening(_) => {}
                }
            }
            opened.await;
        }
    }

    /// Lets nothing be opened any more, not even by who has a ticket. The session that is
    /// open is let go.
    pub(crate) fn seal(&self) {
        let let_go = std::mem::replace(&mut *lock(&self.held), Held::Sealed);
        // Dropped here, outside the lock.
        drop(let_go);
    }

    /// Frees the slot if this session holds it.
    pub(crate) fn free(&self, session_id: &str) {
        let mut held = lock(&self.held);
        if matches!(&*held, Held::Open(session) if &*session.id == session_id) {
            *held = Held::Nothing;
        }
    }
}

impl Held {
    fn check_free(&self) -> Result<(), AgentError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Opening(_) => Err(AgentError::session_busy(
                "another session is being opened; try again",
            )),
            Self::Open(session) => Err(AgentError::session_busy(format!(
                "the session \"{}\" is open; close it first or pass replace",
                session.id
            ))),
            Self::Sealed => Err(AgentError::agent_shut_down()),
        }
    }
}

impl SlotTicket {
    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Puts the session into the slot.
    ///
    /// # Errors
    /// `AGENT_SHUT_DOWN`.
    pub(crate) fn fill(mut self, session: &Arc<SessionInner>) -> Result<(), AgentError> {
        let mut held = lock(&self.slot.held);
        if let Held::Sealed = &*held {
            return Err(AgentError::agent_shut_down());
        }
        *held = Held::Open(Arc::clone(session));
        self.used = true;
        drop(held);
        self.slot.opened.notify_waiters();
        Ok(())
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        if !self.used {
            let mut held = lock(&self.slot.held);
            if let Held::Opening(_) = &*held {
                *held = Held::Nothing;
            }
            drop(held);
            self.slot.opened.notify_waiters();
        }
    }
}

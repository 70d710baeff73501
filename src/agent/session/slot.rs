//! The one place a session can be open in (chapters 6.2 and 10).

use std::sync::{Arc, Mutex};

use super::SessionInner;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;

/// Holds at most one session.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Held>);

#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    /// A session is being created or resumed.
    Opening,
    Open(Arc<SessionInner>),
}

/// The right to put a session into the slot; dropped unused, the slot is free again.
pub(crate) struct SlotTicket {
    slot: Arc<Slot>,
    used: bool,
}

impl Slot {
    pub(crate) fn current(&self) -> Option<Arc<SessionInner>> {
        match &*lock(&self.0) {
            Held::Open(session) => Some(Arc::clone(session)),
            Held::Nothing | Held::Opening => None,
        }
    }

    /// Takes the slot, atomically.
    ///
    /// # Errors
    /// `SESSION_BUSY`.
    pub(crate) fn take(self: &Arc<Self>) -> Result<SlotTicket, AgentError> {
        let mut held = lock(&self.0);
        match &*held {
            Held::Nothing => {
                *held = Held::Opening;
                Ok(SlotTicket {
                    slot: Arc::clone(self),
                    used: false,
                })
            }
            Held::Opening => Err(AgentError::session_busy(
                "another session is being opened; try again",
            )),
            Held::Open(session) => Err(AgentError::session_busy(format!(
                "the session \"{}\" is open; close it first or pass replace",
                session.id
            ))),
        }
    }

    /// Frees the slot if this session holds it.
    pub(crate) fn free(&self, session_id: &str) {
        let mut held = lock(&self.0);
        if matches!(&*held, Held::Open(session) if &*session.id == session_id) {
            *held = Held::Nothing;
        }
    }
}

impl SlotTicket {
    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    pub(crate) fn fill(mut self, session: &Arc<SessionInner>) {
        self.used = true;
        *lock(&self.slot.0) = Held::Open(Arc::clone(session));
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        if !self.used {
            *lock(&self.slot.0) = Held::Nothing;
        }
    }
}

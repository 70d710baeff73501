//! The one place a session can be open in, and who may touch a stored one (chapters 6.2
//! and 10).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::SessionInner;
use crate::agent::contain::lock;
use crate::agent::error::{AgentError, ErrorCode};

/// Holds at most one session.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    /// Told when an opening or a claim is over.
    settled: Notify,
    /// Those who replace what is open, in the order they came.
    queue: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    held: Held,
    /// Stored sessions that are deleted or written to just now, without being open.
    claimed: HashSet<Arc<str>>,
}

#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    /// A session is being created, or this one is being resumed.
    Opening(Option<Arc<str>>, CancellationToken),
    Open(Arc<SessionInner>),
    /// The agent was shut down: nothing is opened any more.
    Sealed,
}

/// The right to put a session into the slot; dropped unused, the slot is free again.
pub(crate) struct SlotTicket {
    slot: Arc<Slot>,
    /// Fires when somebody waits for the slot.
    contended: CancellationToken,
    /// What the sessions that were closed for it could not store.
    losses: Vec<String>,
    used: bool,
}

/// A stored session that nobody opens until this is dropped.
pub(crate) struct Claim<'a> {
    slot: &'a Slot,
    session_id: Arc<str>,
}

impl Slot {
    pub(crate) fn current(&self) -> Option<Arc<SessionInner>> {
        match &lock(&self.state).held {
            Held::Open(session) => Some(Arc::clone(session)),
            Held::Nothing | Held::Opening(..) | Held::Sealed => None,
        }
    }

    /// Whether the slot could be taken.
    ///
    /// # Errors
    /// `SESSION_BUSY`, `AGENT_SHUT_DOWN`.
    pub(crate) fn check_free(&self) -> Result<(), AgentError> {
        lock(&self.state).held.check_free()
    }

    /// Takes the slot, atomically: for a stored session, or for a new one. A claim on that
    /// session is waited for; it is short.
    ///
    /// # Errors
    /// `SESSION_BUSY`, `AGENT_SHUT_DOWN`.
    pub(crate) async fn take(
        self: &Arc<Self>,
        session_id: Option<&Arc<str>>,
    ) -> Result<SlotTicket, AgentError> {
        self.when(|state| {
            if let Err(refused) = state.held.check_free() {
                return Some(Err(refused));
            }
            if session_id.is_some_and(|id| state.claimed.contains(id)) {
                return None;
            }
            let contended = CancellationToken::new();
            state.held = Held::Opening(session_id.cloned(), contended.clone());
            Some(Ok(SlotTicket {
                slot: Arc::clone(self),
                contended,
                losses: Vec::new(),
                used: false,
            }))
        })
        .await
    }

    /// Takes the slot for whoever replaces what is open: closes that first, also what is
    /// still being opened. Of several the last one to ask has it in the end.
    ///
    /// # Errors
    /// `AGENT_SHUT_DOWN`, `INTERNAL`.
    pub(crate) async fn take_over(
        self: &Arc<Self>,
        session_id: Option<&Arc<str>>,
    ) -> Result<SlotTicket, AgentError> {
        let _first_in_queue = self.queue.lock().await;
        let mut losses = Vec::new();
        loop {
            if let Some(open) = self.wait_open().await {
                losses.extend(open.close_for_replace().await?);
            }
            match self.take(session_id).await {
                // Somebody was quicker; that session makes way, too.
                Err(refused) if refused.code == ErrorCode::SessionBusy => {}
                taken => {
                    return taken.map(|mut ticket| {
                        ticket.losses = losses;
                        ticket
                    });
                }
            }
        }
    }

    /// Claims a stored session; nothing if it is open or being opened.
    pub(crate) async fn claim(&self, session_id: &Arc<str>) -> Option<Claim<'_>> {
        self.when(|state| {
            if state.holds(session_id) {
                return Some(None);
            }
            let is_mine = state.claimed.insert(Arc::clone(session_id));
            is_mine.then(|| {
                Some(Claim {
                    slot: self,
                    session_id: Arc::clone(session_id),
                })
            })
        })
        .await
    }

    /// Waits for an opening that is under way. Answers the session that is open then; if
    /// there is none, none can be opened any more.
    pub(crate) async fn settle(&self) -> Option<Arc<SessionInner>> {
        self.when(|state| match &state.held {
            Held::Opening(..) => None,
            Held::Open(session) => Some(Some(Arc::clone(session))),
            Held::Nothing | Held::Sealed => {
                state.held = Held::Sealed;
                Some(None)
            }
        })
        .await
    }

    /// Waits for an opening that is under way, whose hooks have their limit from now on.
    /// Answers the session that is open then.
    async fn wait_open(&self) -> Option<Arc<SessionInner>> {
        self.when(|state| match &state.held {
            Held::Opening(_, contended) => {
                contended.cancel();
                None
            }
            Held::Open(session) => Some(Some(Arc::clone(session))),
            Held::Nothing | Held::Sealed => Some(None),
        })
        .await
    }

    /// Looks, and looks again whenever something is settled, until there is an answer.
    async fn when<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let settled = self.settled.notified();
            let mut settled = std::pin::pin!(settled);
            // Listening begins before looking, so that no change is missed.
            settled.as_mut().enable();
            if let Some(answer) = look(&mut lock(&self.state)) {
                return answer;
            }
            settled.await;
        }
    }

    /// Lets nothing be opened any more, not even by who has a ticket. The session that is
    /// open is let go.
    pub(crate) fn seal(&self) {
        let let_go = std::mem::replace(&mut lock(&self.state).held, Held::Sealed);
        // Dropped here, outside the lock.
        drop(let_go);
    }

    /// Frees the slot if this session holds it.
    pub(crate) fn free(&self, session_id: &str) {
        let mut state = lock(&self.state);
        if matches!(&state.held, Held::Open(session) if &*session.open.id == session_id) {
            state.held = Held::Nothing;
        }
    }
}

impl State {
    fn holds(&self, session_id: &str) -> bool {
        match &self.held {
            Held::Open(session) => &*session.open.id == session_id,
            Held::Opening(Some(id), _) => &**id == session_id,
            Held::Nothing | Held::Opening(None, _) | Held::Sealed => false,
        }
    }
}

impl Held {
    fn check_free(&self) -> Result<(), AgentError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Opening(..) => Err(AgentError::session_busy(
                "another session is being opened; try again or pass replace",
            )),
            Self::Open(session) => Err(AgentError::session_busy(format!(
                "the session \"{}\" is open; close it first or pass replace",
                session.open.id
            ))),
            Self::Sealed => Err(AgentError::agent_shut_down()),
        }
    }
}

impl SlotTicket {
    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// What the sessions that were closed for it could not store, each a sentence.
    pub(crate) fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Fires when somebody waits for the slot.
    pub(crate) fn contended(&self) -> &CancellationToken {
        &self.contended
    }

    /// Puts the session into the slot.
    ///
    /// # Errors
    /// `AGENT_SHUT_DOWN`.
    pub(crate) fn fill(mut self, session: &Arc<SessionInner>) -> Result<(), AgentError> {
        let mut state = lock(&self.slot.state);
        if let Held::Sealed = &state.held {
            return Err(AgentError::agent_shut_down());
        }
        state.held = Held::Open(Arc::clone(session));
        self.used = true;
        drop(state);
        self.slot.settled.notify_waiters();
        Ok(())
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        if !self.used {
            let mut state = lock(&self.slot.state);
            if let Held::Opening(..) = &state.held {
                state.held = Held::Nothing;
            }
            drop(state);
            self.slot.settled.notify_waiters();
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        lock(&self.slot.state).claimed.remove(&self.session_id);
        self.slot.settled.notify_waiters();
    }
}

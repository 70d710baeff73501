//! What is going on in a session, and who may begin something.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::SessionCore;
use crate::agent::catalog::Model;
use crate::agent::error::AgentError;
use crate::agent::journal::Journal;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum SessionState {
    /// Nothing; it takes a message.
    Idle,
    /// A turn runs.
    Running,
    /// A turn was cancelled and waits for what cannot be interrupted.
    Cancelling,
    /// The context is being compacted by command.
    Compacting,
    /// It is closed, or about to be.
    Closed,
}

pub(crate) struct State {
    pub(crate) activity: Activity,
    /// The one close there is, once it began: nothing new starts from then on.
    pub(crate) closing: Option<watch::Receiver<Closing>>,
    pub(crate) model: Model,
    pub(crate) title: Option<String>,
    pub(crate) message_count: u32,
    pub(crate) context_tokens: u64,
    pub(crate) journal: Arc<Journal>,
}

/// How far a close is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    /// How it ended for the storage: from then on the slot is free.
    pub(crate) stored: Option<Result<(), AgentError>>,
    /// Whether memories are extracted, too, or given up.
    pub(crate) over: bool,
}

/// Who holds the session's work.
pub(crate) enum Activity {
    Idle(Box<SessionCore>),
    Turn(Running),
    Compacting(CancellationToken),
    Closed,
}

pub(crate) struct Running {
    turn_id: Arc<str>,
    cancel: CancellationToken,
    phase: Phase,
    /// To stop a turn that a shutdown cannot wait for.
    task: Option<AbortHandle>,
}

/// Running → Cancelling or Finishing, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Cancelling,
    Finishing,
}

impl Activity {
    pub(crate) fn turn(turn_id: &Arc<str>, cancel: &CancellationToken) -> Self {
        Self::Turn(Running {
            turn_id: Arc::clone(turn_id),
            cancel: cancel.clone(),
            phase: Phase::Running,
            task: None,
        })
    }

    pub(crate) fn turn_id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Turn(running) => Some(&running.turn_id),
            Self::Idle(_) | Self::Compacting(_) | Self::Closed => None,
        }
    }

    pub(crate) fn public(&self) -> SessionState {
        match self {
            Self::Idle(_) => SessionState::Idle,
            Self::Turn(running) => match running.phase {
                Phase::Running | Phase::Finishing => SessionState::Running,
                Phase::Cancelling => SessionState::Cancelling,
            },
            Self::Compacting(_) => SessionState::Compacting,
            Self::Closed => SessionState::Closed,
        }
    }
}

impl State {
    /// # Errors
    /// `SESSION_BUSY`, or `SESSION_NOT_FOUND` for a closed session.
    pub(crate) fn check_idle(&self) -> Result<(), AgentError> {
        if self.closing.is_some() {
            return Err(closed());
        }
        match &self.activity {
            Activity::Idle(_) => Ok(()),
            Activity::Turn(running) => Err(AgentError::session_busy(match running.phase {
                Phase::Cancelling => "the turn is being cancelled; wait for its end",
                Phase::Running | Phase::Finishing => {
                    "a turn is running; wait for its end or cancel it"
                }
            })),
            Activity::Compacting(_) => Err(AgentError::session_busy(
                "the context is being compacted; wait for its end or cancel it",
            )),
            Activity::Closed => Err(closed()),
        }
    }

    /// Takes the work out; the caller sets what goes on instead.
    pub(crate) fn take_idle(&mut self) -> Result<Box<SessionCore>, AgentError> {
        self.check_idle()?;
        self.take_work().ok_or_else(closed)
    }

    /// Takes the work of an idle session, also while it is being closed.
    pub(crate) fn take_work(&mut self) -> Option<Box<SessionCore>> {
        match std::mem::replace(&mut self.activity, Activity::Closed) {
            Activity::Idle(work) => Some(work),
            other => {
                self.activity = other;
                None
            }
        }
    }

    pub(crate) fn set_task(&mut self, turn_id: &str, task: AbortHandle) {
        if let Activity::Turn(running) = &mut self.activity
            && &*running.turn_id == turn_id
        {
            running.task = Some(task);
        }
    }

    /// The token to fire for a cancel, if something runs that it means, and whether it comes
    /// in time. One that comes too late changes no outcome, but the turn's last hooks have
    /// their limit from then on.
    pub(crate) fn cancel(&mut self, turn_id: Option<&str>) -> Option<(CancellationToken, bool)> {
        match &mut self.activity {
            Activity::Turn(running) => {
                if turn_id.is_some_and(|id| id != &*running.turn_id) {
                    return None;
                }
                let in_time = running.phase != Phase::Finishing;
                if in_time {
                    running.phase = Phase::Cancelling;
                }
                Some((running.cancel.clone(), in_time))
            }
            Activity::Compacting(cancel) if turn_id.is_none() => Some((cancel.clone(), true)),
            Activity::Compacting(_) | Activity::Idle(_) | Activity::Closed => None,
        }
    }

    pub(crate) fn begin_finishing(&mut self) -> bool {
        match &mut self.activity {
            Activity::Turn(running) if running.phase == Phase::Cancelling => false,
            Activity::Turn(running) => {
                running.phase = Phase::Finishing;
                true
            }
            Activity::Idle(_) | Activity::Compacting(_) | Activity::Closed => true,
        }
    }

    /// The running turn and the way to stop its task.
    pub(crate) fn running_task(&self) -> Option<(Arc<str>, AbortHandle)> {
        match &self.activity {
            Activity::Turn(running) => running
                .task
                .clone()
                .map(|task| (Arc::clone(&running.turn_id), task)),
            Activity::Idle(_) | Activity::Compacting(_) | Activity::Closed => None,
        }
    }
}

fn closed() -> AgentError {
    let mut error = AgentError::session_not_found("");
    error.message = "the session is closed; resume it or create another".to_owned();
    error
}

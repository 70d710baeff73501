//! Whether code runs inside a call of a tool, so that the call does not wait for itself.
//!
//! Closing a session waits for its turn, the turn for its tool: a tool that awaits the close of
//! its own session would wait until its time is up. The mark goes with the task of the call; a
//! task that the tool spawns does not carry it, and may wait for the close as anyone may.

use std::future::Future;
use std::sync::Arc;

use crate::agent::error::AgentError;

tokio::task_local! {
    static CALL: Marked;
}

/// The call that a task belongs to.
#[derive(Clone)]
pub(crate) struct Marked {
    session_id: Arc<str>,
    tool_name: Arc<str>,
}

impl Marked {
    pub(crate) fn new(session_id: &Arc<str>, tool_name: &Arc<str>) -> Self {
        Self {
            session_id: Arc::clone(session_id),
            tool_name: Arc::clone(tool_name),
        }
    }

    /// Marks everything that this future awaits.
    pub(crate) fn future<F: Future>(self, call: F) -> impl Future<Output = F::Output> {
        CALL.scope(self, call)
    }
}

/// Carries the mark of the calling task over to another thread.
pub(crate) fn carried<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let mark = CALL.try_with(Marked::clone).ok();
    move || match mark {
        Some(mark) => CALL.sync_scope(mark, run),
        None => run(),
    }
}

/// The tool of this session that the calling code is part of.
pub(crate) fn tool_of(session_id: &str) -> Option<Arc<str>> {
    CALL.try_with(|call| (*call.session_id == *session_id).then(|| Arc::clone(&call.tool_name)))
        .ok()
        .flatten()
}

/// Refuses what would wait for the call that asks for it.
///
/// # Errors
/// `SESSION_BUSY`.
pub(crate) fn refuse(session_id: &str, what: &str) -> Result<(), AgentError> {
    match tool_of(session_id) {
        None => Ok(()),
        Some(tool) => Err(AgentError::session_busy(format!(
            "the tool \"{tool}\" cannot {what} from inside its own call, because that waits for the call to end; do it after the turn, or in a task that the tool does not await"
        ))),
    }
}

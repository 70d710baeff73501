//! What a call can know and use of its surroundings.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::event_log::TurnLog;

/// What a call can know and use of its surroundings.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// Fires when the call has run out of time; never on a user's cancel.
    pub timed_out: CancellationToken,
    /// Fires when the user cancels the turn or closes the session. The agent waits for the call
    /// all the same: a tool that can end early does so and gives what it has, others ignore it.
    pub cancel_requested: CancellationToken,
    progress: Option<ProgressSink>,
}

#[derive(Clone)]
struct ProgressSink {
    log: Arc<TurnLog>,
    call_id: Arc<str>,
}

impl ToolContext {
    pub(super) fn new(
        log: &Arc<TurnLog>,
        call_id: &Arc<str>,
        timed_out: CancellationToken,
        cancel_requested: CancellationToken,
    ) -> Self {
        Self {
            session_id: Arc::clone(log.session_id()),
            turn_id: Arc::clone(log.turn_id()),
            timed_out,
            cancel_requested,
            progress: Some(ProgressSink {
                log: Arc::clone(log),
                call_id: Arc::clone(call_id),
            }),
        }
    }

    /// A context outside of any turn, to test a tool with. Progress goes nowhere; the tokens
    /// fire when the test says so.
    #[must_use]
    pub fn detached() -> Self {
        Self {
            session_id: "detached".into(),
            turn_id: "detached".into(),
            timed_out: CancellationToken::new(),
            cancel_requested: CancellationToken::new(),
            progress: None,
        }
    }

    /// Tells the user what the tool is doing: a `ToolProgress` event. Longer texts are cut
    /// at 4,096 bytes; what comes after the call has ended is dropped.
    pub fn progress(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress
            && !self.timed_out.is_cancelled()
        {
            sink.log.progress(&sink.call_id, message.into());
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session_id", &self.session_id)
            .field("turn_id", &self.turn_id)
            .finish_non_exhaustive()
    }
}

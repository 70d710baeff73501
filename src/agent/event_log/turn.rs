//! The handle of one turn.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::log::{TurnLog, TurnOutcome};
use super::position::{Coalescing, Position};
use crate::agent::error::AgentError;
use crate::agent::event::{AgentEvent, TurnStatus};

/// The events of one turn, from its start to its last: a `Stream` of [`AgentEvent`]s, and a
/// future of its end.
///
/// With `futures_util::StreamExt` in scope, `turn.next().await` gives the next event, and
/// `None` after the last. With `turn.await`, [`text`](Self::text) or
/// [`outcome`](Self::outcome) the events need not be read. Dropping it does not cancel the
/// turn. A consumer that is more than 64 deltas behind gets neighbouring deltas of one kind
/// coalesced; of the progress of a tool call only the newest 32 messages are kept.
///
/// # Errors
/// `turn.await` gives the error that the turn failed with, like [`text`](Self::text); a
/// cancelled turn is an outcome with [`TurnStatus::Cancelled`].
///
/// # Examples
/// ```
/// use youyou_agent::{AgentError, Session, TurnStatus};
///
/// async fn ask(session: &Session) -> Result<(), AgentError> {
///     let answer = session.send("What is a bush called that bears tea?")?.text().await?;
///     println!("{answer}");
///
///     let outcome = session.send("Tell me more.")?.await?;
///     if outcome.status == TurnStatus::Cancelled {
///         println!("(you stopped it)");
///     }
///     Ok(())
/// }
/// ```
pub struct Turn {
    log: Arc<TurnLog>,
    position: Position,
    coalescing: Coalescing,
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
            coalescing: Coalescing::WhenLagging,
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

    /// Sets when neighbouring deltas are coalesced.
    #[must_use]
    pub fn coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Cancels the turn. Returns whether it was running; a late cancel changes nothing.
    /// The model stops at once, running tools are awaited, and then comes `TurnCancelled`.
    #[must_use = "a late cancel changes nothing and says so"]
    pub fn cancel(&self) -> bool {
        (self.cancel)()
    }

    /// Waits for the end of the turn, whether or not its events are read. A failed turn is an
    /// outcome, too.
    pub async fn outcome(&self) -> TurnOutcome {
        poll_fn(|context| self.log.poll_outcome(context)).await
    }

    /// Waits for the end of the turn and gives the text of its last response; of a cancelled
    /// turn all text that was shown.
    ///
    /// # Errors
    /// The error that the turn failed with.
    pub async fn text(&self) -> Result<String, AgentError> {
        let outcome = succeeded(self.outcome().await)?;
        Ok(match outcome.status {
            TurnStatus::Cancelled => self.log.text(),
            TurnStatus::Completed | TurnStatus::Failed => outcome.assistant_output.to_string(),
        })
    }
}

fn succeeded(outcome: TurnOutcome) -> Result<TurnOutcome, AgentError> {
    match outcome.status {
        TurnStatus::Completed | TurnStatus::Cancelled => Ok(outcome),
        TurnStatus::Failed => Err(outcome.error.unwrap_or_else(|| {
            AgentError::internal("the turn failed and the agent did not say why")
        })),
    }
}

impl IntoFuture for Turn {
    type Output = Result<TurnOutcome, AgentError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { succeeded(self.outcome().await) })
    }
}

impl Stream for Turn {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let this = self.get_mut();
        this.log
            .poll_event(context, &mut this.position, this.coalescing)
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

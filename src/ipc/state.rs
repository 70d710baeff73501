//! What the commands share.

use std::future::Future;
use std::sync::Arc;

use futures_util::stream;
use tauri::ipc::Channel;
use tokio_util::sync::CancellationToken;

use super::page::Page;
use super::requests::{Cancelled, Requests};
use super::run::wait_for;
use super::subscriptions::Subscriptions;
use super::{EXIT_MARGIN, commands::TurnAccepted};
use crate::agent::contain;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEvent;
use crate::{Agent, Session, SessionInfo, Turn};

/// The agent as pages reach it. Managed by Tauri.
pub(crate) struct Ipc {
    pub(super) agent: Agent,
    pub(super) subscriptions: Arc<Subscriptions>,
    /// Answers of `create_session`.
    pub(super) sessions: Requests<SessionInfo>,
    /// Answers of `send_message` and `retry_turn`: ids of turns.
    pub(super) turns: Requests<Arc<str>>,
    /// What ends a `compact`.
    pub(super) compactions: Requests<CancellationToken>,
    cancel_when_unwatched: bool,
    #[cfg(feature = "__ipc-test")]
    pub(super) panics: std::sync::atomic::AtomicBool,
}

impl Ipc {
    pub(super) fn new(agent: Agent, cancel_when_unwatched: bool) -> Self {
        Self {
            agent,
            subscriptions: Arc::default(),
            sessions: Requests::default(),
            turns: Requests::default(),
            compactions: Requests::default(),
            cancel_when_unwatched,
            #[cfg(feature = "__ipc-test")]
            panics: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Answers a command. A panic becomes `INTERNAL`: a command that panics would never
    /// settle its promise.
    pub(super) async fn answer<T>(
        &self,
        command: &str,
        work: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        let contained = contain::future(|| {
            #[cfg(feature = "__ipc-test")]
            self.panic_if_wanted();
            work
        });
        contained.await.unwrap_or_else(|panicked| {
            Err(AgentError::internal(format!(
                "the command {command} failed: {panicked}"
            )))
        })
    }

    #[cfg(feature = "__ipc-test")]
    fn panic_if_wanted(&self) {
        assert!(
            !self.panics.load(std::sync::atomic::Ordering::SeqCst),
            "on purpose"
        );
    }

    /// The open session, which must be this one.
    pub(super) fn session(&self, session_id: &str) -> Result<Session, AgentError> {
        self.agent
            .current_session()
            .filter(|session| session.id() == session_id)
            .ok_or_else(|| AgentError {
                message: format!(
                    "the session \"{session_id}\" is not open; create or resume it first"
                ),
                ..AgentError::session_not_found(session_id)
            })
    }

    fn running_turn(&self) -> Option<Arc<str>> {
        Some(self.agent.current_session()?.info().turn_id?.into())
    }

    /// Starts a turn, or finds the one that the same request started before, and forwards
    /// it to the page from its start.
    pub(super) async fn start_turn(
        &self,
        page: Page,
        request_id: Option<String>,
        channel: Channel<AgentEvent>,
        start: impl FnOnce() -> Result<Turn, AgentError>,
    ) -> Result<TurnAccepted, AgentError> {
        let started = || async { Ok(Arc::from(start()?.id())) };
        let cancel = |turn_id: &Arc<str>| {
            self.cancel_turn(turn_id);
        };
        let turn_id = self.turns.once(request_id, started, cancel).await?;
        let id = Some(&*turn_id);
        let subscription = match self.agent.turn(&turn_id) {
            Some(turn) => self.subscriptions.open(page, id, turn, channel),
            // A repeat so late that the turn's events are gone: the channel ends at once.
            None => self
                .subscriptions
                .open(page, None, stream::empty(), channel),
        };
        Ok(TurnAccepted {
            turn_id: turn_id.to_string(),
            subscription,
        })
    }

    /// Cancels a turn if it runs; answers whether it did.
    pub(super) fn cancel_turn(&self, turn_id: &str) -> bool {
        self.agent.turn(turn_id).is_some_and(|turn| turn.cancel())
    }

    /// Cancels the turn or the compaction that a request started or will start; answers
    /// whether it runs.
    pub(super) fn cancel_request(&self, request_id: String) -> bool {
        if let Cancelled::Answered(compaction) = self.compactions.cancel(request_id.clone()) {
            let runs = !compaction.is_cancelled();
            compaction.cancel();
            return runs;
        }
        match self.turns.cancel(request_id) {
            Cancelled::Answered(turn_id) => self.cancel_turn(&turn_id),
            Cancelled::Ahead => false,
        }
    }

    /// A webview loads a page: what the page before had is gone.
    pub(super) fn page_loads(&self, webview: &str) {
        self.subscriptions.page_loads(webview);
    }

    /// A window is gone, and all pages in it.
    pub(super) fn window_destroyed(&self, window: &str) {
        let running = self.running_turn();
        let was_last = self
            .subscriptions
            .window_destroyed(window, running.as_deref());
        if let Some(turn_id) = running.filter(|_| was_last && self.cancel_when_unwatched) {
            tracing::info!(%turn_id, "the last window that watched is gone: the turn is cancelled");
            self.cancel_turn(&turn_id);
        }
    }

    /// Shuts the agent down within its limit. Forwarders are told to stop, not waited for:
    /// a send may wait for the very thread this runs on.
    pub(super) fn shut_down(&self) {
        self.subscriptions.close_all();
        let agent = self.agent.clone();
        let limit = agent.shutdown_limit() + EXIT_MARGIN;
        match wait_for(limit, async move { agent.shutdown().await }) {
            Ok(report) => {
                for problem in report.problems {
                    tracing::warn!(problem, "shutting down the agent");
                }
            }
            Err(unanswered) => tracing::error!(?unanswered, "the agent did not shut down"),
        }
    }
}

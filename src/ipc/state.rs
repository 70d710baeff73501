//! What the commands share.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, Shared};
use futures_util::stream;
use tauri::ipc::Channel;
use tokio_util::sync::CancellationToken;

use super::EXIT_MARGIN;
use super::commands::{Attachment, TurnAccepted};
use super::message::{ChannelMessage, RunningTurn};
use super::page::Page;
use super::requests::{Cancelled, Named, Requests};
use super::run::wait_for;
use super::subscriptions::Subscriptions;
use crate::agent::contain;
use crate::agent::error::AgentError;
use crate::agent::event_log::Coalescing;
use crate::{Agent, CompactionOutcome, Session, SessionInfo, Turn};

/// The agent as pages reach it. Managed by Tauri.
pub(crate) struct Ipc {
    pub(super) agent: Agent,
    pub(super) subscriptions: Arc<Subscriptions>,
    /// Answers of `create_session`.
    pub(super) sessions: Requests<SessionInfo>,
    /// What `send_message`, `retry_turn` and `compact` started.
    pub(super) started: Requests<Started>,
    cancel_when_unwatched: bool,
    #[cfg(feature = "__ipc-test")]
    pub(super) panics: std::sync::atomic::AtomicBool,
}

/// What a request started.
#[derive(Debug, Clone)]
pub(super) enum Started {
    /// A turn, by its id.
    Turn(Arc<str>),
    Compaction {
        cancel: CancellationToken,
        outcome: Shared<BoxFuture<'static, Result<CompactionOutcome, AgentError>>>,
    },
}

impl Ipc {
    pub(super) fn new(agent: Agent, cancel_when_unwatched: bool) -> Self {
        Self {
            agent,
            subscriptions: Arc::default(),
            sessions: Requests::default(),
            started: Requests::default(),
            cancel_when_unwatched,
            #[cfg(feature = "__ipc-test")]
            panics: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Runs a command. A panic becomes `INTERNAL`: a command that panics would never settle
    /// its promise.
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
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `AGENT_SHUT_DOWN`.
    pub(super) fn session(&self, session_id: &str) -> Result<Session, AgentError> {
        self.agent.check_running()?;
        self.agent
            .current_session()
            .filter(|session| session.id() == session_id)
            .ok_or_else(|| {
                let mut error = AgentError::session_not_found(session_id);
                error.message =
                    format!("the session \"{session_id}\" is not open; create or resume it first");
                error
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
        request: Option<Named>,
        channel: Channel<ChannelMessage>,
        start: impl FnOnce() -> Result<Turn, AgentError>,
    ) -> Result<TurnAccepted, AgentError> {
        self.subscriptions.check_room(&page)?;
        let begin = || async { Ok(Started::Turn(start()?.id().into())) };
        let Started::Turn(turn_id) = self.once(request, begin).await? else {
            return Err(not_a("turn"));
        };
        let subscription = match self.agent.turn(&turn_id) {
            Some(turn) => {
                // A late repeat finds a turn that has ended, and is no watcher of another.
                let runs = self
                    .running_turn()
                    .is_some_and(|running| running == turn_id);
                let running = runs.then(|| RunningTurn {
                    session_id: turn.session_id().into(),
                    turn_id: Arc::clone(&turn_id),
                    sequence: 0,
                });
                self.subscriptions.open(page, running, turn, channel)
            }
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

    /// Forwards a session's events to the page: what came after `after`, without it the
    /// running turn from its start, and everything later. A number above the newest event
    /// means from now on.
    pub(super) fn attach(
        &self,
        page: Page,
        session_id: &str,
        after: Option<u64>,
        channel: Channel<ChannelMessage>,
    ) -> Result<Attachment, AgentError> {
        let session = self.session(session_id)?;
        self.subscriptions.check_room(&page)?;
        let newest = session.info().last_sequence;
        let after = after.map(|after| after.min(newest));
        let events = session.subscribe(after).coalescing(Coalescing::Always);
        // Read after subscribing: a turn that began in between is among the events.
        let info = session.info();
        let running = info.turn_id.as_deref().map(|turn_id| RunningTurn {
            session_id: info.session_id.as_str().into(),
            turn_id: turn_id.into(),
            sequence: after.unwrap_or(0),
        });
        Ok(Attachment {
            subscription: self.subscriptions.open(page, running, events, channel),
            state: info.state,
            turn_id: info.turn_id,
            last_sequence: newest,
        })
    }

    /// Makes a session's context smaller, or joins the compaction that the same request began.
    pub(super) async fn compact(
        &self,
        session: Session,
        request: Option<Named>,
    ) -> Result<CompactionOutcome, AgentError> {
        let begin = || async {
            let cancel = CancellationToken::new();
            let compacting = {
                let cancel = cancel.clone();
                async move { session.compact_until(cancel).await }
            };
            let outcome = compacting.boxed().shared();
            Ok(Started::Compaction { cancel, outcome })
        };
        match self.once(request, begin).await? {
            Started::Compaction { outcome, .. } => outcome.await,
            Started::Turn(_) => Err(not_a("compaction")),
        }
    }

    async fn once<F>(
        &self,
        request: Option<Named>,
        begin: impl FnOnce() -> F,
    ) -> Result<Started, AgentError>
    where
        F: Future<Output = Result<Started, AgentError>>,
    {
        let cancel = |started: &Started| {
            self.cancel_started(started);
        };
        self.started.once(request, begin, cancel).await
    }

    /// Cancels a turn if it runs; returns whether it did.
    pub(super) fn cancel_turn(&self, turn_id: &str) -> bool {
        self.agent.turn(turn_id).is_some_and(|turn| turn.cancel())
    }

    /// Cancels what a request of the page started or will start; returns whether it runs.
    pub(super) fn cancel_request(
        &self,
        page: &Page,
        request_id: String,
    ) -> Result<bool, AgentError> {
        Ok(match self.started.cancel(page, request_id)? {
            Cancelled::Answered(started) => self.cancel_started(&started),
            Cancelled::Ahead => false,
        })
    }

    fn cancel_started(&self, started: &Started) -> bool {
        match started {
            Started::Turn(turn_id) => self.cancel_turn(turn_id),
            Started::Compaction { cancel, outcome } => {
                let runs = outcome.peek().is_none() && !cancel.is_cancelled();
                cancel.cancel();
                runs
            }
        }
    }

    /// A webview loads a page: what the page before had is gone.
    pub(super) fn page_loads(&self, webview: &str) {
        self.subscriptions.page_loads(webview);
    }

    /// A window is gone, and all pages in it.
    pub(super) fn window_destroyed(&self, window: &str) {
        self.sessions.forget_window(window);
        self.started.forget_window(window);
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

fn not_a(kind: &str) -> AgentError {
    AgentError::invalid_input(format!(
        "the requestId belongs to something that is no {kind}; each request needs an id of its own"
    ))
}

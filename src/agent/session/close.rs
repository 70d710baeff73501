//! Closing a session: in order, within limits, once (chapters 6.2 and 6.3).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::SessionInner;
use super::state::Activity;
use super::work::Work;
use crate::agent::config::AgentConfig;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEventKind;
use crate::agent::hook::SessionEnd;
use crate::agent::hook::registry;
use crate::agent::provider::Usage;
use crate::agent::storage::{SessionEventKind, SessionMetadata};

/// How long the steps of a close may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloseLimits {
    /// For a running turn to end; absent: as long as its tools and hooks may take.
    pub(crate) turn: Option<Duration>,
    /// For hooks and storage after it; absent: their own limits.
    pub(crate) wind_up: Option<Duration>,
    /// For the extraction of memories; zero: none.
    pub(crate) extraction: Duration,
}

impl CloseLimits {
    pub(crate) fn of(config: &AgentConfig) -> Self {
        Self {
            turn: None,
            wind_up: None,
            extraction: Duration::from_millis(config.memory_timeout_ms),
        }
    }
}

impl SessionInner {
    /// Closes the session, or waits for the close that is under way.
    pub(crate) async fn close(self: &Arc<Self>, limits: CloseLimits) -> Result<(), AgentError> {
        let mut done = {
            let mut closing = lock(&self.closing);
            match &*closing {
                Some(done) => done.clone(),
                None => {
                    let (sender, done) = watch::channel(None);
                    *closing = Some(done.clone());
                    let this = Arc::clone(self);
                    // Owned by its limits; whoever closes awaits it through the channel.
                    self.core.runtime.spawn(async move {
                        let outcome = this.close_now(limits).await;
                        sender.send_replace(Some(outcome));
                    });
                    done
                }
            }
        };
        match done.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => Err(AgentError::internal("the close has a fault")),
        }
    }

    async fn close_now(self: &Arc<Self>, limits: CloseLimits) -> Result<(), AgentError> {
        lock(&self.state).closing = true;
        self.cancel(None);
        let work = self.retrieve(limits.turn).await;
        let wind_up = self.wind_up(work);
        let (stored, work) = match limits.wind_up {
            None => wind_up.await,
            Some(limit) => match tokio::time::timeout(limit, wind_up).await {
                Ok(done) => done,
                Err(_) => (
                    Err(AgentError::storage(
                        "closing the session was cut off",
                        "the shutdown did not leave enough time",
                    )),
                    None,
                ),
            },
        };
        lock(&self.state).journal.close();
        self.slot.free(&self.id);
        self.core.outlet.close_session(&self.id);
        if let Some(work) = work
            && let Some(memory) = work.memory
            && !limits.extraction.is_zero()
        {
            let model = lock(&self.state).model.clone();
            memory
                .finish(&self.core, &self.id, &model, limits.extraction)
                .await;
        }
        stored
    }

    /// Waits for the work to come back. After the limit the turn is stopped where it is, and
    /// its work is lost: what was stored by then is what a resume finds.
    async fn retrieve(self: &Arc<Self>, limit: Option<Duration>) -> Option<Box<Work>> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let idle = self.idle.notified();
            let mut idle = std::pin::pin!(idle);
            // Listening begins before looking, so that no change is missed.
            idle.as_mut().enable();
            if let Some(work) = lock(&self.state).take_work() {
                return Some(work);
            }
            match deadline {
                None => idle.await,
                Some(deadline) => {
                    if timeout_at(deadline, idle).await.is_err() {
                        return self.stop_turn();
                    }
                }
            }
        }
    }

    fn stop_turn(&self) -> Option<Box<Work>> {
        let (work, stopped) = {
            let mut state = lock(&self.state);
            let stopped = state.running_task();
            let work = state.take_work();
            if work.is_none() {
                state.activity = Activity::Closed;
            }
            (work, stopped)
        };
        if let Some((turn_id, task)) = stopped {
            tracing::warn!(session = %self.id, turn = %turn_id, "the turn did not end in time and was stopped");
            task.abort();
            if let Some(log) = self.core.outlet.turn(&turn_id) {
                log.end(AgentEventKind::TurnCancelled {
                    usage: Usage::default(),
                });
            }
        }
        work
    }

    /// The end of a session: hooks, then everything is written.
    async fn wind_up(
        self: &Arc<Self>,
        mut work: Option<Box<Work>>,
    ) -> (Result<(), AgentError>, Option<Box<Work>>) {
        let message_count = match &work {
            Some(work) => work.message_count,
            None => lock(&self.state).message_count,
        };
        let run = registry::run(
            &self.core.taps.session_end,
            SessionEnd {
                session_id: Arc::clone(&self.id),
                message_count,
                plugin_config: Arc::default(),
            },
            self.core.hook_limit(),
            |_| false,
            |_, never| match never {},
        )
        .await;
        if let Some(stop) = run.stopped {
            tracing::warn!(
                session = %self.id,
                plugin = %stop.plugin_id,
                reason = %stop.reason,
                "a SessionEnd handler aborted, which is too late"
            );
        }
        if let Some(work) = &mut work
            && work.memory.as_ref().is_some_and(|memory| memory.has_fresh())
        {
            // Written before the extraction, whose own end nobody waits for to the last: a
            // session that goes on later does not extract the same again.
            let checkpoint = SessionEventKind::Metadata {
                metadata: SessionMetadata::MemoryCheckpoint,
            };
            if let Some(error) = work.record(&"".into(), None, checkpoint).await {
                tracing::warn!(session = %self.id, %error, "the checkpoint was not stored at once");
            }
        }
        let journal = Arc::clone(&lock(&self.state).journal);
        (journal.flush().await, work)
    }
}

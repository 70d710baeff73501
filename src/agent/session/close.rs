//! Closing a session: in order, within limits, once (chapters 6.2 and 6.3).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::SessionInner;
use super::state::Activity;
use super::work::Work;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEventKind;
use crate::agent::hook::SessionEnd;
use crate::agent::hook::registry;
use crate::agent::provider::Usage;
use crate::agent::storage::{SessionEventKind, SessionMetadata};

/// Shares of `shutdown_timeout_ms` that the steps of a close may take once a shutdown has
/// begun: half for the turn, a fifth to wind up, a tenth for memories. The rest is for
/// plugins.
const TURN_SHARE: (u32, u32) = (1, 2);
const WIND_UP_SHARE: (u32, u32) = (1, 5);
const EXTRACTION_SHARE: (u32, u32) = (1, 10);

impl SessionInner {
    /// Closes the session, or waits for the close that is under way.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<(), AgentError> {
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
                        let outcome = this.close_now().await;
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

    async fn close_now(self: &Arc<Self>) -> Result<(), AgentError> {
        lock(&self.state).closing = true;
        self.cancel(None);
        let work = match self.unhurried(TURN_SHARE, self.retrieve()).await {
            Some(work) => Some(work),
            // What was stored by then is what a resume finds.
            None => self.stop_turn(),
        };
        let (stored, work) = match self.unhurried(WIND_UP_SHARE, self.wind_up(work)).await {
            Some(done) => done,
            None => (
                Err(AgentError::storage(
                    "closing the session was cut off",
                    "the shutdown did not leave enough time",
                )),
                None,
            ),
        };
        lock(&self.state).journal.close();
        if let Some(slot) = self.slot.upgrade() {
            slot.free(&self.id);
        }
        self.core.outlet.close_session(&self.id);
        if let Some(work) = work
            && let Some(memory) = work.memory
        {
            let model = lock(&self.state).model.clone();
            let limit = Duration::from_millis(self.core.config.memory_timeout_ms);
            let extraction = memory.finish(&self.core, &self.id, &model, limit);
            if self.unhurried(EXTRACTION_SHARE, extraction).await.is_none() {
                tracing::warn!(session = %self.id, "the shutdown left no time to extract memories");
            }
        }
        stored
    }

    /// Lets a step take its time, until a shutdown begins: from then on it has its share.
    async fn unhurried<T>(
        &self,
        (share, of): (u32, u32),
        step: impl Future<Output = T>,
    ) -> Option<T> {
        let total = Duration::from_millis(self.core.config.shutdown_timeout_ms);
        let hurried = async {
            self.core.stopping.cancelled().await;
            tokio::time::sleep(total * share / of).await;
        };
        tokio::select! {
            biased;
            done = step => Some(done),
            () = hurried => None,
        }
    }

    /// Waits for the work to come back.
    async fn retrieve(self: &Arc<Self>) -> Box<Work> {
        loop {
            let idle = self.idle.notified();
            let mut idle = std::pin::pin!(idle);
            // Listening begins before looking, so that no change is missed.
            idle.as_mut().enable();
            if let Some(work) = lock(&self.state).take_work() {
                return work;
            }
            idle.await;
        }
    }

    /// Stops the turn where it is. Its work is lost.
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
                })
                .wake();
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
        // Whoever closes waits for the handlers as whoever cancels does.
        let closing = CancellationToken::new();
        closing.cancel();
        let run = registry::run(
            &self.core.taps.session_end,
            SessionEnd {
                session_id: Arc::clone(&self.id),
                message_count,
                plugin_config: Arc::default(),
            },
            self.core.hook_limit_with(&closing),
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
        // A shutdown leaves the extraction little time; what it cuts off is left to the resume.
        if let Some(work) = &mut work
            && !self.core.stopping.is_cancelled()
            && work
                .memory
                .as_ref()
                .is_some_and(|memory| memory.has_fresh())
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
        (journal.finish().await, work)
    }
}

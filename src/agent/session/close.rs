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

/// How far a close is.
#[derive(Debug, Clone, Default)]
pub(super) struct Closing {
    /// How it ended for the storage: from then on the slot is free.
    stored: Option<Result<(), AgentError>>,
    /// Whether memories are extracted, too, or given up.
    over: bool,
    /// What a shutdown left no time for, each a sentence for the log.
    skipped: Vec<&'static str>,
}

impl SessionInner {
    /// Closes the session, or waits for the close that is under way.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<(), AgentError> {
        self.closed().await.0
    }

    /// As [`close`](Self::close), and says what a shutdown left no time for.
    pub(crate) async fn closed(self: &Arc<Self>) -> (Result<(), AgentError>, Vec<&'static str>) {
        match self.begin_close().wait_for(|closing| closing.over).await {
            Ok(closing) => (
                closing.stored.clone().unwrap_or(Ok(())),
                closing.skipped.clone(),
            ),
            Err(_) => (Err(has_a_fault()), Vec::new()),
        }
    }

    /// Closes the session as far as the next one needs it: everything is written, and the
    /// slot is free. What could not be stored is its own problem, not the next one's.
    ///
    /// # Errors
    /// `INTERNAL`: the slot is not free.
    pub(crate) async fn leave(self: &Arc<Self>) -> Result<(), AgentError> {
        let mut closing = self.begin_close();
        let closing = closing
            .wait_for(|closing| closing.stored.is_some())
            .await
            .map_err(|_| has_a_fault())?;
        if let Some(Err(error)) = &closing.stored {
            tracing::warn!(session = %self.id, %error, "closing the replaced session");
        }
        Ok(())
    }

    /// Begins to close, unless that has begun.
    fn begin_close(self: &Arc<Self>) -> watch::Receiver<Closing> {
        let mut closing = lock(&self.closing);
        if let Some(begun) = &*closing {
            return begun.clone();
        }
        let (progress, begun) = watch::channel(Closing::default());
        *closing = Some(begun.clone());
        let this = Arc::clone(self);
        // Owned by its limits; whoever closes awaits it through the channel.
        self.core.runtime.spawn(async move {
            this.close_now(&progress).await;
            progress.send_modify(|closing| closing.over = true);
        });
        begun
    }

    async fn close_now(self: &Arc<Self>, progress: &watch::Sender<Closing>) {
        let skip = |what| progress.send_modify(|closing| closing.skipped.push(what));
        lock(&self.state).closing = true;
        self.cancel(None);
        let work = match self.unhurried(TURN_SHARE, self.retrieve()).await {
            Some(work) => Some(work),
            // What was stored by then is what a resume finds.
            None => {
                skip(
                    "the running turn did not end in time and was stopped; the outcome of its tools is unknown",
                );
                self.stop_turn()
            }
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
        progress.send_modify(|closing| closing.stored = Some(stored));
        if let Some(work) = work
            && let Some(memory) = work.memory
        {
            let model = lock(&self.state).model.clone();
            let limit = Duration::from_millis(self.core.config.memory_timeout_ms);
            let extraction = memory.finish(&self.core, &self.id, &model, limit);
            if self.unhurried(EXTRACTION_SHARE, extraction).await.is_none() {
                tracing::warn!(session = %self.id, "the shutdown left no time to extract memories");
                skip("there was no time to extract the session's memories; its next close does");
            }
        }
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
        if let Some(work) = &mut work
            && let Some(through) = self.extracted(work)
        {
            let checkpoint = SessionEventKind::Metadata {
                metadata: SessionMetadata::MemoryCheckpoint { through },
            };
            if let Some(error) = work.record(&"".into(), None, checkpoint).await {
                tracing::warn!(session = %self.id, %error, "the checkpoint was not stored at once");
            }
        }
        let journal = Arc::clone(&lock(&self.state).journal);
        (journal.finish().await, work)
    }

    /// Index of the newest event that counts as extracted from now on.
    fn extracted(&self, work: &mut Work) -> Option<u64> {
        let memory = work.memory.as_mut()?;
        let harvested = memory.harvest();
        if self.core.stopping.is_cancelled() {
            // A shutdown leaves the extraction little time; what it cuts off is left to the
            // resume.
            return harvested;
        }
        // Noted before the extraction, whose own end nobody waits for to the last: a session
        // that goes on meanwhile does not extract the same again.
        memory.rest().or(harvested)
    }
}

fn has_a_fault() -> AgentError {
    AgentError::internal("the close has a fault")
}

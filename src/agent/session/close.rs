//! Closing a session: in order, within limits, once.

// Requirements: 6.2 Session, 6.3 Shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::SessionInner;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEventKind;
use crate::agent::hook::SessionEnd;
use crate::agent::hook::registry;
use crate::agent::provider::Usage;
use crate::agent::storage::{SessionEventKind, SessionMetadata};
use crate::agent::tool::inside;
use crate::agent::work::{Activity, Closing, SessionCore};

/// Shares of `shutdown_timeout_ms` that the steps of a close may take once a shutdown has
/// begun: half for the turn, a fifth to wind up. Memories have what these leave of it, but for
/// what is kept for plugins.
const TURN_SHARE: (u32, u32) = (1, 2);
const WIND_UP_SHARE: (u32, u32) = (1, 5);

impl SessionInner {
    /// Closes the session, or waits for the close that is under way.
    ///
    /// # Errors
    /// `SESSION_BUSY` for a tool that would wait for its own call, and nothing is closed;
    /// `STORAGE_ERROR`.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<(), AgentError> {
        inside::refuse(&self.open.id, "close its session")?;
        let mut closing = self.begin_close();
        let closing = closing
            .wait_for(|closing| closing.over)
            .await
            .map_err(|_| panicked())?;
        closing.stored.clone().unwrap_or(Ok(()))
    }

    /// Closes the session as far as the next one needs it: everything is written, and the
    /// slot is free. Returns what could not be stored, a sentence for the user.
    ///
    /// # Errors
    /// `INTERNAL`: the slot is not free.
    pub(crate) async fn close_for_replace(self: &Arc<Self>) -> Result<Option<String>, AgentError> {
        let mut closing = self.begin_close();
        let closing = closing
            .wait_for(|closing| closing.stored.is_some())
            .await
            .map_err(|_| panicked())?;
        let Some(Err(error)) = &closing.stored else {
            return Ok(None);
        };
        tracing::warn!(session = %self.open.id, %error, "closing the replaced session");
        Ok(Some(format!(
            "the session \"{}\" was closed for this one: {}",
            self.open.id, error.message
        )))
    }

    /// Begins to close, unless that has begun.
    fn begin_close(self: &Arc<Self>) -> watch::Receiver<Closing> {
        let mut state = lock(&self.open.state);
        if let Some(begun) = &state.closing {
            return begun.clone();
        }
        let (progress, begun) = watch::channel(Closing::default());
        state.closing = Some(begun.clone());
        drop(state);
        let this = Arc::clone(self);
        // Owned by its limits; whoever closes awaits it through the channel, a shutdown
        // through the tracker.
        let task = async move {
            let (stored, work) = this.close_now().await;
            let all_stored = stored.is_ok();
            progress.send_modify(|closing| closing.stored = Some(stored));
            this.remember(work, all_stored).await;
            progress.send_modify(|closing| closing.over = true);
        };
        self.open
            .core
            .closes
            .spawn_on(task, &self.open.core.runtime);
        begun
    }

    async fn close_now(self: &Arc<Self>) -> (Result<(), AgentError>, Option<Box<SessionCore>>) {
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
        lock(&self.open.state).journal.close();
        if let Some(slot) = self.slot.upgrade() {
            slot.free(&self.open.id);
        }
        self.open.core.event_log.close_session(&self.open.id);
        (stored, work)
    }

    /// Extracts memories and notes it, once the slot is free. What is cut off or fails runs when
    /// the session is resumed.
    async fn remember(&self, work: Option<Box<SessionCore>>, all_stored: bool) {
        let core = &self.open.core;
        if core.memories.is_none() {
            return;
        }
        let remembering = async {
            let Some(memory) = work.and_then(|work| work.memory) else {
                return Some("the session did not end in time".to_owned());
            };
            let model = lock(&self.open.state).model.clone();
            let limit = Duration::from_millis(core.config.memory_timeout_ms);
            let extracted = memory.finish(core, &self.open.id, &model, limit).await;
            if let Some(metadata) = extracted.metadata()
                && all_stored
                && let Err(error) = self.note_extraction(metadata).await
            {
                tracing::warn!(session = %self.open.id, %error, "the checkpoint was not stored");
            }
            extracted.failure
        };
        let out_of_time = async {
            core.stopping.cancelled().await;
            tokio::time::sleep_until(core.extraction_deadline()).await;
        };
        let failure = tokio::select! {
            biased;
            failure = remembering => failure,
            () = out_of_time => Some("there was no time left".to_owned()),
        };
        if let Some(reason) = failure.filter(|_| core.stopping.is_cancelled()) {
            let later = match core.sessions {
                Some(_) => "; the extraction runs when the session is resumed",
                None => "",
            };
            let what = format!("memories were not extracted ({reason}){later}");
            core.leave_out(&self.open.id, &what);
        }
    }

    /// Notes an extraction, or what one that failed has cost. A session that was opened again by
    /// now has the same to extract, and notes it itself.
    async fn note_extraction(&self, metadata: SessionMetadata) -> Result<(), AgentError> {
        let Some(slot) = self.slot.upgrade() else {
            return Ok(());
        };
        let Some(_claim) = slot.claim(&self.open.id).await else {
            return Ok(());
        };
        let journal = Arc::clone(&lock(&self.open.state).journal);
        journal
            .append_to_closed(SessionEventKind::Metadata { metadata })
            .await
    }

    /// Lets a step take its time, until a shutdown begins: from then on it has its share.
    async fn unhurried<T>(
        &self,
        (share, of): (u32, u32),
        step: impl Future<Output = T>,
    ) -> Option<T> {
        let total = Duration::from_millis(self.open.core.config.shutdown_timeout_ms);
        let hurried = async {
            self.open.core.stopping.cancelled().await;
            tokio::time::sleep(total * share / of).await;
        };
        tokio::select! {
            biased;
            done = step => Some(done),
            () = hurried => None,
        }
    }

    /// Waits for the work to come back.
    async fn retrieve(self: &Arc<Self>) -> Box<SessionCore> {
        loop {
            let idle = self.open.idle.notified();
            let mut idle = std::pin::pin!(idle);
            // Listening begins before looking, so that no change is missed.
            idle.as_mut().enable();
            if let Some(work) = lock(&self.open.state).take_work() {
                return work;
            }
            idle.await;
        }
    }

    /// Stops what runs where it is. Its work is lost.
    fn stop_turn(&self) -> Option<Box<SessionCore>> {
        let (work, stopped) = {
            let mut state = lock(&self.open.state);
            let stopped = state.running_task();
            let work = state.take_work();
            if work.is_none() {
                state.activity = Activity::Closed;
            }
            (work, stopped)
        };
        if let Some((turn_id, task)) = stopped {
            let what = "the running turn did not end in time and was stopped; what its tools did is unknown";
            self.open.core.leave_out(&self.open.id, what);
            // Before the task goes, whose lease would end it as failed.
            if let Some(log) = self.open.core.event_log.turn(&turn_id) {
                log.end(AgentEventKind::TurnCancelled {
                    usage: Usage::default(),
                })
                .wake();
            }
            task.abort();
        } else if work.is_none() {
            let what = "the compaction did not end in time and was given up";
            self.open.core.leave_out(&self.open.id, what);
        }
        work
    }

    /// The end of a session: hooks, then everything is written.
    async fn wind_up(
        self: &Arc<Self>,
        work: Option<Box<SessionCore>>,
    ) -> (Result<(), AgentError>, Option<Box<SessionCore>>) {
        let message_count = match &work {
            Some(work) => work.message_count,
            None => lock(&self.open.state).message_count,
        };
        // Whoever closes waits for the handlers as whoever cancels does.
        let closing = CancellationToken::new();
        closing.cancel();
        let run = registry::run(
            &self.open.core.taps.session_end,
            SessionEnd {
                session_id: Arc::clone(&self.open.id),
                message_count,
                plugin_config: Arc::default(),
                cancel: None,
            },
            self.open.core.hook_limit_with(&closing),
            |_| false,
            |_, never| match never {},
        )
        .await;
        if let Some(stop) = run.stopped {
            tracing::warn!(
                session = %self.open.id,
                plugin = %stop.plugin_id,
                reason = %stop.reason,
                "a SessionEnd handler aborted, which is too late"
            );
        }
        let journal = Arc::clone(&lock(&self.open.state).journal);
        (journal.finish().await, work)
    }
}

fn panicked() -> AgentError {
    AgentError::internal("closing the session panicked")
}

//! A compaction that the user asked for, between turns.

// Requirements: 5.2 Context manager.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::SessionInner;
use crate::agent::catalog::Model;
use crate::agent::compaction::{self, Compaction, CompactionOutcome, Outcome, Record};
use crate::agent::contain::{self, lock};
use crate::agent::error::AgentError;
use crate::agent::work::{Activity, Lease, SessionCore};

impl SessionInner {
    pub(super) async fn compact(
        self: Arc<Self>,
        cancel: CancellationToken,
    ) -> Result<CompactionOutcome, AgentError> {
        self.open.core.check_running()?;
        let model = self.model_for(None)?;
        let mut lease = {
            let mut state = lock(&self.open.state);
            let work = state.take_idle()?;
            state.activity = Activity::Compacting(cancel.clone());
            Lease::between_turns(&self.open, work)
        };
        let Some(work) = lease.work() else {
            return Err(AgentError::internal("the session has nothing to compact"));
        };
        let outcome = contain::future(|| self.compact_with(work, &model, &cancel)).await;
        lease.give_back(None);
        outcome.unwrap_or_else(|panicked| {
            Err(AgentError::internal(format!(
                "the compaction failed: {panicked}"
            )))
        })
    }

    async fn compact_with(
        &self,
        work: &mut SessionCore,
        model: &Model,
        cancel: &CancellationToken,
    ) -> Result<CompactionOutcome, AgentError> {
        let core = &self.open.core;
        work.prepare(&self.open, model, &[]);
        compaction::check_fixed_part(model, &work.context)?;
        let tokens = compaction::by_hand(core, model, &work.context);
        let compaction = Compaction {
            core,
            session_id: &self.open.id,
            turn_id: &Arc::default(),
            model,
            cancel,
            record: Record::OrNothing,
        };
        let attempt = compaction.run(work, tokens).await;
        work.usage += attempt.usage;
        if !matches!(attempt.outcome, Outcome::Compacted(_)) {
            work.note_spent(attempt.usage);
        }
        core.event_log.tell(&self.open.id, attempt.events);
        match attempt.outcome {
            Outcome::Compacted(outcome) | Outcome::FreesNothing(outcome) => Ok(outcome),
            Outcome::Vetoed(stop) => Err(AgentError::hook_aborted(
                &stop.plugin_id,
                "BeforeCompact",
                &stop.reason,
            )),
            Outcome::Cancelled => Err(AgentError::request_cancelled("the compaction")),
            Outcome::NotStored(error) => Err(error),
        }
    }
}

//! A compaction that the user asked for, between turns (chapter 5.2).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::state::Activity;
use super::{SessionCore, SessionInner};
use crate::agent::catalog::Model;
use crate::agent::compaction::{self, Attempt, Compaction, CompactionOutcome};
use crate::agent::contain::{self, lock};
use crate::agent::context::compact;
use crate::agent::error::AgentError;
use crate::agent::storage::{SessionEventKind, SessionMetadata};

impl SessionInner {
    pub(super) async fn compact(
        self: Arc<Self>,
        cancel: CancellationToken,
    ) -> Result<CompactionOutcome, AgentError> {
        self.core.check_running()?;
        let model = self.model_for(None)?;
        let mut work = {
            let mut state = lock(&self.state);
            let work = state.take_idle()?;
            state.activity = Activity::Compacting(cancel.clone());
            work
        };
        let outcome = contain::future(|| self.compact_with(&mut work, &model, &cancel)).await;
        self.give_back(work, || ());
        outcome.unwrap_or_else(|panicked| {
            Err(AgentError::internal(format!(
                "the compaction has a fault: {panicked}"
            )))
        })
    }

    async fn compact_with(
        &self,
        work: &mut SessionCore,
        model: &Model,
        cancel: &CancellationToken,
    ) -> Result<CompactionOutcome, AgentError> {
        work.prepare(self, model, &[]);
        let tokens_before = work.context.estimated_tokens();
        let messages_before = work.context.message_count();
        // Whatever the size, half of what can be freed is to go.
        let irreducible_tokens = compact::irreducible_tokens(&work.context);
        let limit = compaction::threshold(&self.core, model);
        let wanted = compact::goal(model.window(), limit, irreducible_tokens)
            .min(irreducible_tokens + tokens_before.saturating_sub(irreducible_tokens) / 2);
        let compaction = Compaction {
            core: &self.core,
            session_id: &self.id,
            model,
            cancel,
        };
        let attempted = compaction.attempt(&work.context, wanted).await;
        work.usage += attempted.usage;
        let record = match attempted.attempt {
            Attempt::Compacted(record) => record,
            Attempt::FreesNothing => {
                return Ok(CompactionOutcome {
                    method: None,
                    tokens_before,
                    tokens_after: tokens_before,
                    messages_removed: 0,
                });
            }
            Attempt::Refused(stop) => {
                return Err(AgentError::hook_aborted(
                    &stop.plugin_id,
                    "BeforeCompact",
                    &stop.reason,
                ));
            }
            Attempt::Cancelled => return Err(AgentError::request_cancelled("the compaction")),
        };
        let method = record.method;
        let kind = SessionEventKind::Metadata {
            metadata: SessionMetadata::Compacted(record.clone()),
        };
        // Nothing runs that could go on without a storage: it is stored, or it did not happen.
        for event in work.journal.write_first(&"".into(), vec![kind]).await? {
            work.push(&event);
        }
        work.context.compact(record);
        let removed = messages_before.saturating_sub(work.context.message_count());
        Ok(CompactionOutcome {
            method: Some(method),
            tokens_before,
            tokens_after: work.context.estimated_tokens(),
            messages_removed: u32::try_from(removed).unwrap_or(u32::MAX),
        })
    }
}

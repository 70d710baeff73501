//! Compaction: when the context is made smaller, how far, and one compaction from hook to
//! record. Nothing is changed until the record is complete.

// Requirements: 5.2 Context manager.

mod plan;
mod summary;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::catalog::Model;
use super::context::Context;
use super::core::Core;
use super::error::{AgentError, ErrorOrigin};
use super::event::{AgentEventKind, CompactionMethod};
use super::hook::BeforeCompact;
use super::hook::registry::{self, Stop};
use super::provider::Usage;
use super::storage::{CompactionRecord, SessionEventKind, SessionMetadata};
use super::work::SessionCore;
use plan::{Target, irreducible_tokens};
use summary::NoSummary;

/// What a compaction did, as `compact` returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct CompactionOutcome {
    /// How; absent: there was nothing to free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub method: Option<CompactionMethod>,
    /// Estimated size before, in tokens.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub tokens_before: u64,
    /// Estimated size after, in tokens.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub tokens_after: u64,
    /// How many messages the model no longer sees.
    pub messages_removed: u32,
}

impl CompactionOutcome {
    fn unchanged(context: &Context) -> Self {
        let tokens = context.estimated_tokens();
        Self {
            method: None,
            tokens_before: tokens,
            tokens_after: tokens,
            messages_removed: 0,
        }
    }
}

/// What came of a compaction.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The context is smaller.
    Compacted(CompactionOutcome),
    /// There was nothing that could go. Found out without a hook or a model call, so it may be
    /// asked again.
    FreesNothing(CompactionOutcome),
    /// A hook vetoed it.
    Vetoed(Stop),
    /// The user cancelled.
    Cancelled,
    /// It could not be stored, and nothing has changed. Only where [`Record::OrNothing`].
    NotStored(AgentError),
}

/// A compaction that was tried, with what is left of it whatever came of it.
pub(crate) struct Attempt {
    pub(crate) outcome: Outcome,
    /// What the summary cost, also one that could not be used.
    pub(crate) usage: Usage,
    /// What is to be told to who watches, in order.
    pub(crate) events: Vec<AgentEventKind>,
}

/// How the record of a compaction is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// As an event of a turn, which goes on while the storage is down.
    Buffered,
    /// Stored, or it did not happen: nothing runs that could go on without a storage.
    OrNothing,
}

/// Who asks for a compaction, and for whom.
pub(crate) struct Compaction<'a> {
    pub(crate) core: &'a Core,
    pub(crate) session_id: &'a Arc<str>,
    /// The turn it belongs to; empty between turns.
    pub(crate) turn_id: &'a Arc<str>,
    pub(crate) model: &'a Model,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) record: Record,
}

/// The size the context is to come down to, in tokens by the estimate, if it passes the
/// threshold now.
pub(crate) fn due(core: &Core, model: &Model, context: &Context) -> Option<u64> {
    let limit = threshold(core, model);
    let tokens = context.tokens();
    if tokens <= limit {
        return None;
    }
    // Compactions count by the estimate; the limit may have been passed by the provider's own
    // count.
    let estimated = context.estimated_tokens();
    let by_estimate = |count: u64| {
        let scaled = u128::from(count) * u128::from(estimated) / u128::from(tokens.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let goal = goal(context, by_estimate(model.window()), by_estimate(limit));
    (estimated > goal).then_some(goal)
}

/// The size to come down to after the provider said that the request is too long: the estimate
/// was too low, or the window is smaller than declared.
pub(crate) fn after_overflow(core: &Core, model: &Model, context: &Context) -> u64 {
    threshold(core, model).min(context.estimated_tokens() / 2)
}

/// The size to come down to when the user asks: whatever it is now, half of what can be freed
/// goes.
pub(crate) fn by_hand(core: &Core, model: &Model, context: &Context) -> u64 {
    let irreducible = irreducible_tokens(context);
    let reducible = context.estimated_tokens().saturating_sub(irreducible);
    goal(context, model.window(), threshold(core, model)).min(irreducible + reducible / 2)
}

/// The limit, or more where what cannot go passes it by itself: half of the rest of the window
/// is left to the others then; with less each step would cut them to nothing.
fn goal(context: &Context, window: u64, limit: u64) -> u64 {
    let irreducible = irreducible_tokens(context);
    if irreducible > limit {
        irreducible + window.saturating_sub(irreducible) / 2
    } else {
        limit
    }
}

/// The size from which on the context is compacted, in tokens.
fn threshold(core: &Core, model: &Model) -> u64 {
    // The window of a model is far below the precision of f64.
    (model.window() as f64 * core.config.compact_threshold) as u64
}

/// System prompt and tools alone must leave room for a message.
///
/// # Errors
/// `COMPACT_ERROR` naming the fixed part.
pub(crate) fn check_fixed_part(model: &Model, context: &Context) -> Result<(), AgentError> {
    let (fixed, window) = (context.fixed_tokens(), model.window());
    if fixed < window {
        return Ok(());
    }
    Err(AgentError::compact(format!(
        "the system prompt and the tool schemas alone take about {fixed} tokens, the window of \"{}\" has {window}; shorten the instructions, register fewer tools or choose a model with a larger window",
        model.id
    )))
}

impl Compaction<'_> {
    /// Tries to bring the context down to `tokens`.
    pub(crate) async fn run(&self, work: &mut SessionCore, tokens: u64) -> Attempt {
        let (mut usage, mut events) = (Usage::default(), Vec::new());
        let planned = self
            .plan(&work.context, tokens, &mut usage, &mut events)
            .await;
        let outcome = match planned {
            Ok(record) => self.store(work, record, usage, &mut events).await,
            Err(outcome) => outcome,
        };
        Attempt {
            outcome,
            usage,
            events,
        }
    }

    /// Decides what goes and has the summary written.
    async fn plan(
        &self,
        context: &Context,
        tokens: u64,
        usage: &mut Usage,
        events: &mut Vec<AgentEventKind>,
    ) -> Result<CompactionRecord, Outcome> {
        let target = Target {
            window: self.model.window(),
            tokens,
            keep_units: self.core.config.compact_keep_recent as usize,
        };
        let frees_nothing = || Outcome::FreesNothing(CompactionOutcome::unchanged(context));
        let plan = plan::plan(context, target).ok_or_else(frees_nothing)?;
        let before = context.estimated_tokens();
        let truncated = plan.record(context, None);
        if truncated.tokens_after >= before {
            // Not worth a model call either.
            return Err(frees_nothing());
        }
        let instructions = self.ask_hooks(context, events).await?;
        let mut summary = None;
        if plan.removes() {
            match self.summarise(context, &plan, &instructions, usage).await {
                Ok(written) => summary = Some(written),
                Err(NoSummary::Cancelled) => return Err(Outcome::Cancelled),
                Err(NoSummary::Because(reason)) => {
                    tracing::warn!(session = %self.session_id, "no summary: {reason}");
                    events.push(AgentEventKind::Warning {
                        message: format!(
                            "the summary of older messages could not be written ({reason}); they were left out"
                        ),
                        origin: ErrorOrigin::Agent,
                    });
                }
            }
        }
        if self.cancel.is_cancelled() {
            return Err(Outcome::Cancelled);
        }
        Ok(summary
            .map(|summary| plan.record(context, Some(summary)))
            .filter(|record| record.tokens_after < before)
            .unwrap_or(truncated))
    }

    /// Runs the `BeforeCompact` hooks. Returns their instructions for the summary.
    async fn ask_hooks(
        &self,
        context: &Context,
        events: &mut Vec<AgentEventKind>,
    ) -> Result<Arc<str>, Outcome> {
        let payload = BeforeCompact {
            session_id: Arc::clone(self.session_id),
            message_count: u32::try_from(context.message_count()).unwrap_or(u32::MAX),
            estimated_tokens: context.tokens(),
            instructions: "".into(),
            plugin_config: Arc::default(),
            cancel: None,
        };
        let run = registry::run(
            &self.core.taps.before_compact,
            payload,
            self.core.hook_limit_with(self.cancel),
            |_| false,
            |payload, instructions| {
                payload.instructions = instructions.into();
                Ok(())
            },
        )
        .await;
        events.extend(
            run.warnings
                .into_iter()
                .map(|message| AgentEventKind::Warning {
                    message,
                    origin: ErrorOrigin::Plugin,
                }),
        );
        match run.stopped {
            Some(stop) => Err(Outcome::Vetoed(stop)),
            None => Ok(run.payload.instructions),
        }
    }

    /// Stores the record and replaces what it removes.
    async fn store(
        &self,
        work: &mut SessionCore,
        mut record: CompactionRecord,
        usage: Usage,
        events: &mut Vec<AgentEventKind>,
    ) -> Outcome {
        record.usage = (usage != Usage::default()).then_some(usage);
        let messages_before = work.context.message_count();
        let kind = SessionEventKind::Metadata {
            metadata: SessionMetadata::Compacted(record.clone()),
        };
        match self.record {
            Record::Buffered => {
                let failed = work.record(self.turn_id, None, kind, self.cancel).await;
                events.extend(failed.map(|error| AgentEventKind::Error { error }));
            }
            Record::OrNothing => {
                let written = work
                    .journal
                    .write_first(self.turn_id, vec![kind], None, self.cancel);
                match written.await {
                    Ok(written) => written.iter().for_each(|event| work.push(event)),
                    Err(_) if self.cancel.is_cancelled() => return Outcome::Cancelled,
                    Err(error) => return Outcome::NotStored(error),
                }
            }
        }
        let (method, tokens_before, tokens_after) =
            (record.method, record.tokens_before, record.tokens_after);
        work.context.compact(record);
        let removed = messages_before.saturating_sub(work.context.message_count());
        let messages_removed = u32::try_from(removed).unwrap_or(u32::MAX);
        events.push(AgentEventKind::ContextCompacted {
            method,
            tokens_before,
            tokens_after,
            messages_removed,
        });
        Outcome::Compacted(CompactionOutcome {
            method: Some(method),
            tokens_before,
            tokens_after: work.context.estimated_tokens(),
            messages_removed,
        })
    }
}

//! One compaction from hook to record: asks the hooks, has a summary written, falls back to
//! truncation (chapter 5.2). Nothing is changed until the record is complete.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::catalog::Model;
use super::context::Context;
use super::context::compact::{self, DEFAULT_PROMPT, Plan, Target};
use super::context::estimate;
use super::core::Core;
use super::error::ErrorOrigin;
use super::event::CompactionMethod;
use super::hook::BeforeCompact;
use super::hook::registry::{self, Stop};
use super::model_call::{self, Next};
use super::provider::{ChatRequest, PromptBlock, StopReason, Usage};
use super::storage::CompactionRecord;

/// Least room for a transcript, in tokens; with less no summary is asked for.
const LEAST_TRANSCRIPT: u64 = 64;

/// What a compaction did, as `compact` answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
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

/// What came of an attempt.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The context can be replaced by this.
    Compacted(CompactionRecord),
    /// There is nothing that could go.
    FreesNothing,
    /// A hook refused.
    Refused(Stop),
    /// The user cancelled.
    Cancelled,
}

/// An attempt, with what is left of it whatever came of it.
pub(crate) struct Attempted {
    pub(crate) attempt: Attempt,
    /// What the summary cost, also one that could not be used.
    pub(crate) usage: Usage,
    /// What the hooks and the summariser warned of.
    pub(crate) warnings: Vec<(ErrorOrigin, String)>,
}

/// Who asks for a compaction, and for whom.
pub(crate) struct Compaction<'a> {
    pub(crate) core: &'a Core,
    pub(crate) session_id: &'a Arc<str>,
    pub(crate) model: &'a Model,
    pub(crate) cancel: &'a CancellationToken,
}

/// The size from which on the context is compacted, in tokens.
pub(crate) fn threshold(core: &Core, model: &Model) -> u64 {
    // The window of a model is far below the precision of f64.
    (model.window() as f64 * core.config.compact_threshold) as u64
}

impl Compaction<'_> {
    /// Tries to bring the context down to `tokens`.
    pub(crate) async fn attempt(&self, context: &Context, tokens: u64) -> Attempted {
        let (mut usage, mut warnings) = (Usage::default(), Vec::new());
        let attempt = self.steps(context, tokens, &mut usage, &mut warnings).await;
        Attempted {
            attempt,
            usage,
            warnings,
        }
    }

    async fn steps(
        &self,
        context: &Context,
        tokens: u64,
        usage: &mut Usage,
        warnings: &mut Vec<(ErrorOrigin, String)>,
    ) -> Attempt {
        let target = Target {
            window: self.model.window(),
            tokens,
            keep_units: self.core.config.compact_keep_recent as usize,
        };
        let Some(plan) = compact::plan(context, target) else {
            return Attempt::FreesNothing;
        };
        let before = context.estimated_tokens();
        let truncated = plan.record(context, None);
        if truncated.tokens_after >= before {
            // Not worth a model call either.
            return Attempt::FreesNothing;
        }
        let instructions = match self.ask_hooks(context, warnings).await {
            Ok(instructions) => instructions,
            Err(stop) => return Attempt::Refused(stop),
        };
        let mut summary = None;
        if plan.removes() {
            match self.summary(context, &plan, &instructions, usage).await {
                Ok(written) => summary = Some(written),
                Err(Failed::Cancelled) => return Attempt::Cancelled,
                Err(Failed::Because(reason)) => {
                    tracing::warn!(session = %self.session_id, "no summary: {reason}");
                    let told = format!(
                        "the summary of older messages could not be written ({reason}); they were left out"
                    );
                    warnings.push((ErrorOrigin::Agent, told));
                }
            }
        }
        if self.cancel.is_cancelled() {
            return Attempt::Cancelled;
        }
        let record = summary
            .map(|summary| plan.record(context, Some(summary)))
            .filter(|record| record.tokens_after < before)
            .unwrap_or(truncated);
        Attempt::Compacted(record)
    }

    async fn ask_hooks(
        &self,
        context: &Context,
        warnings: &mut Vec<(ErrorOrigin, String)>,
    ) -> Result<Arc<str>, Stop> {
        let payload = BeforeCompact {
            session_id: Arc::clone(self.session_id),
            message_count: u32::try_from(context.message_count()).unwrap_or(u32::MAX),
            estimated_tokens: context.tokens(),
            instructions: "".into(),
            plugin_config: Arc::default(),
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
        warnings.extend(
            run.warnings
                .into_iter()
                .map(|warning| (ErrorOrigin::Plugin, warning)),
        );
        match run.stopped {
            Some(stop) => Err(stop),
            None => Ok(run.payload.instructions),
        }
    }

    async fn summary(
        &self,
        context: &Context,
        plan: &Plan,
        instructions: &str,
        usage: &mut Usage,
    ) -> Result<String, Failed> {
        let because = |reason: &str| Failed::Because(reason.to_owned());
        let model = match &self.core.config.compact_model {
            None => self.model.clone(),
            Some(wanted) => self
                .core
                .catalog
                .find(wanted)
                .map_err(|error| Failed::Because(error.message))?,
        };
        let prompt = self
            .core
            .config
            .compact_prompt
            .as_deref()
            .unwrap_or(DEFAULT_PROMPT);
        let longest = compact::summary_limit(self.model.window());
        let overhead = (estimate::text(prompt) + estimate::text(instructions)) / estimate::QUARTERS
            + longest.min(model.window() / 4)
            + LEAST_TRANSCRIPT;
        // A tenth is kept free: the estimate is rough.
        let room = (model.window() * 9 / 10).saturating_sub(overhead);
        if room < LEAST_TRANSCRIPT {
            return Err(because("the summarising model's window is too small"));
        }
        let transcript = plan.transcript(context, room);
        let request = ChatRequest {
            model_id: Arc::clone(&model.id),
            system: [PromptBlock {
                text: prompt.into(),
                stable: true,
            }]
            .into(),
            messages: compact::summary_messages(&transcript, instructions),
            tools: Arc::default(),
            temperature: None,
            // What a model may write at most is not known here, and one that is asked for more
            // refuses; the text is cut below.
            max_tokens: None,
            reasoning_effort: None,
            response_format: None,
        };
        let answer = model_call::collect(
            &model.provider,
            request,
            self.cancel,
            self.core.idle_limit(),
        )
        .await
        .map_err(|end| match end {
            Next::Failed(error) => Failed::Because(error.message),
            Next::Cancelled | Next::Event(_) => Failed::Cancelled,
        })?;
        if let Some(cost) = answer.usage {
            *usage += cost;
        }
        if answer.stop_reason == Some(StopReason::Length) {
            return Err(because("the summary was cut"));
        }
        let text = answer.text.trim();
        if text.is_empty() {
            return Err(because("the summary is empty"));
        }
        Ok(estimate::head(text, longest).to_owned())
    }
}

enum Failed {
    Cancelled,
    Because(String),
}

//! One model call of a turn: compacted before if needed, streamed, tried again or recovered
//! while nothing was shown (chapters 5.1 and 5.2).

use std::sync::Arc;

use tracing::Instrument as _;

use super::response::Response;
use super::stream::Streamed;
use super::{Ending, TurnRun};
use crate::agent::catalog::Model;
use crate::agent::compaction::{self, Compaction, Outcome, Record};
use crate::agent::context::{Images, ModelProfile};
use crate::agent::error::{AgentError, ErrorOrigin};
use crate::agent::event::AgentEventKind;
use crate::agent::message::{AssistantPart, ProviderData};
use crate::agent::provider::{Completion, ProviderError, ProviderErrorKind, StopReason, Usage};
use crate::agent::retry::{self, Retry};
use crate::agent::storage::{Interruption, MessageStatus, SessionEventKind, SessionMetadata};
use crate::agent::tool::dispatcher::Call;

/// An answer of the model, whole or cut.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<AssistantPart>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) provider_data: Option<ProviderData>,
    /// Its index, where a snapshot took one already.
    pub(super) reserved: Option<u64>,
}

impl Answer {
    /// The text parts, joined; shared with the part where there is one, as mostly.
    pub(super) fn text(&self) -> Arc<str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(text),
            AssistantPart::Reasoning { .. } | AssistantPart::ToolCall { .. } => None,
        });
        match (texts.next(), texts.next()) {
            (None, _) => Arc::default(),
            (Some(only), None) => Arc::clone(only),
            (Some(first), Some(second)) => {
                let all: Vec<&str> = [first, second]
                    .into_iter()
                    .chain(texts)
                    .map(AsRef::as_ref)
                    .collect();
                all.concat().into()
            }
        }
    }

    pub(super) fn message(
        &self,
        model: &Model,
        interruption: Option<Interruption>,
    ) -> SessionEventKind {
        SessionEventKind::AssistantMessage {
            parts: self.parts.clone(),
            status: if interruption.is_some() || self.stop_reason.is_some_and(StopReason::is_cut) {
                MessageStatus::Incomplete
            } else {
                MessageStatus::Complete
            },
            interruption,
            stop_reason: self.stop_reason,
            provider_id: Arc::clone(&model.provider_id),
            model_id: Arc::clone(&model.id),
            provider_data: self.provider_data.clone(),
            usage: self.usage,
        }
    }
}

/// What triggered a compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Estimate,
    Overflow,
}

/// Whether images in the request may be the cause. Neither a key nor a quota has to do with
/// them.
fn may_be_about_images(error: &ProviderError) -> bool {
    matches!(
        error.kind,
        ProviderErrorKind::InvalidRequest
            | ProviderErrorKind::UnsupportedContent
            | ProviderErrorKind::Other
    )
}

impl TurnRun<'_> {
    /// Gets the next answer. A cut one is stored before the turn ends.
    pub(super) async fn respond(&mut self, step: u32) -> Result<Answer, Ending> {
        compaction::check_fixed_part(&self.model, &self.work.context).map_err(Ending::Failed)?;
        let mut compacted = self.compact_by_estimate().await?;
        let mut attempt = 1;
        // What the model is shown otherwise, while a request is tried without images.
        let mut hidden: Option<ModelProfile> = None;
        loop {
            let mut response = Response::with_room_for(self.room_for_calls());
            let mut reserved = None;
            let cost = self.work.context.request_cost();
            let span = tracing::info_span!(
                "chat",
                gen_ai.operation.name = "chat",
                gen_ai.provider.name = %self.model.provider_id,
                gen_ai.request.model = %self.model.id,
                gen_ai.usage.input_tokens = tracing::field::Empty,
                gen_ai.usage.output_tokens = tracing::field::Empty,
            );
            let streamed = self
                .stream(step, &mut response, &mut reserved)
                .instrument(span.clone())
                .await;
            let error = match streamed {
                Streamed::Done => {
                    if hidden.is_some() {
                        self.work.blind_models.insert(Arc::clone(&self.model.id));
                    }
                    if let Some(usage) = &response.completion.usage {
                        span.record("gen_ai.usage.input_tokens", usage.input_tokens);
                        span.record("gen_ai.usage.output_tokens", usage.output_tokens);
                        self.usage += *usage;
                        self.work.context.calibrate(cost, usage);
                    }
                    return Ok(self.answer(response, reserved, true).await);
                }
                Streamed::Cancelled => {
                    self.store_partial(response, reserved, Interruption::Cancelled)
                        .await;
                    return Err(Ending::Cancelled);
                }
                Streamed::Failed(error) => error,
            };
            if !response.shown {
                if let Some(shown) = self.without_images(&error, hidden.is_some()) {
                    hidden = Some(shown);
                    continue;
                }
                if error.kind == ProviderErrorKind::ContextLengthExceeded {
                    self.recover_from_overflow(&error, compacted).await?;
                    compacted = true;
                    continue;
                }
                if self.wait_for_retry(&error, attempt).await? {
                    attempt += 1;
                    continue;
                }
            }
            if let Some(profile) = hidden.take() {
                self.work.context.set_profile(profile);
            }
            let failure = self.failure(&error);
            self.store_failed(response, reserved).await;
            self.refuse_images(&error).await;
            return Err(Ending::Failed(failure));
        }
    }

    async fn answer(&self, response: Response, reserved: Option<u64>, complete: bool) -> Answer {
        let Completion {
            usage,
            stop_reason,
            provider_data,
        } = response.completion.clone();
        let limit = self.core().config.tool_arguments_limit_bytes;
        let taken = |id: &str| self.work.context.knows_call(id);
        let (parts, calls) = response.finish(complete, limit, taken).await;
        Answer {
            parts,
            calls,
            usage,
            stop_reason,
            provider_data,
            reserved,
        }
    }

    /// Stores what arrived of an answer that failed: from here on a cancel comes too late,
    /// so that the stored reason and the last event say the same.
    async fn store_failed(&mut self, response: Response, reserved: Option<u64>) {
        let interruption = if self.session.begin_finishing() {
            Interruption::Failed
        } else {
            Interruption::Cancelled
        };
        self.store_partial(response, reserved, interruption).await;
    }

    /// Stores what arrived of an answer that was cut. Its calls never run, and the model is
    /// told so.
    async fn store_partial(
        &mut self,
        response: Response,
        reserved: Option<u64>,
        interruption: Interruption,
    ) {
        let answer = self.answer(response, reserved, false).await;
        self.output = answer.text();
        for call in self.store_answer(answer, Some(interruption)).await {
            let kind = call.never_run(interruption, &self.session.core.config.notes);
            self.record(None, kind).await;
        }
    }

    fn failure(&self, error: &ProviderError) -> AgentError {
        let mut failure = AgentError::provider(&self.model.provider_id, error);
        if let Retry::TooLong { retry_after_ms } = retry::decide(error, 1, &self.core().config) {
            failure.message = format!(
                "{} (the server asks to wait {} s, longer than this app waits by itself)",
                failure.message,
                retry_after_ms.div_ceil(1_000)
            );
        }
        failure
    }

    /// Waits before another attempt, if there is to be one.
    async fn wait_for_retry(&self, error: &ProviderError, attempt: u32) -> Result<bool, Ending> {
        let Retry::After(delay) = retry::decide(error, attempt, &self.core().config) else {
            return Ok(false);
        };
        self.log.push(AgentEventKind::ProviderRetry {
            attempt: attempt + 1,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error: AgentError::provider(&self.model.provider_id, error),
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Ending::Cancelled),
            () = tokio::time::sleep(delay) => Ok(true),
        }
    }

    /// A request that may have been refused for an image of an older message is tried once more
    /// with all images as placeholders. Returns what the model was shown before.
    fn without_images(&mut self, error: &ProviderError, tried: bool) -> Option<ModelProfile> {
        let context = &mut self.work.context;
        if tried
            || !may_be_about_images(error)
            || context.newest_user_shows_images().is_some()
            || !context.shows_images()
        {
            return None;
        }
        let shown = context.profile().clone();
        context.set_profile(ModelProfile {
            images: Images::Refused,
            ..shown.clone()
        });
        Some(shown)
    }

    /// An error that the images of the newest message may have caused: from now on they are
    /// placeholders, so that the session is not stuck with them.
    async fn refuse_images(&mut self, error: &ProviderError) {
        if let Some(index) = self.work.context.newest_user_shows_images()
            && may_be_about_images(error)
        {
            self.record(
                None,
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::ImagesRefused {
                        indices: vec![index],
                    },
                },
            )
            .await;
            self.work.context.refuse_images(index);
        }
    }

    async fn compact_by_estimate(&mut self) -> Result<bool, Ending> {
        if self.compaction_vetoed {
            return Ok(false);
        }
        match compaction::due(self.core(), &self.model, &self.work.context) {
            Some(tokens) => self.compact(Trigger::Estimate, tokens).await,
            None => Ok(false),
        }
    }

    async fn recover_from_overflow(
        &mut self,
        error: &ProviderError,
        compacted: bool,
    ) -> Result<(), Ending> {
        let tokens = compaction::after_overflow(self.core(), &self.model, &self.work.context);
        if !compacted && self.compact(Trigger::Overflow, tokens).await? {
            return Ok(());
        }
        let reason = if compacted {
            "it is still too long after older messages were left out"
        } else {
            "there is nothing older that could be left out"
        };
        let failure = AgentError::compact(format!(
            "the conversation does not fit the model's window, and {reason}; shorten the message or choose a model with a larger window ({}: {})",
            self.model.provider_id, error.message
        ));
        self.store_failed(Response::default(), None).await;
        Err(Ending::Failed(failure))
    }

    /// Returns whether the context became smaller.
    async fn compact(&mut self, trigger: Trigger, tokens: u64) -> Result<bool, Ending> {
        let compaction = Compaction {
            core: &self.session.core,
            session_id: &self.session.id,
            turn_id: self.log.turn_id(),
            model: &self.model,
            cancel: &self.cancel,
            record: Record::Buffered,
        };
        let attempt = compaction.run(self.work, tokens).await;
        self.usage += attempt.usage;
        if !matches!(attempt.outcome, Outcome::Compacted(_)) {
            self.work.note_spent(attempt.usage);
        }
        for event in attempt.events {
            self.log.push(event);
        }
        match attempt.outcome {
            Outcome::Compacted(_) => Ok(true),
            Outcome::FreesNothing(_) => Ok(false),
            Outcome::Cancelled => Err(Ending::Cancelled),
            Outcome::NotStored(error) => Err(Ending::Failed(error)),
            Outcome::Vetoed(stop) => {
                self.compaction_vetoed = true;
                let vetoed = format!(
                    "the plugin \"{}\" refused to compact the context: {}",
                    stop.plugin_id, stop.reason
                );
                if trigger == Trigger::Overflow {
                    return Err(Ending::Failed(AgentError::compact(format!(
                        "the conversation does not fit the model's window, and {vetoed}"
                    ))));
                }
                self.warn(vec![vetoed], ErrorOrigin::Plugin);
                Ok(false)
            }
        }
    }
}

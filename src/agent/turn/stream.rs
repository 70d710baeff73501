//! The stream of one model call: shown as it arrives, and stored every now and then.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::TurnRun;
use super::respond::Answer;
use super::response::Response;
use crate::agent::error::ErrorOrigin;
use crate::agent::event_log::DeltaKind;
use crate::agent::model_call::{ModelCall, Next};
use crate::agent::provider::{ChatEvent, ChatRequest, Completion, ProviderError, StopReason};
use crate::agent::storage::Interruption;

/// Time between two stored states of a message that is still streaming.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(2);

/// How a stream ended.
pub(super) enum Streamed {
    Done,
    Failed(ProviderError),
    Cancelled,
}

/// What came of a piece of an answer.
enum Taken {
    GoesOn,
    /// The answer is as long as one may be; the rest is not read.
    Full,
    Ended(Streamed),
}

impl TurnRun<'_> {
    /// Makes the call and takes its answer, until that ends one way or another.
    pub(super) async fn stream(
        &mut self,
        step: u32,
        response: &mut Response,
        reserved: &mut Option<u64>,
    ) -> Streamed {
        let request = self.request();
        tracing::trace!(messages = request.messages.len(), "request");
        let call = ModelCall::start(
            &self.model.provider,
            request,
            &self.cancel,
            self.core().idle_limit(),
        )
        .await;
        let mut call = match call {
            Ok(call) => call,
            Err(Next::Failed(error)) => return Streamed::Failed(error),
            Err(Next::Cancelled | Next::Event(_)) => return Streamed::Cancelled,
        };
        let is_stored = self.work.journal.is_stored();
        let mut unsaved = false;
        let mut due = Instant::now() + SNAPSHOT_INTERVAL;
        let mut alarm = std::pin::pin!(tokio::time::sleep_until(due));
        loop {
            // A model that always has more must not keep others from running.
            tokio::task::consume_budget().await;
            let next = tokio::select! {
                biased;
                next = call.next() => Some(next),
                // For a model that falls silent after something that is not stored yet.
                () = &mut alarm, if unsaved => None,
            };
            let now = match next {
                None => Instant::now(),
                Some(next) => {
                    match self.take(step, next, response) {
                        Taken::GoesOn => {}
                        Taken::Full => return Streamed::Done,
                        Taken::Ended(end) => {
                            self.check_end(&end, &mut call);
                            return end;
                        }
                    }
                    unsaved = is_stored && response.shown;
                    call.last_event()
                }
            };
            if unsaved && now >= due {
                self.snapshot(response, reserved);
                unsaved = false;
                due = now + SNAPSHOT_INTERVAL;
                alarm.as_mut().reset(due);
            }
        }
    }

    /// Takes what the model gave, and shows it.
    fn take(&self, step: u32, next: Next, response: &mut Response) -> Taken {
        let limit = self.core().config.response_limit_bytes;
        let (size, fits) = match &next {
            Next::Event(
                ChatEvent::TextDelta { text, .. } | ChatEvent::ReasoningDelta { text, .. },
            ) => (text.len(), response.admit(text, limit)),
            Next::Event(ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                ..
            }) => {
                let size = call_id.len() + tool_name.len() + arguments.len();
                let fits = response.admit_call(size, limit);
                (1, usize::from(fits))
            }
            _ => (0, 0),
        };
        if fits < size {
            return self.cut(step, next, fits, response);
        }
        match next {
            Next::Event(ChatEvent::TextDelta {
                text,
                provider_data,
            }) => {
                response.text_delta(&text, provider_data);
                self.log.push_delta(DeltaKind::Text, step, &text);
            }
            Next::Event(ChatEvent::ReasoningDelta {
                text,
                provider_data,
            }) => {
                response.reasoning_delta(&text, provider_data);
                self.log.push_delta(DeltaKind::Reasoning, step, &text);
            }
            Next::Event(ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                provider_data,
            }) => response.tool_call(call_id, tool_name, arguments, provider_data),
            Next::Event(ChatEvent::Warning { message }) => {
                self.warn(vec![message], ErrorOrigin::Provider);
            }
            Next::Event(ChatEvent::Done(completion)) => {
                response.completion = completion;
                return Taken::Ended(Streamed::Done);
            }
            Next::Failed(error) => return Taken::Ended(Streamed::Failed(error)),
            Next::Cancelled => return Taken::Ended(Streamed::Cancelled),
        }
        Taken::GoesOn
    }

    /// Keeps what fits of the piece that passes the limit, and ends the answer there. A call is
    /// whole or not at all.
    fn cut(&self, step: u32, next: Next, fits: usize, response: &mut Response) -> Taken {
        match next {
            Next::Event(ChatEvent::TextDelta { text, .. }) => {
                let text = text.get(..fits).unwrap_or_default();
                response.text_delta(text, None);
                self.log.push_delta(DeltaKind::Text, step, text);
            }
            Next::Event(ChatEvent::ReasoningDelta { text, .. }) => {
                let text = text.get(..fits).unwrap_or_default();
                response.reasoning_delta(text, None);
                self.log.push_delta(DeltaKind::Reasoning, step, text);
            }
            _ => {}
        }
        let warning = format!(
            "the answer of \"{}\" was cut at {} bytes",
            self.model.id,
            self.core().config.response_limit_bytes
        );
        self.warn(vec![warning], ErrorOrigin::Provider);
        response.completion = Completion::new().with_stop_reason(StopReason::Length);
        Taken::Full
    }

    /// What a provider gives after `Done` is not part of the answer, and a fault of it.
    fn check_end(&self, end: &Streamed, call: &mut ModelCall) {
        if matches!(end, Streamed::Done) && call.goes_on() {
            let warning = format!(
                "the provider \"{}\" went on after the end of its answer; that was ignored",
                self.model.provider_id
            );
            tracing::warn!("{warning}");
            self.warn(vec![warning], ErrorOrigin::Provider);
        }
    }

    fn request(&mut self) -> ChatRequest {
        let mut request =
            ChatRequest::shared(Arc::clone(&self.model.id), self.work.context.messages());
        request.system = Arc::clone(&self.system);
        request.tools = Arc::clone(&self.tools);
        request.temperature = self.options.temperature;
        request.max_tokens = self.options.max_tokens;
        request.reasoning_effort = self.options.reasoning_effort;
        request
            .response_format
            .clone_from(&self.options.response_format);
        request
    }

    /// Stores the text so far in the background: a crash loses at most its last moments.
    fn snapshot(&self, response: &Response, reserved: &mut Option<u64>) {
        let journal = &self.work.journal;
        let index = *reserved.get_or_insert_with(|| journal.reserve());
        let so_far = Answer {
            parts: response.so_far(),
            calls: Vec::new(),
            usage: None,
            stop_reason: None,
            provider_data: None,
            reserved: None,
        };
        let kind = so_far.message(&self.model, Some(Interruption::ProcessEnded));
        journal.snapshot(journal.event(self.log.turn_id(), Some(index), kind));
    }
}

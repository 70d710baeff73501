//! A model call that is no part of the conversation, for a summary or for memories. Its answer
//! is collected whole, so it is limited in size and in time.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::model_call::{ModelCall, Next};
use super::provider::{ChatEvent, ChatRequest, ModelProvider, StopReason, Usage};

/// After so many events the others on the thread have their turn, timers among them: a
/// provider may always have the next event ready.
const EVENTS_IN_A_ROW: u32 = 32;

/// How far an answer may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Longest answer, in bytes of text, reasoning and arguments.
    pub(crate) bytes: usize,
    /// Longest time from the request to the end of the answer.
    pub(crate) total: Duration,
    /// Longest silence between two events; zero means no limit.
    pub(crate) idle: Duration,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop_reason: Option<StopReason>,
}

/// Why there is no whole answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The user cancelled.
    Cancelled,
    /// The call failed, or the answer passed a limit.
    Because(String),
}

/// Makes a call and collects its text. An answer that passes a limit is given up there.
pub(crate) async fn collect(
    provider: &Arc<dyn ModelProvider>,
    request: ChatRequest,
    cancel: &CancellationToken,
    limits: Limits,
) -> Result<Answer, NoAnswer> {
    let collecting = within_size(provider, request, cancel, limits);
    tokio::time::timeout(limits.total, collecting)
        .await
        .unwrap_or_else(|_| {
            let limit = limits.total.as_millis();
            let reason = format!("the model did not finish within {limit} ms");
            Err(NoAnswer::Because(reason))
        })
}

async fn within_size(
    provider: &Arc<dyn ModelProvider>,
    request: ChatRequest,
    cancel: &CancellationToken,
    limits: Limits,
) -> Result<Answer, NoAnswer> {
    let mut call = ModelCall::start(provider, request, cancel, limits.idle)
        .await
        .map_err(no_answer)?;
    let mut text = String::new();
    let mut left = limits.bytes;
    let mut in_a_row = 0;
    loop {
        let event = match call.next().await {
            Next::Event(event) => event,
            end => return Err(no_answer(end)),
        };
        if let ChatEvent::Done(completion) = event {
            return Ok(Answer {
                text,
                usage: completion.usage,
                stop_reason: completion.stop_reason,
            });
        }
        left = left.checked_sub(size(&event)).ok_or_else(|| {
            let limit = limits.bytes;
            NoAnswer::Because(format!("the model's answer is longer than {limit} bytes"))
        })?;
        match event {
            ChatEvent::TextDelta { text: delta, .. } => text.push_str(&delta),
            ChatEvent::Warning { message } => tracing::warn!("{message}"),
            ChatEvent::ReasoningDelta { .. } | ChatEvent::ToolCall { .. } | ChatEvent::Done(_) => {}
        }
        in_a_row += 1;
        if in_a_row == EVENTS_IN_A_ROW {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// What an event counts, in bytes: at least 1, so that a stream of empty ones ends, too.
fn size(event: &ChatEvent) -> usize {
    let bytes = match event {
        ChatEvent::TextDelta { text, .. } | ChatEvent::ReasoningDelta { text, .. } => text.len(),
        ChatEvent::ToolCall {
            tool_name,
            arguments,
            ..
        } => tool_name.len().saturating_add(arguments.len()),
        ChatEvent::Warning { message } => message.len(),
        ChatEvent::Done(_) => 0,
    };
    bytes.max(1)
}

fn no_answer(end: Next) -> NoAnswer {
    match end {
        Next::Failed(error) => NoAnswer::Because(error.message),
        Next::Cancelled | Next::Event(_) => NoAnswer::Cancelled,
    }
}

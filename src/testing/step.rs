//! What a scripted model does, step by step.

use std::sync::Arc;

use super::Gate;
use super::manual::ManualEnd;
use crate::{
    ChatEvent, Completion, ProviderData, ProviderError, ProviderErrorKind, StopReason, Usage,
};

/// A step of a [`ScriptedProvider`](super::ScriptedProvider)'s answer to one request.
///
/// An answer whose steps run out without [`done`] or [`error`] just ends, like a
/// connection that broke.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// The stream gives this event.
    Emit(ChatEvent),
    /// The stream fails.
    Fail(ProviderError),
    /// The stream is silent for good and never looks at the cancel token.
    Wait,
    /// The stream is silent until the cancel token fires.
    UntilCancelled,
    /// The stream is silent until the gate is open.
    Gate(Gate),
    /// The stream is silent once and asks to be polled again at once.
    Yield,
    /// The stream panics.
    Panic(String),
    /// The first step only: `chat` fails instead of giving a stream.
    Refuse(ProviderError),
    /// The first step only: `chat` panics.
    PanicInChat(String),
    /// The rest of the answer is driven by hand; see
    /// [`ScriptedProvider::manual`](super::ScriptedProvider::manual).
    Manual(ManualEnd),
}

impl From<ChatEvent> for Step {
    fn from(event: ChatEvent) -> Self {
        Self::Emit(event)
    }
}

/// A piece of the answer.
pub fn text(text: impl Into<String>) -> Step {
    ChatEvent::text(text).into()
}

/// A piece of the answer that closes its text with opaque data.
pub fn text_with(text: impl Into<String>, provider_data: impl Into<Arc<str>>) -> Step {
    Step::Emit(ChatEvent::TextDelta {
        text: text.into(),
        provider_data: Some(ProviderData(provider_data.into())),
    })
}

/// A piece of reasoning.
pub fn reasoning(text: impl Into<String>) -> Step {
    ChatEvent::reasoning(text).into()
}

/// A piece of reasoning that closes its block with opaque data.
pub fn reasoning_with(text: impl Into<String>, provider_data: impl Into<Arc<str>>) -> Step {
    Step::Emit(ChatEvent::ReasoningDelta {
        text: text.into(),
        provider_data: Some(ProviderData(provider_data.into())),
    })
}

/// A whole tool call; the arguments are sent as they are, valid or not.
pub fn call(
    call_id: impl Into<String>,
    tool_name: impl Into<String>,
    arguments: impl Into<String>,
) -> Step {
    ChatEvent::tool_call(call_id, tool_name, arguments).into()
}

/// A whole tool call with opaque data.
pub fn call_with(
    call_id: impl Into<String>,
    tool_name: impl Into<String>,
    arguments: impl Into<String>,
    provider_data: impl Into<Arc<str>>,
) -> Step {
    Step::Emit(ChatEvent::ToolCall {
        call_id: call_id.into(),
        tool_name: tool_name.into(),
        arguments: arguments.into(),
        provider_data: Some(ProviderData(provider_data.into())),
    })
}

/// The end of the answer, without usage and stop reason.
#[must_use]
pub fn done() -> Step {
    ChatEvent::done().into()
}

/// The end of the answer, with what the provider says of it.
pub fn done_with(
    usage: impl Into<Option<Usage>>,
    stop_reason: impl Into<Option<StopReason>>,
) -> Step {
    let end = Completion::new()
        .with_usage(usage)
        .with_stop_reason(stop_reason);
    Step::Emit(ChatEvent::Done(end))
}

/// The end of the answer, with opaque data of the whole message.
pub fn done_with_data(provider_data: impl Into<Arc<str>>) -> Step {
    let data = ProviderData(provider_data.into());
    Step::Emit(ChatEvent::Done(Completion::new().with_provider_data(data)))
}

/// The failure of the answer.
pub fn error(kind: ProviderErrorKind, message: impl Into<String>) -> Step {
    Step::Fail(ProviderError::new(kind, message))
}

/// Silence for good; the cancel token is ignored. Only dropping the stream ends it.
#[must_use]
pub fn wait() -> Step {
    Step::Wait
}

/// Silence until the cancel token fires; the steps after it then follow.
#[must_use]
pub fn until_cancelled() -> Step {
    Step::UntilCancelled
}

/// Silence until the gate is open.
#[must_use]
pub fn gate(gate: &Gate) -> Step {
    Step::Gate(gate.clone())
}

/// Silence for one poll.
#[must_use]
pub fn yield_once() -> Step {
    Step::Yield
}

/// A panic while the stream is polled.
pub fn panic_with(message: impl Into<String>) -> Step {
    Step::Panic(message.into())
}

/// A failure of `chat` itself; the only step of its answer.
#[must_use]
pub fn refuse(error: ProviderError) -> Step {
    Step::Refuse(error)
}

/// A panic of `chat` itself; the only step of its answer.
pub fn panic_in_chat(message: impl Into<String>) -> Step {
    Step::PanicInChat(message.into())
}

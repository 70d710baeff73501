//! What a model answers: its events, their end, and what that cost.

use serde::{Deserialize, Serialize};

use super::ChatStream;
use crate::agent::message::ProviderData;

/// One event of a model's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChatEvent {
    /// A piece of the answer.
    TextDelta {
        /// The text, of any length; may be empty when only `provider_data` matters.
        text: String,
        /// Opaque data such as a signature; it closes the text it comes with and is sent back
        /// byte for byte. Data without any text before it belongs into a `ReasoningDelta`.
        provider_data: Option<ProviderData>,
    },
    /// A piece of the model's reasoning.
    ReasoningDelta {
        /// The text, may be empty when only `provider_data` matters.
        text: String,
        /// Opaque data such as a signature; it closes the reasoning block it comes with
        /// and is sent back byte for byte.
        provider_data: Option<ProviderData>,
    },
    /// A whole tool call, sent once its arguments are complete.
    ToolCall {
        /// The provider's id of the call. Empty or repeated ids are replaced by the agent.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments as the provider sent them: the text of a JSON object, which the
        /// agent parses. Blank means `{}`; what is no object is told to the model.
        arguments: String,
        /// Opaque data such as a thought signature, sent back byte for byte.
        provider_data: Option<ProviderData>,
    },
    /// Something the user should know that changes nothing of the answer; it becomes a
    /// `Warning` event of the turn.
    Warning {
        /// What, for the user.
        message: String,
    },
    /// The answer is complete.
    Done(Completion),
}

/// What a provider tells at the end of an answer. Everything is optional.
///
/// # Examples
/// ```
/// use youyou_agent::{ChatEvent, Completion, StopReason, Usage};
///
/// let end = Completion::new()
///     .with_usage(Usage::new(1_200, 40))
///     .with_stop_reason(StopReason::Length);
/// let done = ChatEvent::Done(end);
/// # let _ = done;
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Completion {
    /// What the call cost, if the provider said so.
    pub usage: Option<Usage>,
    /// Why the model stopped, if the provider said so.
    pub stop_reason: Option<StopReason>,
    /// Opaque data of the whole message, sent back byte for byte.
    pub provider_data: Option<ProviderData>,
}

impl Completion {
    /// An end of which nothing more is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells what the call cost.
    #[must_use]
    pub fn with_usage(mut self, usage: impl Into<Option<Usage>>) -> Self {
        self.usage = usage.into();
        self
    }

    /// Tells why the model stopped.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: impl Into<Option<StopReason>>) -> Self {
        self.stop_reason = reason.into();
        self
    }

    /// Adds opaque data of the whole message.
    #[must_use]
    pub fn with_provider_data(mut self, data: impl Into<Option<ProviderData>>) -> Self {
        self.provider_data = data.into();
        self
    }
}

impl ChatEvent {
    /// A piece of the answer without opaque data.
    pub fn text(text: impl Into<String>) -> Self {
        Self::TextDelta {
            text: text.into(),
            provider_data: None,
        }
    }

    /// An answer of events that are there already.
    pub fn stream<I>(events: I) -> ChatStream
    where
        I: IntoIterator<Item = Self>,
        I::IntoIter: Send + 'static,
    {
        let events = events.into_iter().map(Ok);
        Box::pin(futures_util::stream::iter(events))
    }

    /// A piece of reasoning without opaque data.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::ReasoningDelta {
            text: text.into(),
            provider_data: None,
        }
    }

    /// A whole tool call without opaque data.
    pub fn tool_call(
        call_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self::ToolCall {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            arguments: arguments.into(),
            provider_data: None,
        }
    }

    /// The end of an answer of which nothing more is known.
    #[must_use]
    pub fn done() -> Self {
        Self::Done(Completion::new())
    }
}

/// Why a model stopped. Whether the turn goes on is decided by the tool calls of the answer,
/// not by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum StopReason {
    /// The answer is finished, or the model waits for the results of its calls.
    EndTurn,
    /// The limit of output tokens was reached: the answer is cut. A tool call at its end is
    /// not run when its arguments are not whole.
    Length,
    /// The provider's content filter stopped it.
    ContentFilter,
    /// The model refused; its words, if it had any, are the answer.
    Refusal,
    /// Anything else.
    Other,
}

impl StopReason {
    /// Whether the answer is not what the model would have said in full: it was cut by a
    /// limit, filtered or refused. Such an answer is stored as incomplete.
    #[must_use]
    pub fn is_cut(self) -> bool {
        match self {
            Self::Length | Self::ContentFilter | Self::Refusal => true,
            Self::EndTurn | Self::Other => false,
        }
    }
}

/// What a model call, a turn or a session cost, in tokens. Absent means unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct Usage {
    /// The whole input, cached parts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub input_tokens: Option<u64>,
    /// The output, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub output_tokens: Option<u64>,
    /// The part of the input that came from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub cached_input_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// What a call cost that reported its whole input and its whole output.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..Self::default()
        }
    }
}

/// Adds what another call cost. Unknown plus known is known.
impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        fn sum(into: &mut Option<u64>, more: Option<u64>) {
            if let Some(more) = more {
                *into = Some(into.unwrap_or(0).saturating_add(more));
            }
        }
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.cached_input_tokens, other.cached_input_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

//! The contract between the agent and a language model (chapter 3.1).
//!
//! An implementor reads this file and [`Message`](super::message::Message).

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::message::{Message, Messages, ProviderData};

/// A source of language models.
///
/// The agent asks [`models`](Self::models) again at every create, resume, send and
/// list, so a provider may gain models while the app runs.
///
/// [`chat`](Self::chat) is called for each answer of a turn: once, and again after every
/// round of tool calls. It is also called for summaries and for memories, without tools, and
/// calls may overlap. A provider that hangs fails after `provider_idle_timeout_ms` without an
/// event, and one that panics fails its call only. What is tried again by itself is told at
/// [`ProviderErrorKind`].
///
/// # Order
/// A response is any number of deltas and tool calls, then one [`ChatEvent::Done`] or one
/// `Err`. `Done` is the only sign of success: a stream that ends without it is a
/// [`ProviderErrorKind::Network`] error. What follows the first `Done` is ignored with a
/// warning, and what follows an `Err` is never read.
///
/// # Examples
/// ```
/// use async_trait::async_trait;
/// use tokio_util::sync::CancellationToken;
/// use youyou_agent::{
///     Capabilities, ChatEvent, ChatRequest, ChatStream, Message, ModelInfo, ModelProvider,
///     ProviderError, ProviderErrorKind,
/// };
///
/// /// Says what the user said.
/// struct Parrot;
///
/// #[async_trait]
/// impl ModelProvider for Parrot {
///     fn id(&self) -> &str {
///         "parrot"
///     }
///
///     fn models(&self) -> Vec<ModelInfo> {
///         vec![ModelInfo::new("parrot-1", "Parrot", 8_000, Capabilities::default())]
///     }
///
///     async fn chat(
///         &self,
///         request: ChatRequest,
///         _cancel: CancellationToken,
///     ) -> Result<ChatStream, ProviderError> {
///         // Not simply the last message: a note of the agent may follow it.
///         let mut newest_first = request.messages.iter_rev();
///         let said = newest_first.find(|message| matches!(***message, Message::User(_)));
///         let Some(said) = said else {
///             return Err(ProviderError::new(
///                 ProviderErrorKind::InvalidRequest,
///                 "there is nothing to repeat",
///             ));
///         };
///         Ok(ChatEvent::stream([
///             ChatEvent::text(said.text()),
///             ChatEvent::done(),
///         ]))
///     }
/// }
/// ```
///
/// A provider for a server makes its own format of the request. This is all there is in one;
/// `examples/chat` of the repository has whole providers over HTTP, with streaming.
/// ```
/// use serde_json::{Value, json};
/// use youyou_agent::{AssistantPart, ChatRequest, ContentBlock, Message};
///
/// fn body(request: &ChatRequest) -> Value {
///     json!({
///         "model": &*request.model_id,
///         "system": request.system.iter().map(|block| &*block.text).collect::<Vec<_>>(),
///         "messages": request.messages.iter().map(|one| message(one)).collect::<Vec<_>>(),
///         "tools": request.tools.iter().map(|tool| json!({
///             "name": &*tool.name,
///             "description": tool.description,
///             "parameters": tool.parameters,
///         })).collect::<Vec<_>>(),
///         "temperature": request.temperature,
///         "max_tokens": request.max_tokens,
///     })
/// }
///
/// fn message(message: &Message) -> Value {
///     match message {
///         Message::User(user) => json!({
///             "role": "user",
///             "content": user.content.iter().map(block).collect::<Vec<_>>(),
///         }),
///         Message::Assistant(answer) => json!({
///             "role": "assistant",
///             "content": answer.parts.iter().filter_map(part).collect::<Vec<_>>(),
///         }),
///         Message::ToolResult(result) => json!({
///             "role": "tool",
///             "call_id": &*result.call_id,
///             "content": &*result.content,
///             "is_error": result.is_error,
///         }),
///         // Most servers take system text at the start only: there it goes as a user's.
///         Message::System(note) => json!({ "role": "user", "content": [&**note] }),
///         // A later version may have more kinds of messages.
///         _ => Value::Null,
///     }
/// }
///
/// fn block(block: &ContentBlock) -> Value {
///     match block {
///         ContentBlock::Text { text } => json!(text),
///         ContentBlock::Image { media_type, data } => {
///             json!({ "image": format!("data:{media_type};base64,{data}") })
///         }
///         ContentBlock::File { name, text } => json!(format!("{name}:\n{text}")),
///         _ => Value::Null,
///     }
/// }
///
/// fn part(part: &AssistantPart) -> Option<Value> {
///     match part {
///         AssistantPart::Text { text, .. } => Some(json!(&**text)),
///         AssistantPart::ToolCall { call_id, tool_name, arguments, .. } => Some(json!({
///             "call_id": &**call_id,
///             "name": &**tool_name,
///             "arguments": arguments.to_string(),
///         })),
///         // Reasoning is sent back by the providers that ask for it, with its `provider_data`.
///         _ => None,
///     }
/// }
/// ```
#[async_trait]
pub trait ModelProvider: Send + Sync + 'static {
    /// The provider's id, unique among all providers of an agent.
    fn id(&self) -> &str;

    /// The models that can be used right now. Model ids are unique over all providers, else
    /// the build fails with `NAME_CONFLICT`; where two clash while the app runs, the provider
    /// registered first wins. A blank id and a context window of 0 fail the build; while the app
    /// runs such a model is left out.
    ///
    /// It is called often, from a thread of its own within the agent's runtime: answer from memory.
    /// Where an answer takes longer than half a second, the list before counts until it is there.
    fn models(&self) -> Vec<ModelInfo>;

    /// Starts one model call and streams its answer.
    ///
    /// `cancel` fires when the user cancels. The agent drops the stream at the same
    /// moment, so dropping must end the request. Where it does, `cancel` can be left alone.
    ///
    /// # Errors
    /// What failed before the stream began. It is treated like an `Err` of the stream.
    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError>;
}

/// The answer of a model, event by event. Any such `Stream` is one once it is boxed, for
/// instance what `try_stream!` of the crate `async-stream` makes; [`ChatEvent::stream`] makes
/// one of events that are there already.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<ChatEvent, ProviderError>> + Send>>;

#[async_trait]
impl<T: ModelProvider + ?Sized> ModelProvider for Arc<T> {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn models(&self) -> Vec<ModelInfo> {
        (**self).models()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        (**self).chat(request, cancel).await
    }
}

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ModelInfo {
    /// Unique over all providers of the agent.
    pub id: String,
    /// For people.
    pub display_name: String,
    /// Size of the context window in tokens. The context is compacted by it.
    pub context_window: u32,
    /// What the model can do.
    pub capabilities: Capabilities,
}

impl ModelInfo {
    /// Describes a model: id, name for people, context window in tokens, capabilities.
    pub fn new(
        id: impl Into<String>,
        display_name: impl Into<String>,
        context_window: u32,
        capabilities: Capabilities,
    ) -> Self {
        Self {
            id: id.into(),
            display_name: display_name.into(),
            context_window,
            capabilities,
        }
    }
}

/// What a model can do. The default: tools and streaming, no vision, no reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct Capabilities {
    /// The model can call tools. Without it no tool definitions are sent.
    pub tool_use: bool,
    /// The model takes images. Without it images are replaced by placeholders.
    pub vision: bool,
    /// The answer arrives in pieces. For lists of models; the agent reads both alike.
    pub streaming: bool,
    /// The model shows its reasoning and takes `reasoning_effort`. For lists of models.
    pub reasoning: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            tool_use: true,
            vision: false,
            streaming: true,
            reasoning: false,
        }
    }
}

/// One model call.
///
/// Everything in it is shared: a request costs a few reference counts, whatever the
/// length of the history.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model to use, one of those the provider declares.
    pub model_id: Arc<str>,
    /// The system prompt in blocks, in order.
    pub system: Arc<[PromptBlock]>,
    /// The conversation, oldest first. Always valid: each tool call is followed by its
    /// result, nothing is blank, the first message is user-side. The last one is the user's,
    /// a tool result, or a note ([`Message::System`](crate::Message::System)).
    pub messages: Messages,
    /// The tools the model may call, sorted by name.
    pub tools: Arc<[ToolSpec]>,
    /// Sampling temperature, if the caller set one.
    pub temperature: Option<f32>,
    /// Upper limit of the answer in tokens, if one was set.
    pub max_tokens: Option<u32>,
    /// How much the model should reason, if the caller said so.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The shape the answer must have, if the caller asked for one.
    pub response_format: Option<ResponseFormat>,
}

impl ChatRequest {
    /// A request without system prompt, tools and parameters.
    pub fn new(model_id: impl Into<Arc<str>>, messages: impl IntoIterator<Item = Message>) -> Self {
        Self::shared(model_id.into(), messages.into_iter().collect())
    }

    pub(crate) fn shared(model_id: Arc<str>, messages: Messages) -> Self {
        Self {
            model_id,
            system: Arc::default(),
            messages,
            tools: Arc::default(),
            temperature: None,
            max_tokens: None,
            reasoning_effort: None,
            response_format: None,
        }
    }
}

/// The shape of an answer: JSON that fits a schema (structured output).
///
/// A provider maps it to what its server has. One whose server has nothing of the kind
/// refuses the request with [`ProviderErrorKind::UnsupportedContent`] and says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ResponseFormat {
    /// Names the schema for the server: letters, digits, `_` and `-`, at most 64 of them.
    pub name: String,
    /// JSON Schema of the answer; its type is `object`.
    #[cfg_attr(feature = "bindings", specta(type = crate::agent::json::JsonValue))]
    pub schema: Value,
}

impl ResponseFormat {
    /// Asks for JSON that fits `schema`.
    pub fn json_schema(name: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            schema,
        }
    }
}

/// A piece of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock {
    /// The text of the block. Join blocks by a blank line where a server takes one text.
    pub text: Arc<str>,
    /// Whether the block stays byte-identical over the session, so that a provider's
    /// prompt cache may end after it.
    pub stable: bool,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name the model calls.
    pub name: Arc<str>,
    /// What the tool does.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// How much a model should reason before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// A lot.
    High,
}

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

/// A failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure it is: the agent decides by this alone, never by the message.
    pub kind: ProviderErrorKind,
    /// For the user: what failed and what to do.
    pub message: String,
}

impl ProviderError {
    /// A failure of this kind, with a message for the user.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The kinds of failure the agent tells apart.
///
/// `RateLimited`, `Overloaded`, `Network` and `Timeout` are tried again by themselves, up to
/// `max_retries` times and only while nothing of the answer was shown. Whatever is left fails
/// the turn with `PROVIDER_ERROR`, but for an overflow that cannot be mended (`COMPACT_ERROR`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The request does not fit the model's window. The only kind that makes the agent compact
    /// the context and ask again.
    ContextLengthExceeded,
    /// Too many requests.
    RateLimited {
        /// Milliseconds the server asked to wait, if it did. More than `retry_max_delay_ms`
        /// fails at once.
        retry_after_ms: Option<u64>,
    },
    /// The server is overloaded.
    Overloaded,
    /// The connection failed or the stream broke off.
    Network,
    /// The server did not answer in time.
    Timeout,
    /// The key is missing or wrong.
    Auth,
    /// The account has no credit left.
    Quota,
    /// The server refuses the request as malformed. The images of the newest message are
    /// placeholders from then on, as they may be the cause; so with the next two kinds.
    InvalidRequest,
    /// The model cannot take a content block of the request.
    UnsupportedContent,
    /// Anything else. Not tried again by itself; the user may.
    Other,
}

impl ProviderErrorKind {
    /// Whether the same request may succeed later (the `retryable` field of the error):
    /// `RateLimited`, `Overloaded`, `Network`, `Timeout` and `Other`.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded
            | Self::Network
            | Self::Timeout
            | Self::Other => true,
            Self::ContextLengthExceeded
            | Self::Auth
            | Self::Quota
            | Self::InvalidRequest
            | Self::UnsupportedContent => false,
        }
    }
}

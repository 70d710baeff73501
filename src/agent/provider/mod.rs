//! The contract between the agent and a language model.
//!
//! An implementor reads this folder and [`Message`](super::message::Message).

// Requirements: 3.1 ModelProvider.

mod answer;
mod failure;
mod model;
mod request;

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use tokio_util::sync::CancellationToken;

pub use answer::{ChatEvent, Completion, StopReason, Usage};
pub use failure::{ProviderError, ProviderErrorKind};
pub use model::{Capabilities, ModelInfo};
pub use request::{ChatRequest, PromptBlock, ReasoningEffort, ResponseFormat, ToolSpec};

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

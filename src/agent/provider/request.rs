//! What a model is asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::message::{Message, Messages};

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
/// refuses the request with [`ProviderErrorKind::UnsupportedContent`](crate::ProviderErrorKind::UnsupportedContent) and says so.
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

//! The one error type of the agent: a code for machines, a message for people.
//!
//! Every code has its named constructor in `codes` and nowhere else, so that retryability and
//! origin are decided once per code.

// Requirements: 9 Errors.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod caller;
mod codes;

pub(crate) use caller::caller_error;

/// What went wrong, for machines. Codes are stable; messages are not.
///
/// As text and as JSON a code is written like `SESSION_BUSY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum ErrorCode {
    /// Build: no model provider is registered.
    NoModelProvider,
    /// Build: two registrations share a provider id, model id, tool name, skill name or plugin id.
    NameConflict,
    /// Build: a skill requires a tool that is not registered.
    SkillDependencyNotMet,
    /// Build: a plugin failed, panicked or took too long in `initialize` or `apply`.
    PluginInitFailed,
    /// Build: a second session or memory storage was registered.
    StorageDuplicate,
    /// Build: the default model is not declared by any provider.
    InvalidDefaultModel,
    /// Build: a configuration value is out of range, or a tool's schema is no valid JSON Schema.
    InvalidConfig,
    /// A session is open already, a turn is running, or the session is being changed.
    SessionBusy,
    /// No provider declares the model.
    ModelNotSupported,
    /// The provider failed; retryable depending on the kind of failure.
    ProviderError,
    /// A tool failed, panicked or was called with arguments it does not take.
    ToolExecutionError,
    /// A tool did not end within `tool_timeout_ms`.
    ToolTimeout,
    /// The model called a tool that is not registered.
    ToolNotFound,
    /// The input starts with `/name` and no skill has that name.
    SkillNotFound,
    /// No stored session has that id.
    SessionNotFound,
    /// A storage failed or did not answer within `storage_timeout_ms`.
    StorageError,
    /// The turn asked for more tool calls than `max_tool_calls_per_turn`.
    MaxToolCallsExceeded,
    /// The context does not fit the model's window and cannot be made smaller.
    CompactError,
    /// The request was cancelled.
    RequestCancelled,
    /// The input is not usable: nothing in it, a broken image, a bad argument.
    InvalidInput,
    /// The model cannot take this kind of content.
    ContentNotSupported,
    /// A plugin's hook refused the operation.
    HookAborted,
    /// The agent was shut down.
    AgentShutDown,
    /// A fault of the agent itself, such as a contained panic.
    Internal,
}

/// The part of the system an error comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
#[serde(rename = "ErrorSource")]
pub enum ErrorOrigin {
    /// The agent itself.
    Agent,
    /// A model provider.
    Provider,
    /// A tool.
    Tool,
    /// An agent plugin.
    Plugin,
    /// A session or memory storage.
    Storage,
    /// The way between page and agent.
    Ipc,
}

/// An error as the caller sees it.
///
/// Over IPC it is the object `{ code, message, retryable, source, retryAfterMs?, details? }`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct AgentError {
    /// What went wrong, for machines.
    pub code: ErrorCode,
    /// What went wrong and what to do, for people.
    pub message: String,
    /// Whether the same request may succeed when it is sent again: for `SESSION_BUSY`,
    /// `TOOL_TIMEOUT`, `STORAGE_ERROR` and `REQUEST_CANCELLED`, and for `PROVIDER_ERROR` where
    /// the kind of failure allows it.
    pub retryable: bool,
    /// The part of the system the error comes from; `source` on the wire.
    #[serde(rename = "source")]
    pub origin: ErrorOrigin,
    /// Milliseconds to wait before trying again, when the server named them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub retry_after_ms: Option<u64>,
    /// More facts, free in shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<crate::agent::json::JsonValue>))]
    pub details: Option<Value>,
    /// What [`source`](std::error::Error::source) gives; it stays in this process.
    #[serde(skip)]
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The cause does not count: it does not cross the wire.
impl PartialEq for AgentError {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            code,
            message,
            retryable,
            origin,
            retry_after_ms,
            details,
            cause: _,
        } = self;
        *code == other.code
            && *message == other.message
            && *retryable == other.retryable
            && *origin == other.origin
            && *retry_after_ms == other.retry_after_ms
            && *details == other.details
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause = self.cause.as_deref()?;
        Some(cause)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `fmt` is called with string-like enums only; serde writes the code.
        self.serialize(f)
    }
}

impl AgentError {
    fn new(code: ErrorCode, origin: ErrorOrigin, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: false,
            origin,
            retry_after_ms: None,
            details: None,
            cause: None,
        }
    }

    fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Adds facts in free shape.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

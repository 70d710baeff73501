//! The contract between the agent and a tool.
//!
//! Most tools are a function: begin with [`typed`], or with [`typed_blocking`] for one that
//! reads files or waits. Implement [`ToolHandler`] where the schema is known only at run time.
//! Both are registered by [`AgentBuilder::tool`](crate::AgentBuilder::tool).

// Chapter 3.2.

pub(crate) mod dispatcher;
pub(crate) mod output;
pub(crate) mod set;
mod typed;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use typed::{BoxedOutput, TypedTool, typed, typed_blocking};

use super::event_log::TurnLog;

/// Something the model can do.
///
/// Each call runs in a task of its own. A tool that blocks its thread for long uses
/// [`typed_blocking`] or `tokio::task::spawn_blocking`.
///
/// Before a call the agent checks the arguments against the schema and runs the
/// `BeforeToolUse` hooks. Nothing a tool does fails the turn: bad arguments, an error and a
/// panic (`TOOL_EXECUTION_ERROR`), a timeout (`TOOL_TIMEOUT`) and an unknown name
/// (`TOOL_NOT_FOUND`) become a result that the model reads.
///
/// # Examples
/// ```
/// use async_trait::async_trait;
/// use serde_json::json;
/// use youyou_agent::{ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput};
///
/// struct Clock;
///
/// #[async_trait]
/// impl ToolHandler for Clock {
///     fn definition(&self) -> ToolDefinition {
///         ToolDefinition {
///             name: "now".into(),
///             description: "Tells the time in seconds since 1970.".into(),
///             parameters: json!({ "type": "object", "properties": {} }),
///             mutating: false,
///         }
///     }
///
///     async fn call(&self, _input: ToolInput, _context: ToolContext) -> Result<ToolOutput, ToolError> {
///         let now = std::time::UNIX_EPOCH.elapsed().map_err(ToolError::new)?;
///         Ok(ToolOutput::text(now.as_secs().to_string()))
///     }
/// }
///
/// // A test of a tool needs no agent.
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let input = ToolInput { call_id: "c1".into(), tool_name: "now".into(), arguments: json!({}) };
/// let output = Clock.call(input, ToolContext::detached()).await?;
/// assert!(!output.is_error);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ToolHandler: Send + Sync + 'static {
    /// Name, description, schema and nature of the tool. Read once, at build.
    fn definition(&self) -> ToolDefinition;

    /// Runs one call. The arguments fit the schema.
    ///
    /// A user's cancel never interrupts a call; after `tool_timeout_ms` the token of
    /// `context` fires, and up to 2 s later the future is dropped.
    ///
    /// # Errors
    /// The model gets the message as an error result, and the turn goes on.
    async fn call(&self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// What a tool declares.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Unique among all tools of the agent, and not blank. The agent takes any other name;
    /// most servers take letters, digits, `_` and `-` only, at most 64 of them.
    pub name: String,
    /// For the model: what the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, which are always an object. A schema that is none fails
    /// the build with `INVALID_CONFIG`.
    pub parameters: Value,
    /// Whether the tool changes anything. A batch of calls with a mutating one runs
    /// one after another, in the model's order; others run at once.
    pub mutating: bool,
}

/// A tool as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ToolInfo {
    /// Unique among all tools of the agent.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// JSON Schema of the arguments.
    #[cfg_attr(feature = "bindings", specta(type = crate::agent::json::JsonValue))]
    pub parameters: Value,
    /// Whether the tool changes anything.
    pub mutating: bool,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInput {
    /// The call, unique in its session.
    pub call_id: Arc<str>,
    /// The tool that is called.
    pub tool_name: Arc<str>,
    /// The arguments: an object that fits the schema.
    pub arguments: Value,
}

/// What a tool gives back. A `String` or a `&str` turns into one by `into()`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model. Above `tool_output_limit_bytes` the middle is cut out.
    pub content: String,
    /// Whether the content tells of a failure.
    pub is_error: bool,
    /// For the caller, never for the model: it comes with `ToolCallEnd` and is stored.
    pub metadata: Option<Value>,
}

impl ToolOutput {
    /// A success.
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// A failure that the model reads.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
            metadata: None,
        }
    }

    /// Adds metadata for the caller.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

impl<S: Into<String>> From<S> for ToolOutput {
    fn from(content: S) -> Self {
        Self::text(content)
    }
}

/// Why a tool failed; the model reads it, as it reads [`ToolOutput::error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What failed and what the model can do about it.
    pub message: String,
}

impl ToolError {
    /// A failure with a message for the model.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
        }
    }
}

/// What a call can know and use of its surroundings.
#[derive(Clone)]
pub struct ToolContext {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// Fires when the call has run out of time; never on a user's cancel.
    pub timed_out: CancellationToken,
    progress: Option<ProgressSink>,
}

#[derive(Clone)]
struct ProgressSink {
    log: Arc<TurnLog>,
    call_id: Arc<str>,
}

impl ToolContext {
    pub(crate) fn new(
        log: &Arc<TurnLog>,
        call_id: &Arc<str>,
        timed_out: CancellationToken,
    ) -> Self {
        Self {
            session_id: Arc::clone(log.session_id()),
            turn_id: Arc::clone(log.turn_id()),
            timed_out,
            progress: Some(ProgressSink {
                log: Arc::clone(log),
                call_id: Arc::clone(call_id),
            }),
        }
    }

    /// A context outside of any turn, to test a tool with. Progress goes nowhere.
    #[must_use]
    pub fn detached() -> Self {
        Self {
            session_id: "detached".into(),
            turn_id: "detached".into(),
            timed_out: CancellationToken::new(),
            progress: None,
        }
    }

    /// Tells the user what the tool is doing: a `ToolProgress` event. Longer texts are cut
    /// at 4,096 bytes; what comes after the call has ended is dropped.
    pub fn progress(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress
            && !self.timed_out.is_cancelled()
        {
            sink.log.progress(&sink.call_id, message.into());
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session_id", &self.session_id)
            .field("turn_id", &self.turn_id)
            .finish_non_exhaustive()
    }
}

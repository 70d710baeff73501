//! The contract between the agent and a tool.
//!
//! Most tools are a function: begin with [`typed`], or with [`typed_blocking`] for one that
//! reads files or waits. Implement [`ToolHandler`] where the schema is known only at run time.
//! Both are registered by [`AgentBuilder::tool`](crate::AgentBuilder::tool).

// Chapter 3.2.

pub(crate) mod arguments;
mod context;
pub(crate) mod dispatcher;
pub(crate) mod inside;
mod outcome;
pub(crate) mod output;
mod running;
mod schema;
pub(crate) mod set;
mod storable;
mod typed;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use context::ToolContext;
pub use typed::{IntoToolOutput, TypedTool, typed, typed_blocking};

use super::error::caller_error;

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
///         let parameters = json!({ "type": "object", "properties": {} });
///         ToolDefinition::new("now", "Tells the time in seconds since 1970.", parameters)
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
/// let input = ToolInput::new("c1", "now", json!({}));
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
    /// A user's cancel never interrupts a call: it fires `cancel_requested` of `context`, which a
    /// tool may follow, and the agent waits. After `tool_timeout_ms` `timed_out` fires, and up to
    /// 2 s later the future is dropped.
    ///
    /// A call must not wait for its own end: inside of it, closing or replacing its session is
    /// refused with `SESSION_BUSY`, and a shutdown is begun but not awaited.
    ///
    /// # Errors
    /// The model gets the message as an error result, and the turn goes on.
    async fn call(&self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// A tool that is shared.
#[async_trait]
impl<T: ToolHandler + ?Sized> ToolHandler for Arc<T> {
    fn definition(&self) -> ToolDefinition {
        (**self).definition()
    }

    async fn call(&self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(input, context).await
    }
}

/// What a tool declares.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Unique among all tools of the agent: 1 to 64 characters, each one of `A-Z`, `a-z`, `0-9`,
    /// `_` and `-`. Another name fails the build with `INVALID_CONFIG`.
    pub name: String,
    /// For the model: what the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, which are always an object. An invalid schema fails the
    /// build with `INVALID_CONFIG`.
    pub parameters: Value,
    /// Whether the tool changes anything. A batch of calls with a mutating one runs
    /// one after another, in the model's order; others run at once.
    pub mutating: bool,
}

impl ToolDefinition {
    /// A tool that changes nothing.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            mutating: false,
        }
    }

    /// Marks the tool as one that changes something.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }
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
#[non_exhaustive]
pub struct ToolInput {
    /// The call, unique in its session.
    pub call_id: Arc<str>,
    /// The tool that is called.
    pub tool_name: Arc<str>,
    /// The arguments: an object that fits the schema.
    pub arguments: Value,
}

impl ToolInput {
    /// A call as the agent makes it, to test a tool with.
    pub fn new(
        call_id: impl Into<Arc<str>>,
        tool_name: impl Into<Arc<str>>,
        arguments: Value,
    ) -> Self {
        Self {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            arguments,
        }
    }
}

/// What a tool gives back. A `String` or a `&str` turns into one by `into()`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// For the model. Above `tool_output_limit_bytes` the middle is cut out.
    pub content: String,
    /// Whether the content tells of a failure.
    pub is_error: bool,
    /// For the caller, never for the model: it comes with `ToolCallEnd` and is stored. Above
    /// 1 MiB of JSON, or nested deeper than 64 levels, it is left out with a warning.
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

impl From<String> for ToolOutput {
    fn from(content: String) -> Self {
        Self::text(content)
    }
}

impl From<&str> for ToolOutput {
    fn from(content: &str) -> Self {
        Self::text(content)
    }
}

caller_error! {
    /// Why a tool failed; the model reads it, as it reads [`ToolOutput::error`].
    ToolError {
        /// What failed and what the model can do about it.
        message
    }
}

//! What becomes of a call: the result that the model reads, that is stored and that is shown.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::ToolOutput;
use super::dispatcher::Call;
use super::output::admitted;
use super::storable;
use crate::agent::config::AgentConfig;
use crate::agent::error::{AgentError, ErrorCode};
use crate::agent::notes::Notes;
use crate::agent::storage::SessionEventKind;

/// Longest metadata of a result, in bytes of JSON.
const MAX_METADATA_BYTES: usize = 1024 * 1024;

/// The result of a call.
pub(super) struct Outcome {
    pub(super) output: Arc<str>,
    pub(super) is_error: bool,
    pub(super) error: Option<ErrorCode>,
    pub(super) metadata: Option<Arc<Value>>,
    pub(super) duration: Duration,
}

impl Outcome {
    /// What a tool gave back, within the limits. Metadata that cannot be stored is left out;
    /// the text says why.
    pub(super) fn of(
        output: ToolOutput,
        config: &AgentConfig,
        duration: Duration,
    ) -> (Self, Option<String>) {
        let (metadata, left_out) = match output.metadata {
            None => (None, None),
            Some(metadata) => match storable::admit(metadata, MAX_METADATA_BYTES) {
                Ok(metadata) => (Some(Arc::new(metadata.value)), None),
                Err(refused) => (None, Some(refused.to_string())),
            },
        };
        let this = Self {
            output: admitted(output.content, config.tool_output_limit_bytes).into(),
            is_error: output.is_error,
            error: output.is_error.then_some(ErrorCode::ToolExecutionError),
            metadata,
            duration,
        };
        (this, left_out)
    }

    /// The message of the error that a tool gave back.
    pub(super) fn of_error(message: String, config: &AgentConfig, duration: Duration) -> Self {
        // Cut before it is put together with the code, which copies it.
        let message = admitted(message, config.tool_output_limit_bytes);
        Self::failed(&AgentError::tool_execution(message), config, duration)
    }

    /// An error, with its code first.
    pub(super) fn failed(error: &AgentError, config: &AgentConfig, duration: Duration) -> Self {
        Self {
            output: admitted(error.to_string(), config.tool_output_limit_bytes).into(),
            is_error: true,
            error: Some(error.code),
            metadata: None,
            duration,
        }
    }

    /// A call that a cancel came before.
    pub(super) fn cancelled(notes: &Notes) -> Self {
        Self::not_run(&notes.call_cancelled, Some(ErrorCode::RequestCancelled))
    }

    /// A call whose answer was cut by something else than a cancel.
    pub(super) fn not_executed(notes: &Notes) -> Self {
        Self::not_run(&notes.call_not_executed, None)
    }

    /// A call beyond the limit of the turn.
    pub(super) fn over_limit(call: &Call, config: &AgentConfig) -> Self {
        let code = ErrorCode::MaxToolCallsExceeded;
        let mut text = format!(
            "{code}: {} A turn has at most {} tool calls.",
            config.notes.call_not_executed, config.max_tool_calls_per_turn
        );
        if call.dropped_after > 0 {
            text.push_str(&format!(
                " {} more calls came after this one; they did not run either and are not kept.",
                call.dropped_after
            ));
        }
        Self::not_run(&text, Some(code))
    }

    fn not_run(text: &str, error: Option<ErrorCode>) -> Self {
        Self {
            output: text.into(),
            is_error: true,
            error,
            metadata: None,
            duration: Duration::ZERO,
        }
    }

    /// The record of it.
    pub(super) fn event(&self, call: &Call) -> SessionEventKind {
        SessionEventKind::ToolResult {
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            output: Arc::clone(&self.output),
            is_error: self.is_error,
            error: self.error,
            metadata: self.metadata.clone(),
            duration_ms: self.duration_ms(),
        }
    }

    /// How long the tool ran, in milliseconds.
    pub(super) fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }
}

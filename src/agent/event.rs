//! What a turn tells its caller, event by event (chapter 7).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{AgentError, ErrorCode, ErrorOrigin};
use super::provider::{StopReason, Usage};

/// One event of a turn, in the envelope that all events share.
///
/// # Order
/// `sequence` rises strictly for the life of the agent. `TurnStarted` is first;
/// `TurnComplete` or `TurnCancelled` is last, exactly once; each `ToolCallStart` comes
/// before its `ToolCallEnd`. An `Error` alone never ends a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct AgentEvent {
    /// The session.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub session_id: Arc<str>,
    /// The turn.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub turn_id: Arc<str>,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub timestamp: u64,
    /// Number of the event; of a coalesced delta, the number of its last part.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub sequence: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: AgentEventKind,
}

/// What happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum AgentEventKind {
    /// The turn was accepted and begins.
    TurnStarted,
    /// A piece of the answer.
    TextDelta {
        /// Index of the model call in the turn, from 0.
        step: u32,
        /// The text.
        delta: String,
        /// Number of the first part; equal to `sequence` unless parts were coalesced.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        first_sequence: u64,
    },
    /// A piece of the model's reasoning.
    ReasoningDelta {
        /// Index of the model call in the turn, from 0.
        step: u32,
        /// The text.
        delta: String,
        /// Number of the first part; equal to `sequence` unless parts were coalesced.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        first_sequence: u64,
    },
    /// A tool call begins, after the `BeforeToolUse` hooks.
    ToolCallStart {
        /// Index of the model call in the turn, from 0.
        step: u32,
        /// The call, unique in its session.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// The tool.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        tool_name: Arc<str>,
        /// The arguments that are really used.
        #[cfg_attr(feature = "bindings", specta(type = crate::agent::json::JsonValue))]
        arguments: Arc<Value>,
    },
    /// A running tool reports progress. Of each call the newest 32 messages are kept: a reader
    /// that lags misses older ones, and their numbers are gaps.
    ToolProgress {
        /// The call.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// What the tool says, at most 4,096 bytes.
        message: String,
    },
    /// A tool call ended.
    ToolCallEnd {
        /// Index of the model call in the turn, from 0.
        step: u32,
        /// The call.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// The tool.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        tool_name: Arc<str>,
        /// What the model sees of the result, after hooks and limits.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        output: Arc<str>,
        /// What the tool adds for the caller, never for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<crate::agent::json::JsonValue>))]
        metadata: Option<Arc<Value>>,
        /// How long the tool ran, in milliseconds; 0 if it did not run.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        duration_ms: u64,
        /// Whether the tool succeeded.
        success: bool,
        /// Why it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        error: Option<ErrorCode>,
    },
    /// Older messages were replaced by less.
    ContextCompacted {
        /// How.
        method: CompactionMethod,
        /// Estimated size before, in tokens.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        tokens_before: u64,
        /// Estimated size after, in tokens.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        tokens_after: u64,
        /// How many messages the model no longer sees.
        messages_removed: u32,
    },
    /// The model call failed before anything was shown and is tried again.
    ProviderRetry {
        /// Number of the coming attempt, from 1.
        attempt: u32,
        /// Milliseconds until then.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        delay_ms: u64,
        /// Why the last attempt failed.
        error: AgentError,
    },
    /// Something went wrong that does not stop the turn.
    Warning {
        /// What.
        message: String,
        /// Where; `source` on the wire.
        #[serde(rename = "source")]
        origin: ErrorOrigin,
    },
    /// Something failed. Alone it does not end the turn.
    Error {
        /// What.
        error: AgentError,
    },
    /// The turn ended, completed or failed. Always last.
    TurnComplete {
        /// `Completed` or `Failed`.
        status: TurnStatus,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<AgentError>))]
        error: Option<Box<AgentError>>,
        /// Why the model stopped in the turn's last response, if the provider said so. An
        /// answer that was cut by a limit, filtered or refused completes its turn: look here
        /// before you take it for a whole one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        stop_reason: Option<StopReason>,
        /// Text of the turn's last response, as the `TurnEnd` hooks left it.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        assistant_output: Arc<str>,
        /// What the turn cost.
        usage: Usage,
        /// What the session has cost so far.
        session_usage: Usage,
        /// Estimated size of the context, in tokens.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        context_tokens: u64,
        /// The model's window, in tokens.
        context_window: u32,
    },
    /// The turn was cancelled. Always last.
    TurnCancelled {
        /// What the turn cost.
        usage: Usage,
    },
    /// A subscriber was so far behind that whole turns were dropped before it came to them: up
    /// to this event's number, which is that of the last event of the last of these turns. What
    /// was said in them is in the session's history. Only a
    /// [`Subscription`](crate::Subscription) gives it, between turns; it is no event of its turn.
    Skipped {
        /// How many events were dropped, deltas counted one by one.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        events: u64,
    },
}

impl AgentEventKind {
    /// Whether this is the last event of its turn.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::TurnComplete { .. } | Self::TurnCancelled { .. })
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum TurnStatus {
    /// The model came to an end. Why it stopped is told by the stop reason.
    Completed,
    /// The turn failed; the `error` says why.
    Failed,
    /// The user cancelled.
    Cancelled,
}

/// How the context was made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum CompactionMethod {
    /// A model wrote a summary.
    Summarized,
    /// The oldest messages were left out.
    Truncated,
}

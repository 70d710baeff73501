//! What a session is made of, as it is stored: its events and the facts among them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::error::ErrorCode;
use crate::agent::event::CompactionMethod;
use crate::agent::message::{AssistantPart, ContentBlock, ProviderData};
use crate::agent::provider::{StopReason, Usage};

/// Something that happened in a session, as it is stored.
///
/// It serialises to JSON that later versions of this crate can read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SessionEvent {
    /// Position in the session, given by the agent.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub index: u64,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub timestamp: u64,
    /// The turn it belongs to; empty for what happens between turns.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub turn_id: Arc<str>,
    /// What happened.
    #[serde(flatten)]
    pub kind: SessionEventKind,
}

impl SessionEvent {
    /// An event at a position of the session.
    pub fn new(
        index: u64,
        timestamp: u64,
        turn_id: impl Into<Arc<str>>,
        kind: SessionEventKind,
    ) -> Self {
        Self {
            index,
            timestamp,
            turn_id: turn_id.into(),
            kind,
        }
    }

    /// Whether the event counts as a message of the session: a user's, or an answer with
    /// anything in it.
    #[must_use]
    pub fn is_message(&self) -> bool {
        match &self.kind {
            SessionEventKind::UserMessage { .. } => true,
            SessionEventKind::AssistantMessage { parts, .. } => !parts.is_empty(),
            SessionEventKind::ToolCall { .. }
            | SessionEventKind::ToolResult { .. }
            | SessionEventKind::SystemMessage { .. }
            | SessionEventKind::Metadata { .. } => false,
        }
    }

    /// Whether the event is a user's message.
    #[must_use]
    pub fn is_user_message(&self) -> bool {
        matches!(self.kind, SessionEventKind::UserMessage { .. })
    }

    /// Why an answer was cut from outside; nothing for one that the model itself ended, whole or
    /// not. A storage may know only that it is incomplete.
    pub(crate) fn interruption(&self) -> Option<Interruption> {
        match &self.kind {
            SessionEventKind::AssistantMessage {
                status,
                interruption,
                stop_reason,
                ..
            } => {
                let unexplained = *status == MessageStatus::Incomplete && stop_reason.is_none();
                interruption.or(unexplained.then_some(Interruption::Cancelled))
            }
            _ => None,
        }
    }

    /// The fact about the session, where the event is one.
    #[must_use]
    pub fn metadata(&self) -> Option<&SessionMetadata> {
        match &self.kind {
            SessionEventKind::Metadata { metadata } => Some(metadata),
            _ => None,
        }
    }

    /// What a model call that the event tells of has cost.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        match &self.kind {
            SessionEventKind::AssistantMessage { usage, .. } => *usage,
            SessionEventKind::Metadata { metadata } => match metadata {
                SessionMetadata::Compacted(record) => record.usage,
                SessionMetadata::MemoryCheckpoint { usage, .. } => *usage,
                SessionMetadata::Spent { usage } => Some(*usage),
                _ => None,
            },
            _ => None,
        }
    }

    /// Where the head moves to, where the event moves it: `Some(None)` is the very start.
    #[must_use]
    pub fn head_moved_to(&self) -> Option<Option<u64>> {
        match self.metadata() {
            Some(SessionMetadata::HeadMoved { to }) => Some(*to),
            _ => None,
        }
    }

    /// The title the session starts with, where this event gives one.
    #[must_use]
    pub fn initial_title(&self) -> Option<&str> {
        match self.metadata() {
            Some(SessionMetadata::Created { title, .. }) => Some(title),
            _ => None,
        }
    }
}

/// What can happen in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum SessionEventKind {
    /// The user said something; the literal input.
    UserMessage {
        /// The checked blocks.
        content: Vec<ContentBlock>,
        /// Name of the skill it calls. The words alone do not tell: `/name` may be an escaped `//name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        skill: Option<Arc<str>>,
        /// Whether it was given to a turn that was running.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        steering: bool,
    },
    /// The model answered.
    AssistantMessage {
        /// Text, reasoning and calls in order of arrival.
        parts: Vec<AssistantPart>,
        /// Whether the answer is whole.
        status: MessageStatus,
        /// Why it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        interruption: Option<Interruption>,
        /// Why the model stopped, if the provider said so. One cut by a limit, filtered or
        /// refused is incomplete without an interruption.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        stop_reason: Option<StopReason>,
        /// The provider that answered.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        provider_id: Arc<str>,
        /// The model that answered.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        model_id: Arc<str>,
        /// Opaque data of the whole message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        provider_data: Option<ProviderData>,
        /// What the call cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        usage: Option<Usage>,
    },
    /// A tool starts. Stored before it runs.
    ToolCall {
        /// The call.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// The tool.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        tool_name: Arc<str>,
        /// The arguments that are really used.
        #[cfg_attr(feature = "bindings", specta(type = crate::agent::json::JsonValue))]
        arguments: Arc<Value>,
    },
    /// A tool call has its result. Stored as it finishes, not in call order.
    ToolResult {
        /// The call.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// The tool.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        tool_name: Arc<str>,
        /// What the model sees.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        output: Arc<str>,
        /// Whether the call failed.
        is_error: bool,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        error: Option<ErrorCode>,
        /// What the tool adds for the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<crate::agent::json::JsonValue>))]
        metadata: Option<Arc<Value>>,
        /// How long it ran, in milliseconds.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        duration_ms: u64,
    },
    /// A note to the model. The agent loads such events and stores none of its own.
    SystemMessage {
        /// The note.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        text: Arc<str>,
    },
    /// A fact about the session.
    Metadata {
        /// Which.
        metadata: SessionMetadata,
    },
}

/// Whether a stored answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub enum MessageStatus {
    /// The model finished it.
    Complete,
    /// It was cut.
    Incomplete,
}

/// Why an answer was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum Interruption {
    /// The user cancelled.
    Cancelled,
    /// An error.
    Failed,
    /// The process ended.
    ProcessEnded,
}

impl Interruption {
    /// The note that follows a cut answer in every request, as a
    /// [`Message::System`](crate::Message::System). The three notes are fixed and in Chinese.
    #[must_use]
    pub fn note(self) -> &'static str {
        match self {
            Self::Cancelled => "[此消息因用户取消而中断]",
            Self::Failed => "[此消息因错误而中断]",
            Self::ProcessEnded => "[此消息因程序中断而未完成]",
        }
    }
}

/// A fact about a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum SessionMetadata {
    /// The session was created. Written together with its first message.
    Created {
        /// Its first title.
        title: String,
        /// Its model.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        model_id: Arc<str>,
        /// What the caller set instead of the agent's configuration.
        #[serde(default)]
        overrides: SessionOverrides,
    },
    /// The session goes on with another model.
    ModelChanged {
        /// Which.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        model_id: Arc<str>,
    },
    /// A turn was cut after its last answer was whole, or before there was any.
    TurnInterrupted {
        /// Why.
        interruption: Interruption,
    },
    /// A turn completed though the model answered nothing that a request could hold.
    TurnEndedSilently {
        /// Why the model stopped, if the provider said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        stop_reason: Option<StopReason>,
    },
    /// The head moved: what is written next follows the event at `to` and not the one before.
    HeadMoved {
        /// Index of the new head; absent for the very start of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
        to: Option<u64>,
    },
    /// The session is a copy of the visible path of another.
    ForkedFrom {
        /// The other session.
        session_id: String,
        /// Index of the last event that was copied, in the other session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
        at: Option<u64>,
    },
    /// The session cost something that no answer and no compaction tells of.
    Spent {
        /// What.
        usage: Usage,
    },
    /// Older messages were replaced by less.
    Compacted(CompactionRecord),
    /// A model refused the images of these messages; they are placeholders from now on.
    ImagesRefused {
        /// Indices of the user messages.
        #[cfg_attr(feature = "bindings", specta(type = Vec<u32>))]
        indices: Vec<u64>,
    },
    /// Memories were extracted from what was said so far.
    MemoryCheckpoint {
        /// Index of the newest event that they were extracted from.
        #[cfg_attr(feature = "bindings", specta(type = u32))]
        through: u64,
        /// What the extraction cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        usage: Option<Usage>,
    },
}

/// What the caller of `create_session` set instead of the agent's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SessionOverrides {
    /// System instructions, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub system_instructions: Option<Vec<String>>,
    /// Personality.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub personality: Option<String>,
    /// Namespace of the memories.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub memory_namespace: Option<String>,
}

/// A compaction, as it is stored: enough to build the same context again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct CompactionRecord {
    /// How.
    pub method: CompactionMethod,
    /// What stands for everything removed so far; absent while nothing was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub summary: Option<String>,
    /// Events before this index are no longer part of the context ...
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub boundary: u64,
    /// ... except this one, the latest user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub pinned: Option<u64>,
    /// Results of these calls are shortened to at most this many bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedResult>,
    /// Estimated size before, in tokens.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub tokens_before: u64,
    /// Estimated size after, in tokens.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub tokens_after: u64,
    /// What the summary cost, also one that could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub usage: Option<Usage>,
}

/// A tool result that a compaction shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ShortenedResult {
    /// The call.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub call_id: Arc<str>,
    /// The limit in bytes.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub max_bytes: u64,
}

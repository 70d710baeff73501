//! The contract between the agent and a store of sessions (chapter 3.6).
//!
//! An implementor reads this file; the conformance kit of feature `testing` checks the
//! rules written here.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ErrorCode;
use super::event::CompactMethod;
use super::message::{AssistantPart, ContentBlock, ProviderData};
use super::provider::Usage;

/// A store of sessions.
///
/// A session is a row of [`SessionEvent`]s, numbered by the agent. The agent writes one
/// batch at a time per session and waits at most `storage_timeout_ms` for each.
/// What it cannot store it keeps and writes later; a session without any storage lives in
/// memory until it is closed.
///
/// # Rules
/// - A batch is written whole or not at all, and is durable when `append` returns.
/// - Writing an event with an index that is there already replaces it: the agent repeats
///   writes whose outcome it does not know. Indices may have gaps.
/// - Writes of one session take effect in the order they were called, also one whose caller
///   gave up waiting: a late one never overwrites a newer one. A future may be dropped at any
///   `await`; a lock or a queue in the storage that is taken before the first one keeps this.
/// - `updated_at` of a session is the newest [`SessionEvent::timestamp`] written and never
///   decreases; `created_at` is the first that was written.
/// - Message counts come from [`SessionEvent::is_message`], a replaced event counting as what
///   it is now; a session without any message is neither listed nor found, but can be loaded,
///   renamed and deleted.
/// - The title comes from [`SessionMetadata::Created`] when the session is first written
///   ([`SessionEvent::initial_title`]), and from [`rename`](Self::rename) after that, whatever
///   is written again.
/// - Ids and titles are any text. They are compared exactly: no patterns, no folding of case.
/// - Listing and finding never read message bodies: keep title, times and count in a row.
///
/// `session_storage_conformance` of the module `testing` checks the rules.
///
/// # Examples
/// A storage in a map, which keeps all rules but durability. One on a disk stores the JSON of
/// an event, and leaves out and counts what it cannot read again.
/// ```
/// use std::cmp::Reverse;
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use youyou_agent::{
///     ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError,
/// };
///
/// #[derive(Default)]
/// struct InMap(Mutex<BTreeMap<String, Stored>>);
///
/// #[derive(Default)]
/// struct Stored {
///     title: Option<String>,
///     created_at: u64,
///     updated_at: u64,
///     events: BTreeMap<u64, SessionEvent>,
/// }
///
/// impl InMap {
///     /// The sessions that have a message, in the order of the list.
///     fn rows(&self) -> Result<Vec<SessionSummary>, StorageError> {
///         let all = self.0.lock().map_err(StorageError::new)?;
///         let mut rows: Vec<SessionSummary> = all
///             .iter()
///             .map(|(session_id, stored)| SessionSummary {
///                 session_id: session_id.clone(),
///                 title: stored.title.clone().unwrap_or_default(),
///                 created_at: stored.created_at,
///                 updated_at: stored.updated_at,
///                 message_count: stored.events.values().filter(|event| event.is_message()).count() as u32,
///             })
///             .filter(|row| row.message_count > 0)
///             .collect();
///         rows.sort_by_key(|row| (Reverse(row.updated_at), row.session_id.clone()));
///         Ok(rows)
///     }
/// }
///
/// #[async_trait]
/// impl SessionStorage for InMap {
///     async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
///         let mut all = self.0.lock().map_err(StorageError::new)?;
///         for event in events {
///             let stored = all.entry(session_id.to_owned()).or_insert_with(|| Stored {
///                 created_at: event.timestamp,
///                 ..Stored::default()
///             });
///             if stored.title.is_none() {
///                 stored.title = event.initial_title().map(str::to_owned);
///             }
///             stored.updated_at = stored.updated_at.max(event.timestamp);
///             stored.events.insert(event.index, event.clone());
///         }
///         Ok(())
///     }
///
///     async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
///         let all = self.0.lock().map_err(StorageError::new)?;
///         Ok(all.get(session_id).map(|stored| SessionLog {
///             events: stored.events.values().cloned().collect(),
///             unreadable: 0,
///         }))
///     }
///
///     async fn list(&self, cursor: Option<&str>, limit: usize) -> Result<ListPage, StorageError> {
///         let mut rows = self.rows()?;
///         // A cursor says where the page before ended, not how many rows there were: rows
///         // come and go meanwhile.
///         if let Some(cursor) = cursor {
///             let (time, id) = cursor.split_once(':').ok_or_else(|| StorageError::new("no cursor"))?;
///             let time: u64 = time.parse().map_err(StorageError::new)?;
///             rows.retain(|row| (Reverse(row.updated_at), &*row.session_id) > (Reverse(time), id));
///         }
///         let is_last = rows.len() <= limit;
///         rows.truncate(limit);
///         let end = rows.last().filter(|_| !is_last);
///         let next_cursor = end.map(|row| format!("{}:{}", row.updated_at, row.session_id));
///         Ok(ListPage { sessions: rows, next_cursor })
///     }
///
///     async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
///         if query.trim().is_empty() {
///             return Ok(Vec::new());
///         }
///         let rows = self.rows()?;
///         let ways: [&dyn Fn(&SessionSummary) -> bool; 4] = [
///             &|row| row.session_id == query,
///             &|row| row.title == query,
///             &|row| row.session_id.starts_with(query),
///             &|row| row.title.contains(query),
///         ];
///         let way = ways.into_iter().find(|fits| rows.iter().any(fits));
///         Ok(way.map_or_else(Vec::new, |fits| rows.iter().filter(|row| fits(row)).cloned().collect()))
///     }
///
///     async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
///         let mut all = self.0.lock().map_err(StorageError::new)?;
///         let stored = all.get_mut(session_id);
///         Ok(stored.map(|stored| stored.title = Some(title.to_owned())).is_some())
///     }
///
///     async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
///         let mut all = self.0.lock().map_err(StorageError::new)?;
///         Ok(all.remove(session_id).is_some())
///     }
/// }
/// # #[cfg(feature = "testing")]
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(
/// #     youyou_agent::testing::session_storage_conformance(async || InMap::default()),
/// # );
/// # Ok::<(), std::io::Error>(())
/// ```
#[async_trait]
pub trait SessionStorage: Send + Sync + 'static {
    /// Writes a batch of events of one session, creating the session if it is new.
    ///
    /// # Errors
    /// Nothing of the batch is kept; the agent writes it again. The first batch of a turn
    /// fails the turn with `STORAGE_ERROR`; a later one is told once by an event of the turn,
    /// which goes on.
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError>;

    /// All events of a session in order of index, or `None` if there is no such session.
    /// Records that cannot be read are left out and counted.
    ///
    /// # Errors
    /// `STORAGE_ERROR` for the caller, as with all methods that follow.
    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError>;

    /// A page of events with an index above `after`, in order, at most `limit` of them, or
    /// `None` if there is no such session. Override it where the store can do better than
    /// loading everything.
    async fn load_page(
        &self,
        session_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<SessionLog>, StorageError> {
        Ok(self.load(session_id).await?.map(|mut log| {
            log.events
                .retain(|event| after.is_none_or(|after| event.index > after));
            log.events.truncate(limit);
            log
        }))
    }

    /// A page of at most `limit` sessions, newest first: by `updated_at` descending, then by
    /// id ascending. `cursor` is what the page before gave, opaque to the agent; sessions that
    /// come or go between two pages neither repeat nor hide another. The agent asks for 1 to
    /// 1,000.
    async fn list(&self, cursor: Option<&str>, limit: usize) -> Result<ListPage, StorageError>;

    /// The sessions that fit `query`, compared literally: the one with that id, else all
    /// with that title, else all whose id starts with it, else all whose title contains
    /// it. A blank query fits none. In the order of [`list`](Self::list). The agent also
    /// finds a session by its id when it resumes it, to get its title.
    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError>;

    /// Changes the title, not `updated_at`. Answers whether the session exists.
    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError>;

    /// Deletes a session with all its events. Answers whether it existed.
    async fn delete(&self, session_id: &str) -> Result<bool, StorageError>;
}

/// A failure of a storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StorageError {
    /// For the user: what failed.
    pub message: String,
}

impl StorageError {
    /// A failure with a message for the user.
    pub fn new(message: impl std::fmt::Display) -> Self {
        Self {
            message: message.to_string(),
        }
    }
}

/// The stored events of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLog {
    /// In order of index.
    pub events: Vec<SessionEvent>,
    /// How many records could not be read and were left out.
    pub unreadable: u32,
}

impl From<Vec<SessionEvent>> for SessionLog {
    fn from(events: Vec<SessionEvent>) -> Self {
        Self {
            events,
            unreadable: 0,
        }
    }
}

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

    /// The title the session starts with, where this event gives one.
    #[must_use]
    pub fn initial_title(&self) -> Option<&str> {
        match &self.kind {
            SessionEventKind::Metadata {
                metadata: SessionMetadata::Created { title, .. },
            } => Some(title),
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
pub enum SessionEventKind {
    /// The user said something; the literal input.
    UserMessage {
        /// The checked blocks.
        content: Vec<ContentBlock>,
        /// Name of the skill it calls. The words alone do not tell: `/name` may be an escaped `//name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        skill: Option<Arc<str>>,
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
        #[cfg_attr(feature = "bindings", specta(type = crate::ipc::bindings::JsonValue))]
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
        #[cfg_attr(feature = "bindings", specta(optional, type = Option<crate::ipc::bindings::JsonValue>))]
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
    /// A turn completed though the model answered nothing.
    TurnEndedSilently,
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
    pub method: CompactMethod,
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

/// A row of a session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SessionSummary {
    /// The session.
    pub session_id: String,
    /// Its title.
    pub title: String,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub created_at: u64,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub updated_at: u64,
    /// User and assistant messages.
    pub message_count: u32,
}

/// A page of a session list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ListPage {
    /// The rows.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub next_cursor: Option<String>,
}

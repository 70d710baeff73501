//! The contract between the agent and a store of sessions.
//!
//! An implementor reads this file; the conformance kit of feature `testing` checks the
//! rules written here.

// Requirements: 3.6 SessionStorage, 13 A conversation one can bend.

mod event;
mod page;
pub(crate) mod path;

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;

pub use event::{
    CompactionRecord, Interruption, MessageStatus, SessionEvent, SessionEventKind, SessionMetadata,
    SessionOverrides, ShortenedResult,
};
pub use page::{EventPage, HeadMove, ListPage, PageRequest, SessionLog, SessionSummary};

use super::error::caller_error;

/// A store of sessions.
///
/// A session is a log of [`SessionEvent`]s, numbered by the agent. The agent writes one
/// batch at a time per session and waits at most `storage_timeout_ms` for each.
/// What it cannot store it keeps and writes later; a session without any storage lives in
/// memory until it is closed.
///
/// Edits and branches are part of the log, too ([`SessionMetadata::HeadMoved`]): a storage
/// keeps events and knows nothing of them.
///
/// # Rules
/// - A batch is written whole or not at all, and is durable when `append` returns.
/// - Writing an event with an index that is there already replaces it: the agent repeats
///   writes whose outcome it does not know. Indices may have gaps.
/// - A store that several processes can reach replaces an event only for the storage object
///   that wrote it (an id per object, kept with each record, is enough). Any other write to a
///   taken index is refused with [`StorageError::conflict`], and nothing of its batch is kept.
/// - A record that cannot be read keeps its index: it is counted, and never written over.
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
/// use std::num::NonZeroUsize;
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
///             .map(|(session_id, stored)| stored.summary(session_id))
///             .filter(|row| row.message_count > 0)
///             .collect();
///         rows.sort_by_key(|row| (Reverse(row.updated_at), row.session_id.clone()));
///         Ok(rows)
///     }
/// }
///
/// impl Stored {
///     fn summary(&self, session_id: &str) -> SessionSummary {
///         let messages = self.events.values().filter(|event| event.is_message());
///         SessionSummary::new(
///             session_id,
///             self.title.clone().unwrap_or_default(),
///             self.created_at,
///             self.updated_at,
///             messages.count() as u32,
///         )
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
///         let events = all.get(session_id).map(|stored| stored.events.values().cloned());
///         Ok(events.map(|events| SessionLog::new(events.collect())))
///     }
///
///     async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
///         let all = self.0.lock().map_err(StorageError::new)?;
///         Ok(all.get(session_id).map(|stored| stored.summary(session_id)))
///     }
///
///     async fn list(&self, cursor: Option<&str>, limit: NonZeroUsize) -> Result<ListPage, StorageError> {
///         let mut rows = self.rows()?;
///         // A cursor says where the page before ended, not how many rows there were: rows
///         // come and go meanwhile.
///         if let Some(cursor) = cursor {
///             let (time, id) = cursor.split_once(':').ok_or_else(|| StorageError::new("no cursor"))?;
///             let time: u64 = time.parse().map_err(StorageError::new)?;
///             rows.retain(|row| (Reverse(row.updated_at), &*row.session_id) > (Reverse(time), id));
///         }
///         let is_last = rows.len() <= limit.get();
///         rows.truncate(limit.get());
///         let end = rows.last().filter(|_| !is_last);
///         let next_cursor = end.map(|row| format!("{}:{}", row.updated_at, row.session_id));
///         Ok(ListPage::new(rows, next_cursor))
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
    /// Records that cannot be read are left out and counted, see [`SessionLog`].
    ///
    /// # Errors
    /// `STORAGE_ERROR` for the caller, as with all methods that follow.
    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError>;

    /// A page of the events of a session, or `None` if there is no such session. Override it
    /// where the store can do better than loading everything; [`EventPage::collect`] has the
    /// rule.
    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let Some(log) = self.load(session_id).await? else {
            return Ok(None);
        };
        let mut events = log.events;
        events.retain(|event| request.contains(event.index));
        let records = events.into_iter().map(|event| {
            let size = serde_json::to_vec(&event)?.len() as u64;
            Ok((event.index, size, Some(event)))
        });
        EventPage::collect(&request, records).map(Some)
    }

    /// Every move of the head in a session, in order of index; none if there is no such
    /// session. Override it where the store can do better than loading everything.
    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        let log = self.load(session_id).await?.unwrap_or_default();
        Ok(log.events.iter().filter_map(HeadMove::of).collect())
    }

    /// The row of one session, also of one without any message, or `None` if there is no such
    /// session. It reads no message bodies.
    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError>;

    /// A page of at most `limit` sessions, newest first: by `updated_at` descending, then by
    /// id ascending. `cursor` is what the page before gave, opaque to the agent; sessions that
    /// come or go between two pages neither repeat nor hide another. The agent asks for at
    /// most 1,000.
    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError>;

    /// The sessions that fit `query`, compared literally: the one with that id, else all
    /// with that title, else all whose id starts with it, else all whose title contains
    /// it. A blank query fits none. In the order of [`list`](Self::list).
    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError>;

    /// Changes the title, not `updated_at`. Returns whether the session exists.
    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError>;

    /// Deletes a session with all its events. Returns whether it existed.
    async fn delete(&self, session_id: &str) -> Result<bool, StorageError>;
}

#[async_trait]
impl<T: SessionStorage + ?Sized> SessionStorage for Arc<T> {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        (**self).append(session_id, events).await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        (**self).load(session_id).await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        (**self).load_page(session_id, request).await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        (**self).head_moves(session_id).await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        (**self).summary(session_id).await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        (**self).list(cursor, limit).await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        (**self).find(query).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        (**self).rename(session_id, title).await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        (**self).delete(session_id).await
    }
}

caller_error! {
    /// A failure of a storage.
    StorageError {
        /// For the user: what failed.
        message,
        /// Whether trying again can help.
        kind: StorageErrorKind
    }
}

/// What kind of failure a storage had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorageErrorKind {
    /// The store failed. The agent keeps what it could not write and tries again.
    #[default]
    Failed,
    /// Another process or storage object wrote to the session. The agent writes nothing more
    /// to it: the session has to be resumed.
    Conflict,
}

impl StorageError {
    /// A write was refused because another process or storage object wrote to the session.
    #[must_use]
    pub fn conflict(session_id: &str) -> Self {
        let mut error = Self::new(format_args!(
            "the session \"{session_id}\" was continued elsewhere; resume it again"
        ));
        error.kind = StorageErrorKind::Conflict;
        error
    }
}

//! What a storage gives back: whole logs, pages of them, and rows of the list of sessions.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::event::SessionEvent;

/// Longest page of events, in bytes of their JSON, unless a request says otherwise.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// All stored events of a session.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionLog {
    /// Those that can be read, in order of index.
    pub events: Vec<SessionEvent>,
    /// How many records could not be read and were left out.
    pub unreadable: u32,
    /// Index of the last record, readable or not; the next event goes behind it.
    pub last_index: Option<u64>,
}

impl SessionLog {
    /// A log whose records can all be read; `events` in order of index.
    #[must_use]
    pub fn new(events: Vec<SessionEvent>) -> Self {
        let last_index = events.last().map(|event| event.index);
        Self {
            events,
            unreadable: 0,
            last_index,
        }
    }

    /// Counts a record that could not be read.
    #[must_use]
    pub fn with_unreadable(mut self, index: u64) -> Self {
        self.unreadable = self.unreadable.saturating_add(1);
        self.last_index = self.last_index.max(Some(index));
        self
    }
}

impl From<Vec<SessionEvent>> for SessionLog {
    fn from(events: Vec<SessionEvent>) -> Self {
        Self::new(events)
    }
}

/// Which records of a session a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// Index of the first record, or the next one there is.
    pub from: u64,
    /// The page ends before this index, if one is given.
    pub until: Option<u64>,
    /// How many records it holds at most, those that cannot be read included.
    pub limit: NonZeroUsize,
    /// It ends with the record that passes this many bytes of JSON, so that it always holds
    /// one. The default is 4 MiB.
    pub max_bytes: u64,
}

impl PageRequest {
    /// A page from an index on, of at most `limit` records and 4 MiB.
    #[must_use]
    pub fn new(from: u64, limit: NonZeroUsize) -> Self {
        Self {
            from,
            until: None,
            limit,
            max_bytes: PAGE_BYTES,
        }
    }

    /// Ends the page before an index.
    #[must_use]
    pub fn until(mut self, index: u64) -> Self {
        self.until = Some(index);
        self
    }

    /// Ends the page with the record that passes this many bytes of JSON.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Whether an index lies in the range that is asked for.
    #[must_use]
    pub fn contains(&self, index: u64) -> bool {
        index >= self.from && self.until.is_none_or(|until| index < until)
    }
}

/// A page of a session's stored events.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EventPage {
    /// Those that can be read, in order of index.
    pub events: Vec<SessionEvent>,
    /// How many records of the page could not be read and were left out.
    pub unreadable: u32,
    /// Index of the first record behind the page, readable or not, that the request's range
    /// holds; absent on its last page.
    pub next: Option<u64>,
}

impl EventPage {
    /// The page of a range out of its records in order of index: of each its index, its size
    /// in bytes, and the event if it can be read. Where a store reads rows one after another,
    /// this is the rule of a page; it reads one record more than the page holds.
    ///
    /// # Errors
    /// The first error of `records`.
    pub fn collect<E>(
        request: &PageRequest,
        records: impl IntoIterator<Item = Result<(u64, u64, Option<SessionEvent>), E>>,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let (mut count, mut bytes) = (0, 0_u64);
        for record in records {
            let (index, size, event) = record?;
            if !request.contains(index) {
                continue;
            }
            if count == request.limit.get() || (count > 0 && bytes >= request.max_bytes) {
                page.next = Some(index);
                break;
            }
            count += 1;
            bytes = bytes.saturating_add(size);
            match event {
                Some(event) => page.events.push(event),
                None => page.unreadable = page.unreadable.saturating_add(1),
            }
        }
        Ok(page)
    }
}

/// A move of the head, see [`SessionMetadata::HeadMoved`](crate::SessionMetadata::HeadMoved).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadMove {
    /// Index of the event that moved it.
    pub index: u64,
    /// Index of the new head, or `None` for the very start.
    pub to: Option<u64>,
}

impl HeadMove {
    /// The move that an event makes, if it makes one.
    #[must_use]
    pub fn of(event: &SessionEvent) -> Option<Self> {
        let to = event.head_moved_to()?;
        Some(Self {
            index: event.index,
            to,
        })
    }
}

/// A row of a session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
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
    /// User and assistant messages, on every branch.
    pub message_count: u32,
}

impl SessionSummary {
    /// A row; times in milliseconds since the Unix epoch.
    pub fn new(
        session_id: impl Into<String>,
        title: impl Into<String>,
        created_at: u64,
        updated_at: u64,
        message_count: u32,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            title: title.into(),
            created_at,
            updated_at,
            message_count,
        }
    }
}

/// A page of a session list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct ListPage {
    /// The rows.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub next_cursor: Option<String>,
}

impl ListPage {
    /// A page with the cursor of the next one, if there is one.
    #[must_use]
    pub fn new(sessions: Vec<SessionSummary>, next_cursor: Option<String>) -> Self {
        Self {
            sessions,
            next_cursor,
        }
    }
}

//! Stored sessions: listed, found, renamed, deleted and read, whether open or not.

// Requirements: 3.6 SessionStorage, 13 A conversation one can bend.

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::core::Core;
use super::error::AgentError;
use super::journal::guarded;
use super::session::{SessionInner, Slot};
use super::storage::path::Path;
use super::storage::{EventPage, ListPage, PageRequest, SessionEvent, SessionSummary};
use super::text;

/// Rows of a page where the caller asks for none or for more.
const MAX_PAGE: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Longest title, in characters.
const MAX_TITLE: usize = 400;

/// A page of a session's stored events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct HistoryPage {
    /// Those that can be read, in order of index.
    pub events: Vec<SessionEvent>,
    /// How many records of the page could not be read and were left out.
    pub unreadable: u32,
    /// Pass it as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub next_cursor: Option<u64>,
}

/// The stored sessions of an agent, and which of them is open.
pub(crate) struct Stored<'a> {
    pub(crate) core: &'a Core,
    pub(crate) slot: &'a Slot,
}

impl Stored<'_> {
    pub(crate) async fn list(
        &self,
        cursor: Option<&str>,
        limit: Option<NonZeroUsize>,
    ) -> Result<ListPage, AgentError> {
        let Some(storage) = self.core.sessions.as_deref() else {
            return Ok(ListPage::default());
        };
        let limit = page_limit(limit);
        guarded(self.core.storage_limit(), "listing sessions failed", || {
            storage.list(cursor, limit)
        })
        .await
    }

    pub(crate) async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, AgentError> {
        let Some(storage) = self.core.sessions.as_deref() else {
            return Ok(Vec::new());
        };
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        guarded(self.core.storage_limit(), "finding sessions failed", || {
            storage.find(query)
        })
        .await
    }

    pub(crate) async fn rename(&self, session_id: &str, title: &str) -> Result<(), AgentError> {
        let title = title_line(title)?;
        let open = self.open(session_id);
        if let Some(session) = &open {
            // Set first: a first write that is under way must not bring the old title back.
            session.open.rename(&title);
        }
        let stored = match self.core.sessions.as_deref() {
            None => false,
            Some(storage) => {
                let doing = "renaming the session failed";
                guarded(self.core.storage_limit(), doing, || {
                    storage.rename(session_id, &title)
                })
                .await?
            }
        };
        // Before its first message a session is in no storage yet.
        if stored || open.is_some() {
            Ok(())
        } else {
            Err(AgentError::session_not_found(session_id))
        }
    }

    pub(crate) async fn delete(&self, session_id: &Arc<str>) -> Result<(), AgentError> {
        let Some(_claim) = self.slot.claim(session_id).await else {
            return Err(AgentError::session_busy(
                "the session is open; close it before you delete it",
            ));
        };
        let missing = || AgentError::session_not_found(session_id);
        let storage = self.core.sessions.as_deref().ok_or_else(missing)?;
        let doing = "deleting the session failed";
        let existed = guarded(self.core.storage_limit(), doing, || {
            storage.delete(session_id)
        })
        .await?;
        if existed { Ok(()) } else { Err(missing()) }
    }

    pub(crate) async fn history(
        &self,
        session_id: &str,
        cursor: Option<u64>,
        limit: Option<NonZeroUsize>,
    ) -> Result<HistoryPage, AgentError> {
        let request = PageRequest::new(cursor.unwrap_or(0), page_limit(limit));
        let open = self.open(session_id);
        let read = match (&self.core.sessions, &open) {
            (Some(_), _) => self.visible_page(session_id, request).await?,
            (None, Some(session)) => Some(session.kept_page(&request)),
            (None, None) => None,
        };
        let page = match (read, open) {
            (Some(page), _) => page,
            // Before its first message a session has no events.
            (None, Some(_)) => EventPage::default(),
            (None, None) => return Err(AgentError::session_not_found(session_id)),
        };
        Ok(HistoryPage {
            events: page.events,
            unreadable: page.unreadable,
            next_cursor: page.next,
        })
    }

    /// A page of the visible path, read range by range: what it does not show is not read.
    async fn visible_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, AgentError> {
        let Some(storage) = self.core.sessions.as_deref() else {
            return Ok(None);
        };
        let (limit, doing) = (self.core.storage_limit(), "loading the history failed");
        let moves = guarded(limit, doing, || storage.head_moves(session_id)).await?;
        let mut ranges = Path::after(&moves).ranges_from(request.from).peekable();
        let mut page = EventPage::default();
        let (mut rows, mut bytes) = (request.limit.get(), request.max_bytes);
        while let Some(range) = ranges.next() {
            let Some(left) = NonZeroUsize::new(rows).filter(|_| bytes > 0) else {
                page.next = Some(*range.start());
                break;
            };
            let mut part = PageRequest::new(*range.start(), left).max_bytes(bytes);
            if *range.end() < u64::MAX {
                part = part.until(range.end() + 1);
            }
            let read = guarded(limit, doing, || storage.load_page(session_id, part)).await?;
            let Some(read) = read else { return Ok(None) };
            rows -= rows.min(read.events.len() + read.unreadable as usize);
            if ranges.peek().is_some() {
                // Only where another range follows does the rest of the page have to be known.
                let sizes = read.events.iter().map(json_size);
                bytes = bytes.saturating_sub(sizes.sum());
            }
            page.events.extend(read.events);
            page.unreadable = page.unreadable.saturating_add(read.unreadable);
            if read.next.is_some() {
                page.next = read.next;
                break;
            }
        }
        Ok(Some(page))
    }

    fn open(&self, session_id: &str) -> Option<Arc<SessionInner>> {
        self.slot
            .current()
            .filter(|session| *session.open.id == *session_id)
    }
}

fn json_size(event: &SessionEvent) -> u64 {
    serde_json::to_vec(event).map_or(0, |json| json.len() as u64)
}

fn page_limit(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.unwrap_or(MAX_PAGE).min(MAX_PAGE)
}

/// A title in one line.
///
/// # Errors
/// `INVALID_INPUT` for a blank title and for one of more than 400 characters.
pub(crate) fn title_line(title: &str) -> Result<String, AgentError> {
    if title.len() > MAX_TITLE * 4 || title.chars().count() > MAX_TITLE {
        return Err(AgentError::invalid_input(format!(
            "the title is too long; a title has at most {MAX_TITLE} characters"
        )));
    }
    let title = text::one_line(title);
    if title.is_empty() {
        return Err(AgentError::invalid_input("the title is empty"));
    }
    Ok(title)
}

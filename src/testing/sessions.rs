//! A session storage in memory: what a real one does, without the disk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::agent::contain::lock;
use crate::{ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError};

/// A [`SessionStorage`] in memory, whole in every rule. Copies share everything: give one
/// to the agent and keep one, or give copies to agents that follow one another.
///
/// # Examples
/// ```
/// use youyou_agent::SessionStorage as _;
/// use youyou_agent::testing::{InMemorySessions, session_created, user_message};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = InMemorySessions::new();
/// storage.preload("s1", [session_created(0, "A title", "m1"), user_message(1, "hello")]);
/// let page = storage.list(None, 10).await?;
/// assert_eq!(page.sessions.len(), 1);
/// # Ok::<(), youyou_agent::StorageError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct InMemorySessions(Arc<Mutex<BTreeMap<String, Stored>>>);

#[derive(Debug)]
struct Stored {
    events: BTreeMap<u64, SessionEvent>,
    /// Records that cannot be read, by index.
    unreadable: BTreeSet<u64>,
    /// Absent until a `Created` event or a rename gives one.
    title: Option<String>,
    created_at: u64,
    updated_at: u64,
    message_count: u32,
}

impl InMemorySessions {
    /// An empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes events at once, as [`append`](SessionStorage::append) does.
    pub fn preload(&self, session_id: &str, events: impl IntoIterator<Item = SessionEvent>) {
        let mut sessions = lock(&self.0);
        for event in events {
            match sessions.get_mut(session_id) {
                Some(stored) => stored.write(event),
                None => {
                    sessions.insert(session_id.to_owned(), Stored::new(event));
                }
            }
        }
    }

    /// The events of a session in order of index; none if there is no such session.
    #[must_use]
    pub fn events(&self, session_id: &str) -> Vec<SessionEvent> {
        lock(&self.0)
            .get(session_id)
            .map(|stored| stored.events.values().cloned().collect())
            .unwrap_or_default()
    }

    /// The ids of all sessions, those without messages included, in order.
    #[must_use]
    pub fn session_ids(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }

    /// Makes a record unreadable: loading leaves it out and counts it, until it is written
    /// again. Answers whether it was there.
    pub fn corrupt(&self, session_id: &str, index: u64) -> bool {
        let mut sessions = lock(&self.0);
        let Some(stored) = sessions.get_mut(session_id) else {
            return false;
        };
        let was_there = stored.events.remove(&index).is_some();
        if was_there {
            stored.unreadable.insert(index);
        }
        was_there
    }
}

impl Stored {
    fn new(first: SessionEvent) -> Self {
        let mut stored = Self {
            events: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            title: None,
            created_at: first.timestamp,
            updated_at: first.timestamp,
            message_count: 0,
        };
        stored.write(first);
        stored
    }

    fn write(&mut self, event: SessionEvent) {
        if self.title.is_none() {
            self.title = event.initial_title().map(str::to_owned);
        }
        self.updated_at = self.updated_at.max(event.timestamp);
        self.message_count += u32::from(event.is_message());
        self.unreadable.remove(&event.index);
        if let Some(replaced) = self.events.insert(event.index, event) {
            self.message_count -= u32::from(replaced.is_message());
        }
    }

    fn summary(&self, session_id: &str) -> SessionSummary {
        SessionSummary {
            session_id: session_id.to_owned(),
            title: self.title.clone().unwrap_or_default(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            message_count: self.message_count,
        }
    }

    fn log(&self, events: impl Iterator<Item = SessionEvent>) -> SessionLog {
        SessionLog {
            events: events.collect(),
            unreadable: u32::try_from(self.unreadable.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Where a session stands in the list: newest first, equal times by id.
type Place<'a> = (Reverse<u64>, &'a str);

fn place(summary: &SessionSummary) -> Place<'_> {
    (Reverse(summary.updated_at), &summary.session_id)
}

/// All sessions with a message, in the order of the list.
fn listed(sessions: &BTreeMap<String, Stored>) -> Vec<SessionSummary> {
    let mut rows: Vec<SessionSummary> = sessions
        .iter()
        .filter(|(_, stored)| stored.message_count > 0)
        .map(|(session_id, stored)| stored.summary(session_id))
        .collect();
    rows.sort_by(|a, b| place(a).cmp(&place(b)));
    rows
}

fn parse_cursor(cursor: &str) -> Result<Place<'_>, StorageError> {
    cursor
        .split_once(':')
        .and_then(|(updated_at, session_id)| Some((Reverse(updated_at.parse().ok()?), session_id)))
        .ok_or_else(|| {
            StorageError::new(format_args!(
                "\"{cursor}\" is no cursor of this list; pass the next_cursor of the page before"
            ))
        })
}

#[async_trait]
impl SessionStorage for InMemorySessions {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        self.preload(session_id, events.iter().cloned());
        Ok(())
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        let sessions = lock(&self.0);
        Ok(sessions
            .get(session_id)
            .map(|stored| stored.log(stored.events.values().cloned())))
    }

    async fn load_page(
        &self,
        session_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<SessionLog>, StorageError> {
        let sessions = lock(&self.0);
        Ok(sessions.get(session_id).map(|stored| {
            let start = after.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = stored.events.range((start, Bound::Unbounded));
            stored.log(rest.take(limit).map(|(_, event)| event.clone()))
        }))
    }

    async fn list(&self, cursor: Option<&str>, limit: usize) -> Result<ListPage, StorageError> {
        let after = cursor.map(parse_cursor).transpose()?;
        let mut rows = listed(&lock(&self.0));
        if let Some(after) = after {
            rows.retain(|row| place(row) > after);
        }
        let is_last = rows.len() <= limit;
        rows.truncate(limit);
        let next_cursor = rows
            .last()
            .filter(|_| !is_last)
            .map(|row| format!("{}:{}", row.updated_at, row.session_id));
        Ok(ListPage {
            sessions: rows,
            next_cursor,
        })
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let rows = listed(&lock(&self.0));
        let tests: [&dyn Fn(&SessionSummary) -> bool; 4] = [
            &|row| row.session_id == query,
            &|row| row.title == query,
            &|row| row.session_id.starts_with(query),
            &|row| row.title.contains(query),
        ];
        let found = tests.iter().find_map(|fits| {
            let fitting: Vec<SessionSummary> =
                rows.iter().filter(|row| fits(row)).cloned().collect();
            (!fitting.is_empty()).then_some(fitting)
        });
        Ok(found.unwrap_or_default())
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        let mut sessions = lock(&self.0);
        Ok(sessions
            .get_mut(session_id)
            .map(|stored| stored.title = Some(title.to_owned()))
            .is_some())
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let removed = lock(&self.0).remove(session_id);
        Ok(removed.is_some())
    }
}

//! A session storage in memory: what a real one does, without the disk.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::agent::contain::lock;
use crate::{
    EventPage, HeadMove, ListPage, PageRequest, SessionEvent, SessionLog, SessionStorage,
    SessionSummary, StorageError,
};

/// A [`SessionStorage`] in memory, whole in every rule. Copies share everything: give one
/// to the agent and keep one, or give copies to agents that follow one another.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
///
/// use youyou_agent::SessionStorage as _;
/// use youyou_agent::testing::{InMemorySessions, session_created, user_message};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = InMemorySessions::new();
/// storage.preload("s1", [session_created(0, "A title", "m1"), user_message(1, "hello")]);
/// let page = storage.list(None, NonZeroUsize::MIN).await?;
/// assert_eq!(page.sessions.len(), 1);
/// # Ok::<(), youyou_agent::StorageError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct InMemorySessions {
    sessions: Arc<Mutex<BTreeMap<String, Stored>>>,
    /// Tells storage objects over one store apart; copies are one object.
    writer: u64,
}

#[derive(Debug)]
struct Stored {
    records: BTreeMap<u64, Record>,
    /// Absent until a `Created` event or a rename gives one.
    title: Option<String>,
    created_at: u64,
    updated_at: u64,
    message_count: u32,
}

#[derive(Debug)]
struct Record {
    /// Absent where it cannot be read.
    event: Option<SessionEvent>,
    /// Whether it counts as a message, also when it cannot be read any more.
    is_message: bool,
    writer: u64,
}

impl InMemorySessions {
    /// An empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A second storage object over the same store, as another process has one: neither
    /// replaces what the other wrote.
    #[must_use]
    pub fn another_writer(&self) -> Self {
        static WRITERS: AtomicU64 = AtomicU64::new(1);
        Self {
            sessions: Arc::clone(&self.sessions),
            writer: WRITERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Writes events at once and whoever wrote what is there.
    pub fn preload(&self, session_id: &str, events: impl IntoIterator<Item = SessionEvent>) {
        let mut sessions = lock(&self.sessions);
        for event in events {
            match sessions.get_mut(session_id) {
                Some(stored) => stored.write(event, self.writer),
                None => {
                    sessions.insert(session_id.to_owned(), Stored::new(event, self.writer));
                }
            }
        }
    }

    /// The events of a session in order of index; none if there is no such session.
    #[must_use]
    pub fn events(&self, session_id: &str) -> Vec<SessionEvent> {
        lock(&self.sessions)
            .get(session_id)
            .map(|stored| stored.log().events)
            .unwrap_or_default()
    }

    /// The ids of all sessions, those without messages included, in order.
    #[must_use]
    pub fn session_ids(&self) -> Vec<String> {
        lock(&self.sessions).keys().cloned().collect()
    }

    /// Makes a record unreadable: loading leaves it out and counts it, and only
    /// [`preload`](Self::preload) writes over it. Returns whether it could be read before.
    pub fn corrupt(&self, session_id: &str, index: u64) -> bool {
        let mut sessions = lock(&self.sessions);
        let record = sessions
            .get_mut(session_id)
            .and_then(|stored| stored.records.get_mut(&index));
        record.is_some_and(|record| record.event.take().is_some())
    }
}

impl Stored {
    fn new(first: SessionEvent, writer: u64) -> Self {
        let mut stored = Self {
            records: BTreeMap::new(),
            title: None,
            created_at: first.timestamp,
            updated_at: first.timestamp,
            message_count: 0,
        };
        stored.write(first, writer);
        stored
    }

    fn write(&mut self, event: SessionEvent, writer: u64) {
        if self.title.is_none() {
            self.title = event.initial_title().map(str::to_owned);
        }
        self.updated_at = self.updated_at.max(event.timestamp);
        let index = event.index;
        let record = Record {
            is_message: event.is_message(),
            event: Some(event),
            writer,
        };
        self.message_count += u32::from(record.is_message);
        if let Some(replaced) = self.records.insert(index, record) {
            self.message_count -= u32::from(replaced.is_message);
        }
    }

    fn summary(&self, session_id: &str) -> SessionSummary {
        SessionSummary::new(
            session_id,
            self.title.clone().unwrap_or_default(),
            self.created_at,
            self.updated_at,
            self.message_count,
        )
    }

    fn log(&self) -> SessionLog {
        let mut log = SessionLog::default();
        for (index, record) in &self.records {
            log.last_index = Some(*index);
            match &record.event {
                Some(event) => log.events.push(event.clone()),
                None => log = log.with_unreadable(*index),
            }
        }
        log
    }

    /// Whether a storage object may write to an index.
    fn is_open_to(&self, writer: u64, index: u64) -> bool {
        let taken = self.records.get(&index);
        taken.is_none_or(|record| record.writer == writer && record.event.is_some())
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
        if let Some(stored) = lock(&self.sessions).get(session_id) {
            let mut indices = events.iter().map(|event| event.index);
            if !indices.all(|index| stored.is_open_to(self.writer, index)) {
                return Err(StorageError::conflict(session_id));
            }
        }
        self.preload(session_id, events.iter().cloned());
        Ok(())
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        Ok(lock(&self.sessions).get(session_id).map(Stored::log))
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let sessions = lock(&self.sessions);
        let Some(stored) = sessions.get(session_id) else {
            return Ok(None);
        };
        let records = stored.records.range(request.from..).map(|(index, record)| {
            let json = record.event.as_ref().map(serde_json::to_vec).transpose()?;
            let size = json.map_or(0, |json| json.len() as u64);
            Ok((*index, size, record.event.clone()))
        });
        EventPage::collect(&request, records).map(Some)
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        let sessions = lock(&self.sessions);
        let records = sessions
            .get(session_id)
            .map(|stored| stored.records.values());
        let events = records
            .into_iter()
            .flatten()
            .filter_map(|record| record.event.as_ref());
        Ok(events.filter_map(HeadMove::of).collect())
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        let sessions = lock(&self.sessions);
        Ok(sessions
            .get(session_id)
            .map(|stored| stored.summary(session_id)))
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        let after = cursor.map(parse_cursor).transpose()?;
        let mut rows = listed(&lock(&self.sessions));
        if let Some(after) = after {
            rows.retain(|row| place(row) > after);
        }
        let is_last = rows.len() <= limit.get();
        rows.truncate(limit.get());
        let next_cursor = rows
            .last()
            .filter(|_| !is_last)
            .map(|row| format!("{}:{}", row.updated_at, row.session_id));
        Ok(ListPage::new(rows, next_cursor))
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let rows = listed(&lock(&self.sessions));
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
        let mut sessions = lock(&self.sessions);
        Ok(sessions
            .get_mut(session_id)
            .map(|stored| stored.title = Some(title.to_owned()))
            .is_some())
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let removed = lock(&self.sessions).remove(session_id);
        Ok(removed.is_some())
    }
}

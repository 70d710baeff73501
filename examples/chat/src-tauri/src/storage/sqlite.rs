//! Sessions in SQLite.

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::num::NonZeroUsize;
use youyou_agent::{
    ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError,
};

use super::database::{Database, explain, from_sql, to_sql};

/// The columns of a summary, in the order in which [`summary`] reads them.
const SUMMARY: &str =
    "SELECT session_id, coalesce(title, ''), created_at, updated_at, message_count
                       FROM sessions WHERE message_count > 0";
const ORDER: &str = "ORDER BY updated_at DESC, session_id";

/// What `find` tries, in this order; the first test that any session passes decides.
/// No `LIKE`: it has wildcards and ignores case.
const TESTS: [&str; 4] = [
    "session_id = ?1",
    "title = ?1",
    "substr(session_id, 1, length(?1)) = ?1",
    "instr(title, ?1) > 0",
];

/// A [`SessionStorage`] in a SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteSessions(Database);

impl SqliteSessions {
    /// The sessions of this file.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl SessionStorage for SqliteSessions {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        // Serialised before the lock is taken: an image takes its time.
        let records = events
            .iter()
            .map(Record::new)
            .collect::<Result<Vec<_>, _>>()?;
        let session_id = session_id.to_owned();
        self.0
            .run(move |connection| write(connection, &session_id, &records))
            .await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        self.load_page(session_id, None, usize::MAX).await
    }

    async fn load_page(
        &self,
        session_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<SessionLog>, StorageError> {
        let session_id = session_id.to_owned();
        self.0
            .run(move |connection| read(connection, &session_id, after, limit))
            .await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        let after = cursor.map(parse_cursor).transpose()?;
        self.0
            .run(move |connection| page(connection, after, limit))
            .await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let query = query.to_owned();
        self.0
            .run(move |connection| {
                for test in TESTS {
                    let sql = format!("{SUMMARY} AND {test} {ORDER}");
                    let found = summaries(connection, &sql, params![query])?;
                    if !found.is_empty() {
                        return Ok(found);
                    }
                }
                Ok(Vec::new())
            })
            .await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        let (session_id, title) = (session_id.to_owned(), title.to_owned());
        self.0
            .run(move |connection| {
                let sql = "UPDATE sessions SET title = ?2 WHERE session_id = ?1";
                let changed = connection
                    .execute(sql, [session_id, title])
                    .map_err(explain)?;
                Ok(changed > 0)
            })
            .await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let session_id = session_id.to_owned();
        self.0
            .run(move |connection| {
                // The events go with it, by the foreign key.
                let sql = "DELETE FROM sessions WHERE session_id = ?1";
                let deleted = connection.execute(sql, [session_id]).map_err(explain)?;
                Ok(deleted > 0)
            })
            .await
    }
}

/// An event as a row.
struct Record {
    position: i64,
    timestamp: i64,
    is_message: bool,
    title: Option<String>,
    body: String,
}

impl Record {
    fn new(event: &SessionEvent) -> Result<Self, StorageError> {
        let body = serde_json::to_string(event).map_err(|error| {
            StorageError::new(format_args!("an event cannot be stored: {error}"))
        })?;
        Ok(Self {
            position: to_sql(event.index),
            timestamp: to_sql(event.timestamp),
            is_message: event.is_message(),
            title: event.initial_title().map(str::to_owned),
            body,
        })
    }
}

/// Writes a batch in one transaction: all of it or nothing.
fn write(
    connection: &mut Connection,
    session_id: &str,
    records: &[Record],
) -> Result<(), StorageError> {
    let Some(first) = records.first() else {
        return Ok(());
    };
    // Immediate: a transaction that begins by reading could fail to become a writer.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(explain)?;
    let key = session_key(&transaction, session_id, first.timestamp).map_err(explain)?;
    for record in records {
        write_record(&transaction, key, record).map_err(explain)?;
    }
    transaction.commit().map_err(explain)
}

fn session_key(transaction: &Transaction<'_>, session_id: &str, now: i64) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session_id, created_at, updated_at) VALUES (?1, ?2, ?2)
             ON CONFLICT (session_id) DO NOTHING",
        )?
        .execute(params![session_id, now])?;
    transaction
        .prepare_cached("SELECT key FROM sessions WHERE session_id = ?1")?
        .query_one([session_id], |row| row.get(0))
}

fn write_record(transaction: &Transaction<'_>, key: i64, record: &Record) -> rusqlite::Result<()> {
    let replaced: Option<bool> = transaction
        .prepare_cached("SELECT is_message FROM events WHERE session_key = ?1 AND position = ?2")?
        .query_one(params![key, record.position], |row| row.get(0))
        .optional()?;
    transaction
        .prepare_cached(
            "INSERT INTO events (session_key, position, is_message, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (session_key, position) DO UPDATE SET is_message = ?3, body = ?4",
        )?
        .execute(params![
            key,
            record.position,
            record.is_message,
            record.body
        ])?;
    let more = i64::from(record.is_message) - i64::from(replaced.unwrap_or(false));
    transaction
        .prepare_cached(
            "UPDATE sessions SET
                 title = coalesce(title, ?2),
                 updated_at = max(updated_at, ?3),
                 message_count = message_count + ?4
             WHERE key = ?1",
        )?
        .execute(params![key, record.title, record.timestamp, more])?;
    Ok(())
}

fn read(
    connection: &Connection,
    session_id: &str,
    after: Option<u64>,
    limit: usize,
) -> Result<Option<SessionLog>, StorageError> {
    let key: Option<i64> = connection
        .prepare_cached("SELECT key FROM sessions WHERE session_id = ?1")
        .and_then(|mut statement| {
            statement
                .query_one([session_id], |row| row.get(0))
                .optional()
        })
        .map_err(explain)?;
    let Some(key) = key else {
        return Ok(None);
    };
    let after = after.map_or(-1, to_sql);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut log = SessionLog::default();
    let sql = "SELECT position, body FROM events WHERE session_key = ?1 AND position > ?2
               ORDER BY position LIMIT ?3";
    let mut collect = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![key, after, limit])?;
        while let Some(row) = rows.next()? {
            match event(row)? {
                Some(event) => log.events.push(event),
                None => log.unreadable = log.unreadable.saturating_add(1),
            }
        }
        Ok(())
    };
    collect().map_err(explain)?;
    Ok(Some(log))
}

/// The event of a row, or `None` if its record cannot be read: damaged, or of a kind that
/// only a newer version knows.
fn event(row: &Row<'_>) -> rusqlite::Result<Option<SessionEvent>> {
    let position = from_sql(row.get(0)?);
    let bytes = match row.get_ref(1)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => return Ok(None),
    };
    let event = serde_json::from_slice::<SessionEvent>(bytes).ok();
    Ok(event.filter(|event| event.index == position))
}

/// The place in the list after which a page starts.
struct Place {
    updated_at: i64,
    session_id: String,
}

/// A cursor holds both sort keys, so that equal times neither repeat nor lose a session.
fn parse_cursor(cursor: &str) -> Result<Place, StorageError> {
    cursor
        .split_once(':')
        .and_then(|(updated_at, session_id)| {
            Some(Place {
                updated_at: updated_at.parse().ok()?,
                session_id: session_id.to_owned(),
            })
        })
        .ok_or_else(|| {
            StorageError::new("this cursor is not one of this list; start from the first page")
        })
}

fn page(
    connection: &Connection,
    after: Option<Place>,
    limit: usize,
) -> Result<ListPage, StorageError> {
    // One more than asked for tells whether there is a next page.
    let rows = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut sessions = match after {
        None => summaries(
            connection,
            &format!("{SUMMARY} {ORDER} LIMIT ?1"),
            params![rows],
        ),
        Some(Place {
            updated_at,
            session_id,
        }) => summaries(
            connection,
            &format!(
                "{SUMMARY} AND (updated_at < ?1 OR (updated_at = ?1 AND session_id > ?2)) {ORDER} LIMIT ?3"
            ),
            params![updated_at, session_id, rows],
        ),
    }?;
    let is_last = sessions.len() <= limit;
    sessions.truncate(limit);
    let next_cursor = sessions
        .last()
        .filter(|_| !is_last)
        .map(|session| format!("{}:{}", session.updated_at, session.session_id));
    Ok(ListPage {
        sessions,
        next_cursor,
    })
}

fn summaries(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<SessionSummary>, StorageError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map(parameters, summary)?.collect())
        .map_err(explain)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    Ok(SessionSummary {
        session_id: row.get(0)?,
        title: row.get(1)?,
        created_at: from_sql(row.get(2)?),
        updated_at: from_sql(row.get(3)?),
        message_count: row.get(4)?,
    })
}

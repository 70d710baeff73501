//! Sessions in SQLite.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use youyou_agent::{
    EventPage, HeadMove, ListPage, PageRequest, SessionEvent, SessionLog, SessionStorage,
    SessionSummary, StorageError,
};

use crate::events::{self, from_sql};
use crate::failure::Failure;
use crate::messages;
use crate::worker::Worker;

/// The columns of a summary, in the order in which [`summary`] reads them.
const SUMMARY: &str =
    "SELECT session_id, coalesce(title, ''), created_at, updated_at, message_count FROM sessions";
const LISTED: &str = "message_count > 0";
const ORDER: &str = "ORDER BY updated_at DESC, session_id";

/// What `find` tries, in this order; the first test that any session passes decides.
/// No `LIKE`: it has wildcards and ignores case. As blobs where a part is compared: a text ends
/// at its first NUL for some of SQLite's functions.
const TESTS: [&str; 4] = [
    "session_id = ?1",
    "title = ?1",
    "substr(CAST(session_id AS BLOB), 1, length(CAST(?1 AS BLOB))) = CAST(?1 AS BLOB)",
    "instr(CAST(title AS BLOB), CAST(?1 AS BLOB)) > 0",
];

/// A [`SessionStorage`] in a SQLite file, from [`Sqlite::sessions`](crate::Sqlite::sessions).
#[derive(Debug, Clone)]
pub struct SqliteSessions {
    worker: Worker,
    writer: i64,
}

impl SqliteSessions {
    pub(crate) fn new(worker: Worker, writer: i64) -> Self {
        Self { worker, writer }
    }
}

#[async_trait]
impl SessionStorage for SqliteSessions {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let (writer, session_id) = (self.writer, session_id.to_owned());
        // Cheap: long texts and images are shared.
        let events = events.to_vec();
        self.worker
            .run(move |connection| events::write(connection, writer, &session_id, &events))
            .await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        let session_id = session_id.to_owned();
        self.worker
            .run(move |connection| events::load(connection, &session_id))
            .await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let session_id = session_id.to_owned();
        self.worker
            .run(move |connection| events::load_page(connection, &session_id, &request))
            .await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        let session_id = session_id.to_owned();
        self.worker
            .run(move |connection| events::head_moves(connection, &session_id))
            .await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        let session_id = session_id.to_owned();
        self.worker
            .run(move |connection| {
                let mut statement =
                    connection.prepare_cached(&format!("{SUMMARY} WHERE session_id = ?1"))?;
                Ok(statement.query_one([session_id], summary).optional()?)
            })
            .await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        let after = cursor.map(parse_cursor).transpose()?;
        self.worker
            .run(move |connection| page(connection, after, limit))
            .await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let query = query.to_owned();
        self.worker
            .run(move |connection| {
                for test in TESTS {
                    let sql = format!("{SUMMARY} WHERE {LISTED} AND {test} {ORDER}");
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
        self.worker
            .run(move |connection| {
                let sql = "UPDATE sessions SET title = ?2 WHERE session_id = ?1";
                Ok(connection.execute(sql, [session_id, title])? > 0)
            })
            .await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let session_id = session_id.to_owned();
        self.worker
            .run(move |connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let existed = remove(&transaction, &session_id)?;
                transaction.commit()?;
                Ok(existed)
            })
            .await
    }
}

fn remove(transaction: &Transaction<'_>, session_id: &str) -> rusqlite::Result<bool> {
    messages::unindex_session(transaction, session_id)?;
    // The events go with it, by the foreign key.
    let deleted =
        transaction.execute("DELETE FROM sessions WHERE session_id = ?1", [session_id])?;
    Ok(deleted > 0)
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
    limit: NonZeroUsize,
) -> Result<ListPage, Failure> {
    // One more than asked for tells whether there is a next page.
    let rows = i64::try_from(limit.get())
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    let listed = format!("{SUMMARY} WHERE {LISTED}");
    let mut sessions = match after {
        None => summaries(
            connection,
            &format!("{listed} {ORDER} LIMIT ?1"),
            params![rows],
        ),
        Some(Place {
            updated_at,
            session_id,
        }) => summaries(
            connection,
            &format!(
                "{listed} AND (updated_at < ?1 OR (updated_at = ?1 AND session_id > ?2)) {ORDER} LIMIT ?3"
            ),
            params![updated_at, session_id, rows],
        ),
    }?;
    let is_last = sessions.len() <= limit.get();
    sessions.truncate(limit.get());
    let next_cursor = sessions
        .last()
        .filter(|_| !is_last)
        .map(|session| format!("{}:{}", session.updated_at, session.session_id));
    Ok(ListPage::new(sessions, next_cursor))
}

fn summaries(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<Vec<SessionSummary>> {
    connection
        .prepare_cached(sql)?
        .query_map(parameters, summary)?
        .collect()
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let (session_id, title): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(SessionSummary::new(
        session_id,
        title,
        from_sql(row.get(2)?),
        from_sql(row.get(3)?),
        row.get(4)?,
    ))
}

//! Sessions in PostgreSQL.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};
use youyou_agent::{
    EventPage, HeadMove, ListPage, PageRequest, SessionEvent, SessionLog, SessionStorage,
    SessionSummary, StorageError,
};

use crate::events::{self, from_sql, to_sql};
use crate::failure::Failure;
use crate::lanes::Lanes;

const SUMMARY: &str =
    "SELECT session_id, title, created_at, updated_at, message_count FROM sessions";
const LISTED: &str = "message_count > 0";
const ORDER: &str = "ORDER BY updated_at DESC, session_id";

/// What `find` tries, in this order; the first test that any session passes decides.
/// No `LIKE`: it has wildcards.
const TESTS: [&str; 4] = [
    "session_id = $1",
    "title = $1",
    "substring(session_id FROM 1 FOR length($1)) = $1",
    "position($1 IN title) > 0",
];

/// A [`SessionStorage`] in a PostgreSQL database, from
/// [`Postgres::sessions`](crate::Postgres::sessions).
#[derive(Debug, Clone)]
pub struct PostgresSessions {
    lanes: Lanes,
    writer: i64,
}

impl PostgresSessions {
    pub(crate) fn new(lanes: Lanes, writer: i64) -> Self {
        Self { lanes, writer }
    }
}

#[async_trait]
impl SessionStorage for PostgresSessions {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let (writer, id) = (self.writer, session_id.to_owned());
        // Cheap: long texts and images are shared.
        let events = events.to_vec();
        self.lanes
            .in_order(session_id, move |pool| {
                events::write(pool, writer, id, events)
            })
            .await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        let id = session_id.to_owned();
        self.lanes
            .in_order(session_id, move |pool| events::load(pool, id))
            .await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let id = session_id.to_owned();
        self.lanes
            .in_order(session_id, move |pool| events::load_page(pool, id, request))
            .await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        let id = session_id.to_owned();
        self.lanes
            .in_order(session_id, move |pool| events::head_moves(pool, id))
            .await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        let id = session_id.to_owned();
        self.lanes
            .in_order(session_id, move |pool| one(pool, id))
            .await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        let after = cursor.map(parse_cursor).transpose()?;
        self.lanes.aside(move |pool| page(pool, after, limit)).await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let query = query.to_owned();
        self.lanes.aside(move |pool| find(pool, query)).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        let (id, title) = (session_id.to_owned(), title.to_owned());
        self.lanes
            .in_order(session_id, move |pool| rename(pool, id, title))
            .await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let id = session_id.to_owned();
        self.lanes
            .in_order(session_id, move |pool| delete(pool, id))
            .await
    }
}

async fn one(pool: PgPool, session_id: String) -> Result<Option<SessionSummary>, Failure> {
    let sql = format!("{SUMMARY} WHERE session_id = $1");
    let row = sqlx::query(&sql)
        .bind(session_id.as_bytes())
        .fetch_optional(&pool)
        .await?;
    Ok(row.as_ref().map(summary).transpose()?)
}

async fn find(pool: PgPool, query: String) -> Result<Vec<SessionSummary>, Failure> {
    for test in TESTS {
        let sql = format!("{SUMMARY} WHERE {LISTED} AND {test} {ORDER}");
        let rows = sqlx::query(&sql)
            .bind(query.as_bytes())
            .fetch_all(&pool)
            .await?;
        if !rows.is_empty() {
            return Ok(rows.iter().map(summary).collect::<Result<_, _>>()?);
        }
    }
    Ok(Vec::new())
}

async fn rename(pool: PgPool, session_id: String, title: String) -> Result<bool, Failure> {
    let done = sqlx::query("UPDATE sessions SET title = $2 WHERE session_id = $1")
        .bind(session_id.as_bytes())
        .bind(title.as_bytes())
        .execute(&pool)
        .await?;
    Ok(done.rows_affected() > 0)
}

async fn delete(pool: PgPool, session_id: String) -> Result<bool, Failure> {
    // The events go with it, by the foreign key.
    let done = sqlx::query("DELETE FROM sessions WHERE session_id = $1")
        .bind(session_id.as_bytes())
        .execute(&pool)
        .await?;
    Ok(done.rows_affected() > 0)
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

async fn page(
    pool: PgPool,
    after: Option<Place>,
    limit: NonZeroUsize,
) -> Result<ListPage, Failure> {
    let behind = match &after {
        None => "",
        Some(_) => "AND (updated_at < $2 OR (updated_at = $2 AND session_id > $3))",
    };
    let sql = format!("{SUMMARY} WHERE {LISTED} {behind} {ORDER} LIMIT $1");
    // One more than asked for tells whether there is a next page.
    let mut query = sqlx::query(&sql).bind(to_sql(limit.get() as u64).saturating_add(1));
    if let Some(after) = after {
        query = query
            .bind(after.updated_at)
            .bind(after.session_id.into_bytes());
    }
    let rows = query.fetch_all(&pool).await?;
    let mut sessions: Vec<SessionSummary> = rows.iter().map(summary).collect::<Result<_, _>>()?;
    let is_last = sessions.len() <= limit.get();
    sessions.truncate(limit.get());
    let next_cursor = sessions
        .last()
        .filter(|_| !is_last)
        .map(|session| format!("{}:{}", session.updated_at, session.session_id));
    Ok(ListPage::new(sessions, next_cursor))
}

fn summary(row: &PgRow) -> Result<SessionSummary, sqlx::Error> {
    let title: Option<&[u8]> = row.try_get("title")?;
    let session_id: &[u8] = row.try_get("session_id")?;
    let message_count: i64 = row.try_get("message_count")?;
    Ok(SessionSummary::new(
        String::from_utf8_lossy(session_id),
        String::from_utf8_lossy(title.unwrap_or_default()),
        from_sql(row.try_get("created_at")?),
        from_sql(row.try_get("updated_at")?),
        u32::try_from(message_count).unwrap_or(u32::MAX),
    ))
}

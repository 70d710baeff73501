//! The records of a session: events as rows.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row as _};
use youyou_agent::{EventPage, HeadMove, PageRequest, SessionEvent, SessionLog, StorageError};

use crate::failure::Failure;

/// An event as a row.
struct Record {
    timestamp: i64,
    is_message: bool,
    moves_head: bool,
    title: Option<String>,
    body: String,
}

impl Record {
    fn new(event: &SessionEvent) -> Result<(i64, Self), Failure> {
        let refused = |error| {
            Failure::new(format_args!(
                "event {} cannot be stored: {error}",
                event.index
            ))
        };
        let body = serde_json::to_string(event).map_err(refused)?;
        // Values can be nested deeper than a reader goes. What cannot be read again is refused
        // now, while its maker can be told.
        serde_json::from_str::<SessionEvent>(&body).map_err(refused)?;
        let position = i64::try_from(event.index)
            .map_err(|_| Failure::new(format_args!("{} is no index", event.index)))?;
        let record = Self {
            timestamp: to_sql(event.timestamp),
            is_message: event.is_message(),
            moves_head: event.head_moved_to().is_some(),
            title: event.initial_title().map(str::to_owned),
            body,
        };
        Ok((position, record))
    }
}

/// A batch, and what it changes in the row of its session.
struct Batch {
    /// By position; of those at one position the last.
    records: BTreeMap<i64, Record>,
    created_at: i64,
    updated_at: i64,
    title: Option<String>,
}

impl Batch {
    /// `None` for a batch without events.
    fn new(events: &[SessionEvent]) -> Result<Option<Self>, Failure> {
        let mut batch: Option<Self> = None;
        for event in events {
            let (position, record) = Record::new(event)?;
            let batch = batch.get_or_insert(Self {
                records: BTreeMap::new(),
                created_at: record.timestamp,
                updated_at: record.timestamp,
                title: None,
            });
            batch.updated_at = batch.updated_at.max(record.timestamp);
            if batch.title.is_none() {
                batch.title.clone_from(&record.title);
            }
            batch.records.insert(position, record);
        }
        Ok(batch)
    }

    fn message_count(&self) -> i64 {
        let messages = self.records.values().filter(|record| record.is_message);
        messages.count() as i64
    }
}

/// Writes a batch in one transaction: all of it or nothing.
pub(crate) async fn write(
    pool: PgPool,
    writer: i64,
    session_id: String,
    events: Vec<SessionEvent>,
) -> Result<(), Failure> {
    // An image takes its time to become JSON.
    let prepared = tokio::task::spawn_blocking(move || Batch::new(&events)).await;
    let Some(batch) = prepared.map_err(|_| Failure::interrupted())?? else {
        return Ok(());
    };
    let mut transaction = pool.begin().await?;
    let session_key = lock_session(&mut transaction, &session_id, batch.created_at).await?;
    let replaced = check(&mut transaction, writer, session_key, &session_id, &batch).await?;
    let more_messages = batch.message_count() - replaced;
    write_batch(&mut transaction, writer, session_key, batch, more_messages).await?;
    Ok(transaction.commit().await?)
}

/// The key of a session, made if it is new. Its row is locked: whoever writes to the session,
/// in this process or another, comes one after the other.
async fn lock_session(
    connection: &mut PgConnection,
    session_id: &str,
    created_at: i64,
) -> Result<i64, Failure> {
    let there = sqlx::query_scalar("SELECT key FROM sessions WHERE session_id = $1 FOR UPDATE")
        .bind(session_id.as_bytes())
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(key) = there {
        return Ok(key);
    }
    let made = sqlx::query_scalar(
        "INSERT INTO sessions (session_id, created_at, updated_at) VALUES ($1, $2, $2)
         ON CONFLICT (session_id) DO UPDATE SET session_id = excluded.session_id RETURNING key",
    )
    .bind(session_id.as_bytes())
    .bind(created_at)
    .fetch_one(&mut *connection)
    .await?;
    Ok(made)
}

/// Refuses a batch that would replace what another writer wrote, or what cannot be read. Returns
/// how many messages it replaces.
async fn check(
    connection: &mut PgConnection,
    writer: i64,
    session_key: i64,
    session_id: &str,
    batch: &Batch,
) -> Result<i64, Failure> {
    let positions: Vec<i64> = batch.records.keys().copied().collect();
    let taken = sqlx::query(
        "SELECT position, body, writer, is_message FROM events
         WHERE session_key = $1 AND position = ANY($2)",
    )
    .bind(session_key)
    .bind(positions)
    .fetch_all(&mut *connection)
    .await?;
    let mut counted = 0;
    for row in &taken {
        let is_open = row.try_get::<i64, _>("writer")? == writer && record(row)?.2.is_some();
        if !is_open {
            return Err(StorageError::conflict(session_id).into());
        }
        counted += i64::from(row.try_get::<bool, _>("is_message")?);
    }
    Ok(counted)
}

async fn write_batch(
    connection: &mut PgConnection,
    writer: i64,
    session_key: i64,
    batch: Batch,
    more_messages: i64,
) -> Result<(), Failure> {
    let mut columns: (Vec<i64>, Vec<bool>, Vec<bool>, Vec<String>) = Default::default();
    for (position, record) in batch.records {
        columns.0.push(position);
        columns.1.push(record.is_message);
        columns.2.push(record.moves_head);
        columns.3.push(record.body);
    }
    sqlx::query(
        "WITH written AS (
             INSERT INTO events (session_key, writer, position, is_message, moves_head, body)
             SELECT $1, $2, * FROM unnest($3::bigint[], $4::boolean[], $5::boolean[], $6::text[])
             ON CONFLICT (session_key, position) DO UPDATE SET
                 is_message = excluded.is_message,
                 moves_head = excluded.moves_head,
                 body = excluded.body
         )
         UPDATE sessions SET
             title = coalesce(title, $7),
             updated_at = greatest(updated_at, $8),
             message_count = message_count + $9
         WHERE key = $1",
    )
    .bind(session_key)
    .bind(writer)
    .bind(columns.0)
    .bind(columns.1)
    .bind(columns.2)
    .bind(columns.3)
    .bind(batch.title.map(String::into_bytes))
    .bind(batch.updated_at)
    .bind(more_messages)
    .execute(connection)
    .await?;
    Ok(())
}

/// All records of a session, or `None` if there is no such session.
pub(crate) async fn load(pool: PgPool, session_id: String) -> Result<Option<SessionLog>, Failure> {
    // One statement, so that a session that is deleted meanwhile is there whole or not at all.
    let rows = sqlx::query(
        "SELECT e.position, e.body FROM sessions s LEFT JOIN events e ON e.session_key = s.key
         WHERE s.session_id = $1 ORDER BY e.position",
    )
    .bind(session_id.as_bytes())
    .fetch_all(&pool)
    .await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut log = SessionLog::default();
    for row in rows.iter().filter_map(there) {
        let (index, _, event) = row?;
        log.last_index = Some(index);
        match event {
            Some(event) => log.events.push(event),
            None => log = log.with_unreadable(index),
        }
    }
    Ok(Some(log))
}

/// A page of the records of a session, or `None` if there is no such session.
pub(crate) async fn load_page(
    pool: PgPool,
    session_id: String,
    request: PageRequest,
) -> Result<Option<EventPage>, Failure> {
    // The rows of the page and the one behind it, which comes without its body. Sizes are known
    // without reading bodies, so nothing beyond the page is read.
    let rows = sqlx::query(
        "SELECT e.position, CASE WHEN e.fits THEN e.body END AS body
         FROM sessions s LEFT JOIN LATERAL (
             SELECT position, body, fits,
                    lag(fits, 1, true) OVER (ORDER BY position) AS is_reached
             FROM (
                 SELECT position, body, coalesce(
                     sum(octet_length(body)) OVER (
                         ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                     ) < $5, true) AS fits
                 FROM events
                 WHERE session_key = s.key AND position >= $2 AND position < $3
                 ORDER BY position LIMIT $4
             ) sized
         ) e ON e.is_reached
         WHERE s.session_id = $1 ORDER BY e.position",
    )
    .bind(session_id.as_bytes())
    .bind(to_sql(request.from))
    .bind(request.until.map_or(i64::MAX, to_sql))
    .bind(to_sql(request.limit.get() as u64).saturating_add(1))
    .bind(to_sql(request.max_bytes))
    .fetch_all(&pool)
    .await?;
    if rows.is_empty() {
        return Ok(None);
    }
    EventPage::collect(&request, rows.iter().filter_map(there)).map(Some)
}

/// Every move of the head; none if there is no such session.
pub(crate) async fn head_moves(pool: PgPool, session_id: String) -> Result<Vec<HeadMove>, Failure> {
    let rows = sqlx::query(
        "SELECT e.position, e.body FROM events e JOIN sessions s ON s.key = e.session_key
         WHERE s.session_id = $1 AND e.moves_head ORDER BY e.position",
    )
    .bind(session_id.as_bytes())
    .fetch_all(&pool)
    .await?;
    let mut moves = Vec::new();
    for row in &rows {
        let (_, _, event) = record(row)?;
        moves.extend(event.as_ref().and_then(HeadMove::of));
    }
    Ok(moves)
}

/// An index, the size of its body in bytes, and the event unless its record cannot be read.
type Row = (u64, u64, Option<SessionEvent>);

/// The record of a row; a session without any in the range is a row without one.
fn there(row: &PgRow) -> Option<Result<Row, Failure>> {
    match row.try_get::<Option<i64>, _>("position") {
        Ok(None) => None,
        Ok(Some(_)) => Some(record(row)),
        Err(error) => Some(Err(error.into())),
    }
}

/// A record cannot be read that is damaged, or of a kind that only a later version knows.
fn record(row: &PgRow) -> Result<Row, Failure> {
    let index = from_sql(row.try_get("position")?);
    let body: Option<&str> = row.try_get("body")?;
    let body = body.unwrap_or_default();
    let event = serde_json::from_str::<SessionEvent>(body).ok();
    let event = event.filter(|event| event.index == index);
    Ok((index, body.len() as u64, event))
}

/// PostgreSQL's integers are signed; times stay far below the limit.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Back again; what this crate never wrote counts as zero.
pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

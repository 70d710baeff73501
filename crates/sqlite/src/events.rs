//! The records of a session: events as rows.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use youyou_agent::{EventPage, HeadMove, PageRequest, SessionEvent, SessionLog, StorageError};

use crate::failure::Failure;
use crate::messages;

/// An event as a row.
struct Record {
    position: i64,
    timestamp: i64,
    is_message: bool,
    moves_head: bool,
    title: Option<String>,
    body: String,
    /// What a message is found by.
    terms: Option<String>,
}

impl Record {
    fn new(event: &SessionEvent) -> Result<Self, Failure> {
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
        Ok(Self {
            position,
            timestamp: to_sql(event.timestamp),
            is_message: event.is_message(),
            moves_head: event.head_moved_to().is_some(),
            title: event.initial_title().map(str::to_owned),
            terms: messages::terms_of(event),
            body,
        })
    }
}

/// Writes a batch in one transaction: all of it or nothing.
pub(crate) fn write(
    connection: &mut Connection,
    writer: i64,
    session_id: &str,
    events: &[SessionEvent],
) -> Result<(), Failure> {
    let records: Vec<Record> = events.iter().map(Record::new).collect::<Result<_, _>>()?;
    let Some(first) = records.first() else {
        return Ok(());
    };
    // Immediate: a transaction that begins by reading could fail to become a writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let session_key = create_session(&transaction, session_id, first.timestamp)?;
    for record in &records {
        let replaced = find(&transaction, session_key, record.position)?;
        if replaced
            .as_ref()
            .is_some_and(|there| there.writer != Some(writer) || !there.is_readable)
        {
            return Err(StorageError::conflict(session_id).into());
        }
        write_record(&transaction, writer, session_key, record, replaced.as_ref())?;
    }
    Ok(transaction.commit()?)
}

fn create_session(
    transaction: &Transaction<'_>,
    session_id: &str,
    now: i64,
) -> rusqlite::Result<i64> {
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

/// What stands where a record is to be written.
struct There {
    key: i64,
    writer: Option<i64>,
    is_message: bool,
    is_readable: bool,
}

fn find(
    transaction: &Transaction<'_>,
    session_key: i64,
    position: i64,
) -> rusqlite::Result<Option<There>> {
    transaction
        .prepare_cached(
            "SELECT position, body, key, writer, is_message FROM events
             WHERE session_key = ?1 AND position = ?2",
        )?
        .query_one(params![session_key, position], |row| {
            Ok(There {
                key: row.get(2)?,
                writer: row.get(3)?,
                is_message: row.get(4)?,
                is_readable: record(row)?.2.is_some(),
            })
        })
        .optional()
}

fn write_record(
    transaction: &Transaction<'_>,
    writer: i64,
    session_key: i64,
    record: &Record,
    replaced: Option<&There>,
) -> rusqlite::Result<()> {
    let key: i64 = transaction
        .prepare_cached(
            "INSERT INTO events (session_key, position, writer, is_message, moves_head, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (session_key, position)
                 DO UPDATE SET is_message = ?4, moves_head = ?5, body = ?6
             RETURNING key",
        )?
        .query_one(
            params![
                session_key,
                record.position,
                writer,
                record.is_message,
                record.moves_head,
                record.body
            ],
            |row| row.get(0),
        )?;
    if let Some(there) = replaced {
        messages::unindex(transaction, there.key)?;
    }
    if let Some(terms) = &record.terms {
        messages::index(transaction, key, terms)?;
    }
    let counted_before = replaced.is_some_and(|there| there.is_message);
    let more = i64::from(record.is_message) - i64::from(counted_before);
    transaction
        .prepare_cached(
            "UPDATE sessions SET
                 title = coalesce(title, ?2),
                 updated_at = max(updated_at, ?3),
                 message_count = message_count + ?4
             WHERE key = ?1",
        )?
        .execute(params![session_key, record.title, record.timestamp, more])?;
    Ok(())
}

/// All records of a session, or `None` if there is no such session.
pub(crate) fn load(
    connection: &Connection,
    session_id: &str,
) -> Result<Option<SessionLog>, Failure> {
    let Some(session_key) = session_key(connection, session_id)? else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM events WHERE session_key = ?1 ORDER BY position",
    )?;
    let mut log = SessionLog::default();
    for row in statement.query_map([session_key], record)? {
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
pub(crate) fn load_page(
    connection: &Connection,
    session_id: &str,
    request: &PageRequest,
) -> Result<Option<EventPage>, Failure> {
    let Some(session_key) = session_key(connection, session_id)? else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM events
         WHERE session_key = ?1 AND position >= ?2 AND position < ?3 ORDER BY position",
    )?;
    let until = request.until.map_or(i64::MAX, to_sql);
    let range = params![session_key, to_sql(request.from), until];
    let page = EventPage::collect(request, statement.query_map(range, record)?)?;
    Ok(Some(page))
}

/// Every move of the head; none if there is no such session.
pub(crate) fn head_moves(
    connection: &Connection,
    session_id: &str,
) -> Result<Vec<HeadMove>, Failure> {
    let Some(session_key) = session_key(connection, session_id)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM events WHERE session_key = ?1 AND moves_head ORDER BY position",
    )?;
    let mut moves = Vec::new();
    for row in statement.query_map([session_key], record)? {
        let (_, _, event) = row?;
        moves.extend(event.as_ref().and_then(HeadMove::of));
    }
    Ok(moves)
}

fn session_key(connection: &Connection, session_id: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT key FROM sessions WHERE session_id = ?1")?
        .query_one([session_id], |row| row.get(0))
        .optional()
}

/// Index and body of a row: the index, the size in bytes, and the event unless its record cannot
/// be read. That is one which is damaged, or of a kind that only a later version knows.
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<(u64, u64, Option<SessionEvent>)> {
    let index = from_sql(row.get(0)?);
    let bytes = match row.get_ref(1)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => return Ok((index, 0, None)),
    };
    let event = serde_json::from_slice::<SessionEvent>(bytes).ok();
    let event = event.filter(|event| event.index == index);
    Ok((index, bytes.len() as u64, event))
}

/// SQLite's integers are signed; times stay far below the limit.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Back again; what this crate never wrote counts as zero.
pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

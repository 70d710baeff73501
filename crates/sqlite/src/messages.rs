//! Finding messages by their words.

use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use youyou_agent::{AssistantPart, ContentBlock, SessionEvent, SessionEventKind};

use crate::events::record;
use crate::failure::Failure;
use crate::terms::{index_terms, quoted, required_terms};

/// How much of a message is searched, in bytes; who pastes a book does not look for all of it.
const SEARCHED: usize = 64 * 1024;
/// Longest snippet, in characters, without its ellipses.
const SNIPPET: usize = 120;
/// How much of a snippet stands before the word that was found, in characters.
const BEFORE: usize = 30;

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageHit {
    /// The session.
    pub session_id: String,
    /// Its title.
    pub title: String,
    /// Index of the message in the session.
    pub index: u64,
    /// When it was written, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// Whether the user said it; otherwise the model did.
    pub is_user: bool,
    /// A line of at most 120 characters around the first word that was found, with an ellipsis
    /// where it is cut.
    pub snippet: String,
}

/// What a message is found by, or `None` where an event is no message.
pub(crate) fn terms_of(event: &SessionEvent) -> Option<String> {
    text_of(event).map(|text| index_terms(&text))
}

/// The searched text of a message, with a line per part.
fn text_of(event: &SessionEvent) -> Option<String> {
    let mut text = String::new();
    let mut add = |part: &str| {
        let room = SEARCHED.saturating_sub(text.len());
        let _ = writeln!(
            text,
            "{}",
            part.get(..part.floor_char_boundary(room)).unwrap_or(part)
        );
    };
    match &event.kind {
        SessionEventKind::UserMessage { content, .. } => {
            for block in content {
                match block {
                    ContentBlock::Text { text } => add(text),
                    ContentBlock::File { name, .. } => add(name),
                    _ => {}
                }
            }
        }
        SessionEventKind::AssistantMessage { parts, .. } => {
            for part in parts {
                if let AssistantPart::Text { text, .. } = part {
                    add(text);
                }
            }
        }
        _ => return None,
    }
    Some(text)
}

/// Puts a record's terms into the index.
pub(crate) fn index(transaction: &Transaction<'_>, key: i64, terms: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT INTO message_terms (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![key, terms])?;
    Ok(())
}

/// Takes a record out of the index.
pub(crate) fn unindex(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM message_terms WHERE rowid = ?1")?
        .execute([key])?;
    Ok(())
}

/// Takes all records of a session out of the index.
pub(crate) fn unindex_session(
    transaction: &Transaction<'_>,
    session_id: &str,
) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM message_terms WHERE rowid IN (
             SELECT e.key FROM events e JOIN sessions s ON s.key = e.session_key
             WHERE s.session_id = ?1
         )",
        [session_id],
    )?;
    Ok(())
}

/// Puts all messages into the index, which is empty.
pub(crate) fn index_all(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let mut statement =
        transaction.prepare("SELECT position, body, key FROM events WHERE is_message")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (_, _, event) = record(row)?;
        if let Some(terms) = event.as_ref().and_then(terms_of) {
            index(transaction, row.get(2)?, &terms)?;
        }
    }
    Ok(())
}

/// The messages that hold all terms of a query, the most recently written first.
pub(crate) fn search(
    connection: &Connection,
    query: &str,
    limit: usize,
) -> Result<Vec<MessageHit>, Failure> {
    let terms = required_terms(query);
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let expression = terms.iter().map(|term| quoted(term)).collect::<Vec<_>>();
    let mut keys = connection.prepare_cached(
        "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1 ORDER BY rowid DESC",
    )?;
    let mut message = connection.prepare_cached(
        "SELECT e.position, e.body, s.session_id, coalesce(s.title, '')
         FROM events e JOIN sessions s ON s.key = e.session_key WHERE e.key = ?1",
    )?;
    let mut hits = Vec::new();
    let mut found = keys.query([expression.join(" AND ")])?;
    while hits.len() < limit
        && let Some(row) = found.next()?
    {
        let key: i64 = row.get(0)?;
        let hit = message
            .query_one([key], |row| {
                let (_, _, event) = record(row)?;
                let (session_id, title) = (row.get(2)?, row.get(3)?);
                Ok(event.and_then(|event| hit(&event, session_id, title, &terms)))
            })
            .optional()?;
        hits.extend(hit.flatten());
    }
    Ok(hits)
}

fn hit(
    event: &SessionEvent,
    session_id: String,
    title: String,
    terms: &[String],
) -> Option<MessageHit> {
    Some(MessageHit {
        session_id,
        title,
        index: event.index,
        timestamp: event.timestamp,
        is_user: event.is_user_message(),
        snippet: snippet(&text_of(event)?, terms),
    })
}

/// A line around the first of the terms.
fn snippet(text: &str, terms: &[String]) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: Vec<char> = words.join(" ").chars().collect();
    // One character for one, so that places in it are places in the line.
    let lower: Vec<char> = line
        .iter()
        .map(|c| c.to_lowercase().next().unwrap_or(*c))
        .collect();
    // A word that is written otherwise than in the query, with accents or another ending, is
    // shown from the beginning of its text.
    let first = terms.iter().filter_map(|term| place(&lower, term)).min();
    let start = match first {
        Some(first) if line.len() > SNIPPET => {
            first.saturating_sub(BEFORE).min(line.len() - SNIPPET)
        }
        _ => 0,
    };
    let shown: String = line.iter().skip(start).take(SNIPPET).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + SNIPPET < line.len() {
        "…"
    } else {
        ""
    };
    format!("{before}{shown}{after}")
}

fn place(text: &[char], term: &str) -> Option<usize> {
    let term: Vec<char> = term.chars().collect();
    text.windows(term.len().max(1))
        .position(|window| window == term)
}

//! The file: how it is opened and brought up to date.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::failure::Failure;
use crate::messages;

/// How long a call waits for another process to finish its write.
const PATIENCE: Duration = Duration::from_secs(5);
/// Marks files of this crate, from version 2 on: "YYou".
const APPLICATION_ID: i64 = 0x5959_6F75;

/// Brings the schema from one version to the next.
type Migration = fn(&Transaction<'_>) -> Result<(), Failure>;
/// Each starts from the version of its position.
const MIGRATIONS: &[Migration] = &[first_tables, writers];

/// Opens a file for reading and writing, at the newest version.
pub(crate) fn open(path: &Path) -> Result<Connection, Failure> {
    // No URIs: a question mark in a path is a question mark.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Before anything is written: a file that is refused is left as it is.
    verify(&connection)?;
    use_wal(&connection)?;
    // In WAL mode a killed process loses nothing either way; FULL keeps what `append` promised
    // through a power cut, too. It costs a sync per write, and there are a handful of writes in
    // a turn.
    connection.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// A second connection to a file that [`open`] opened, for work that only reads.
pub(crate) fn open_again(path: &Path) -> Result<Connection, Failure> {
    // Not opened read-only: that could not recover the log of a process that was killed. Nor
    // with `query_only`: that forbids to copy the file.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Two processes that open a new file at once get in each other's way, and SQLite does not wait
/// there by itself.
fn use_wal(connection: &Connection) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        let outcome = connection.pragma_update(None, "journal_mode", "WAL");
        match outcome {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return Ok(outcome?),
        }
    }
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Refuses files that are not ours to write to.
fn verify(connection: &Connection) -> Result<(), Failure> {
    let version = number(connection, "user_version")?;
    let mark = number(connection, "application_id")?;
    let tables: i64 =
        connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    // The first version set no mark; it is known by a table that nobody else has.
    let has_our_tables: bool = connection.query_one(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'memory_terms'",
        [],
        |row| row.get(0),
    )?;
    let is_ours = match (version, mark) {
        (0, 0) => tables == 0,
        (1, 0) => has_our_tables,
        (_, mark) => mark == APPLICATION_ID,
    };
    if !is_ours {
        return Err(Failure::new(
            "this is the database of another program; choose another file",
        ));
    }
    if version > MIGRATIONS.len() as i64 {
        return Err(Failure::new(
            "this database was written by a later version of the app; update the app",
        ));
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again, now that no other process can change it.
    verify(&transaction)?;
    let version = number(&transaction, "user_version")?;
    let pending = usize::try_from(version)
        .ok()
        .and_then(|done| MIGRATIONS.get(done..))
        .unwrap_or_default();
    if pending.is_empty() {
        return Ok(());
    }
    for migration in pending {
        migration(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(transaction.commit()?)
}

fn first_tables(transaction: &Transaction<'_>) -> Result<(), Failure> {
    Ok(transaction.execute_batch(
        "CREATE TABLE sessions (
             key INTEGER PRIMARY KEY,
             session_id TEXT NOT NULL UNIQUE,
             title TEXT,
             created_at INTEGER NOT NULL,
             updated_at INTEGER NOT NULL,
             message_count INTEGER NOT NULL DEFAULT 0
         );
         -- Listing never touches the events: this index holds the order and the filter.
         CREATE INDEX sessions_by_time ON sessions (updated_at DESC, session_id)
             WHERE message_count > 0;
         CREATE TABLE events (
             session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
             position INTEGER NOT NULL,
             is_message INTEGER NOT NULL,
             body TEXT NOT NULL,
             UNIQUE (session_key, position)
         );
         CREATE TABLE memories (
             key INTEGER PRIMARY KEY,
             id TEXT NOT NULL UNIQUE,
             namespace TEXT NOT NULL,
             content TEXT NOT NULL,
             source TEXT NOT NULL,
             tags TEXT NOT NULL,
             created_at INTEGER NOT NULL,
             updated_at INTEGER NOT NULL
         );
         CREATE INDEX memories_by_namespace ON memories (namespace, updated_at DESC);
         CREATE VIRTUAL TABLE memory_terms USING fts5 (
             terms, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
         );",
    )?)
}

/// Who wrote a record, which records move the head, and the words of messages.
fn writers(transaction: &Transaction<'_>) -> Result<(), Failure> {
    transaction.execute_batch(
        "CREATE TABLE records (
             -- What the index of words refers to; SQLite may renumber rows without such a key.
             key INTEGER PRIMARY KEY,
             session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
             position INTEGER NOT NULL,
             -- Absent where nobody is left who could write it again.
             writer INTEGER,
             is_message INTEGER NOT NULL,
             moves_head INTEGER NOT NULL DEFAULT 0,
             body TEXT NOT NULL,
             UNIQUE (session_key, position)
         );
         INSERT INTO records (key, session_key, position, is_message, body)
             SELECT rowid, session_key, position, is_message, body FROM events;
         DROP TABLE events;
         ALTER TABLE records RENAME TO events;
         CREATE INDEX head_moves ON events (session_key, position) WHERE moves_head;
         CREATE VIRTUAL TABLE message_terms USING fts5 (
             terms, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
         );",
    )?;
    messages::index_all(transaction)
}

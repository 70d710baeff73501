//! The SQLite file: how it is opened, brought up to date, and used from async code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use youyou_agent::StorageError;

/// How many calls may wait for the connection; more of them wait for a place in the queue.
const QUEUE: usize = 64;

/// Each entry brings the schema from its position to the next version.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL UNIQUE,
        title TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0
    );
    -- Listing never touches the events: this index holds the order and the filter.
    CREATE INDEX sessions_by_time ON sessions (updated_at DESC, session_id) WHERE message_count > 0;
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
    );
"];

/// A piece of work for the thread that owns the connection.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle of the file, cheap to clone.
///
/// One connection, owned by one thread that works off a queue: SQLite lets only one write at
/// a time anyway, and reads here are short. A mutex and a pool of threads would do the work in
/// whatever order the threads wake, and a write whose caller gave up could then overwrite a
/// newer one.
///
/// The thread ends, and the file is closed, when the last handle is gone and all is done.
#[derive(Debug, Clone)]
pub struct Database(mpsc::Sender<Job>);

impl Database {
    /// Opens the file, creating it and its folder if need be.
    ///
    /// # Errors
    /// A file that cannot be opened, is no database of this app, or was made by a newer version.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| {
                StorageError::new(format_args!(
                    "{} cannot be created: {error}",
                    folder.display()
                ))
            })?;
        }
        let connection = Connection::open(path).map_err(explain)?;
        Self::prepare(connection)
            .map_err(|error| StorageError::new(format_args!("{}: {error}", path.display())))
    }

    fn prepare(mut connection: Connection) -> Result<Self, StorageError> {
        connection
            .busy_timeout(Duration::from_secs(5))
            .map_err(explain)?;
        connection
            .execute_batch(
                // In WAL mode a killed process loses nothing either way; FULL keeps what
                // `append` promised through a power cut, too. It costs a sync per write, and
                // there are a handful of writes in a turn.
                "PRAGMA journal_mode = WAL;
                 PRAGMA synchronous = FULL;
                 PRAGMA foreign_keys = ON;",
            )
            .map_err(explain)?;
        migrate(&mut connection)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("sqlite".to_owned())
            .spawn(move || work_off(queue, connection))
            .map_err(|error| {
                StorageError::new(format_args!("no thread can be started: {error}"))
            })?;
        Ok(Self(jobs))
    }

    /// Runs `work` with the connection, after everything that was called before.
    ///
    /// # Order
    /// Calls take their place in the queue when they are first polled. One that is dropped
    /// later is worked off all the same, in its place; one that is dropped while the queue is
    /// full never happens.
    ///
    /// # Errors
    /// What SQLite says, in words for the user.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let interrupted = || StorageError::new("the storage was interrupted; try again");
        let (answer, done) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody waits any more if the caller gave up.
            let _ = answer.send(work(connection));
        });
        self.0.send(job).await.map_err(|_| interrupted())?;
        done.await.map_err(|_| interrupted())?
    }
}

fn work_off(mut queue: mpsc::Receiver<Job>, mut connection: Connection) {
    while let Some(job) = queue.blocking_recv() {
        // A panic rolls its transaction back, so the connection is sound. The caller learns of
        // it because its answer is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut connection)));
    }
}

fn migrate(connection: &mut Connection) -> Result<(), StorageError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(explain)?;
    let version: i64 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(explain)?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    let Some(pending) = MIGRATIONS.get(done..) else {
        return Err(StorageError::new(
            "this data was written by a newer version of the app; update the app",
        ));
    };
    for migration in pending {
        transaction.execute_batch(migration).map_err(explain)?;
    }
    if !pending.is_empty() {
        transaction
            .pragma_update(None, "user_version", to_sql(MIGRATIONS.len() as u64))
            .map_err(explain)?;
    }
    transaction.commit().map_err(explain)
}

/// What went wrong and what to do, for the user.
pub(super) fn explain(error: rusqlite::Error) -> StorageError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            StorageError::new("the disk is full; free some space and try again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StorageError::new("another program is using the chat's data; close it and try again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            StorageError::new(format_args!(
                "the chat's data cannot be written; check the permissions ({error})"
            ))
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StorageError::new(
            format_args!("the chat's data is damaged; move the file away and restart ({error})"),
        ),
        _ => StorageError::new(format_args!("the chat's data cannot be used: {error}")),
    }
}

/// SQLite's integers are signed; times and indices stay far below the limit.
pub(super) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Back again; what was never written by this app counts as zero.
pub(super) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
#[expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
mod tests;

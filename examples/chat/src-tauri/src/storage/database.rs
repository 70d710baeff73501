//! The SQLite file: how it is opened, brought up to date, and used from async code.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use youyou_agent::StorageError;

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

/// A handle of the file, cheap to clone.
///
/// One connection behind a mutex: SQLite lets only one write at a time anyway, and reads
/// here are short. Calls run on tokio's blocking pool, so the lock is never held across an
/// await.
#[derive(Debug, Clone)]
pub struct Database(Arc<Mutex<Connection>>);

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
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs `work` on the blocking pool with the connection.
    ///
    /// # Errors
    /// What SQLite says, in words for the user.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let connection = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            // A panic while it was locked rolled its transaction back: the connection is sound.
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        done.await
            .map_err(|_| StorageError::new("the storage was interrupted; try again"))?
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
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::storage::SqliteSessions;
    use youyou_agent::SessionStorage as _;
    use youyou_agent::testing::user_message;

    #[tokio::test]
    async fn a_full_disk_says_so_keeps_what_was_there_and_goes_on_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("chat.sqlite")).unwrap();
        let sessions = SqliteSessions::new(database.clone());
        sessions
            .append("s1", &[user_message(0, "kept")])
            .await
            .unwrap();
        let limit = async |pages: u32| {
            let set = move |connection: &mut Connection| {
                connection
                    .pragma_update(None, "max_page_count", pages)
                    .map_err(explain)
            };
            database.run(set).await.unwrap();
        };
        limit(1).await;
        let large = user_message(1, &"x".repeat(1_000_000));
        let batch = [user_message(2, "small"), large];
        let error = sessions.append("s1", &batch).await.unwrap_err();
        assert_eq!(
            error.message,
            "the disk is full; free some space and try again"
        );
        assert_eq!(sessions.load("s1").await.unwrap().unwrap().events.len(), 1);
        limit(1_000_000).await;
        sessions.append("s1", &batch).await.unwrap();
        assert_eq!(sessions.load("s1").await.unwrap().unwrap().events.len(), 3);
    }

    #[tokio::test]
    async fn a_file_held_by_another_program_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.sqlite");
        let database = Database::open(&path).unwrap();
        let quick =
            |connection: &mut Connection| connection.busy_timeout(Duration::ZERO).map_err(explain);
        database.run(quick).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let sessions = SqliteSessions::new(database);
        let error = sessions
            .append("s1", &[user_message(0, "a")])
            .await
            .unwrap_err();
        assert!(error.message.contains("another program"), "{error}");
        other.execute_batch("ROLLBACK").unwrap();
        sessions
            .append("s1", &[user_message(0, "a")])
            .await
            .unwrap();
    }

    #[test]
    fn data_of_a_newer_version_and_files_of_other_kinds_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let newer = folder.path().join("newer.sqlite");
        let connection = Connection::open(&newer).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        assert!(
            Database::open(&newer)
                .unwrap_err()
                .message
                .contains("newer version")
        );
        let other = folder.path().join("other.sqlite");
        std::fs::write(
            &other,
            "no database at all, but long enough to have a header",
        )
        .unwrap();
        let error = Database::open(&other).unwrap_err();
        assert!(
            error.message.contains("other.sqlite") && error.message.contains("damaged"),
            "{error}"
        );
        assert!(
            std::fs::read_to_string(&other)
                .unwrap()
                .starts_with("no database")
        );
    }
}

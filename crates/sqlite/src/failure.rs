//! What went wrong, and what to do about it, for the user.

use std::fmt::Display;

use rusqlite::ErrorCode;
use youyou_agent::StorageError;

/// A failure of work on the database. It exists because `?` cannot make a [`StorageError`] of
/// an error of another crate.
#[derive(Debug)]
pub(crate) struct Failure(StorageError);

impl Failure {
    pub(crate) fn new(message: impl Display) -> Self {
        Self(StorageError::new(message))
    }

    /// Says which file it is about.
    pub(crate) fn prefixed(self, subject: impl Display) -> StorageError {
        let mut error = self.0;
        error.message = format!("{subject}: {}", error.message);
        error
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self(error.into())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let told = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk is full; free some space and try again".into(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program is using the database; close it and try again".into()
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                format!("the database cannot be written; check its permissions ({error})")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                format!("the database is damaged; move the file away and start again ({error})")
            }
            _ => format!("the database cannot be used: {error}"),
        };
        Self(StorageError::new(told).with_source(error))
    }
}

//! What went wrong, and what to do about it, for the user.

use std::fmt::Display;

use youyou_agent::StorageError;

/// A failure of work on the database. It exists because `?` cannot make a [`StorageError`] of
/// an error of another crate.
#[derive(Debug)]
pub(crate) struct Failure(StorageError);

impl Failure {
    pub(crate) fn new(message: impl Display) -> Self {
        Self(StorageError::new(message))
    }

    /// The runtime or the last handle went away before the work was done.
    pub(crate) fn interrupted() -> Self {
        Self::new("the storage was interrupted; try again")
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

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let told = match &error {
            sqlx::Error::Configuration(_) => format!("the URL of the database is wrong: {error}"),
            sqlx::Error::Tls(_) => format!(
                "no encrypted connection to the database can be made; the feature \"rustls\" is needed for one ({error})"
            ),
            sqlx::Error::PoolTimedOut => {
                "the database did not answer in time; see whether the server runs".to_owned()
            }
            sqlx::Error::Io(_) => format!("the database cannot be reached: {error}"),
            sqlx::Error::Database(refusal) => match refusal.code().as_deref() {
                Some("53100") => "the disk of the database is full".to_owned(),
                Some("53300") => "the database takes no more connections".to_owned(),
                Some("55P03" | "57014") => {
                    "the database is busy with another call; try again".to_owned()
                }
                Some("57P01" | "57P02" | "57P03") => {
                    "the database is starting or stopping; try again".to_owned()
                }
                Some("28000" | "28P01" | "3D000" | "42501") => {
                    format!("the database refuses access: {}", refusal.message())
                }
                _ => format!("the database cannot be used: {}", refusal.message()),
            },
            _ => format!("the database cannot be used: {error}"),
        };
        Self(StorageError::new(told).with_source(error))
    }
}

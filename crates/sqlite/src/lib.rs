//! Sessions and memories of the YouYou agent in one SQLite file.
//!
//! ```
//! use youyou_agent_sqlite::Sqlite;
//! # use youyou_agent::testing::{ScriptedProvider, done, text, text_model};
//! use youyou_agent::{AgentBuilder, AgentConfig, SessionConfig};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.db");
//! # let provider = ScriptedProvider::new("scripted")
//! #     .model(text_model("m1"))
//! #     .reply([text("It leaves from platform 7."), done()]);
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let db = Sqlite::open(path)?;
//! let agent = AgentBuilder::new(AgentConfig::new("m1"))
//!     .provider(provider)
//!     .session_storage(db.sessions())
//!     .memory_storage(db.memories())
//!     .build()
//!     .await?;
//!
//! let session = agent.create_session(SessionConfig::default()).await?;
//! session.send("Where is the train to Porto?")?.outcome().await;
//!
//! let hits = db.search_messages("platform", 20).await?;
//! assert_eq!(hits[0].snippet, "It leaves from platform 7.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! - What was written survives a killed process and a power cut.
//! - Nothing runs on the threads of the async runtime. Writes and reads of sessions wait in one
//!   queue, in the order of their calls; a search, a backup or a check holds up none of them.
//! - Several processes may open one file. None replaces what another one wrote: such a write is
//!   refused with [`StorageError::conflict`], and the agent tells that the session was continued
//!   elsewhere.
//! - A file of an earlier version is brought up to date when it is opened; one of a later
//!   version, of another program, or a damaged one is refused and left as it is.

#![warn(missing_docs)]

mod backup;
mod events;
mod failure;
mod memories;
mod messages;
mod ranking;
mod schema;
mod sessions;
mod terms;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use youyou_agent::StorageError;

pub use memories::SqliteMemories;
pub use messages::MessageHit;
pub use sessions::SqliteSessions;

use worker::Worker;

/// An open database file, cheap to clone. All handles that come from one `open` are one writer.
///
/// The file is closed when the last handle is gone and all that was called is done.
#[derive(Debug, Clone)]
pub struct Sqlite {
    /// Sessions and memories, one call after the other.
    main: Worker,
    /// What may take long, and only reads.
    side: Worker,
    /// Tells this object's records from those of others.
    writer: i64,
    path: Arc<Path>,
}

impl Sqlite {
    /// Opens a database file, creating it and its folder if need be.
    ///
    /// It blocks its thread for some milliseconds; for longer if another process is writing at
    /// that moment (at most 5 s), or if a large file of an earlier version is brought up to date.
    ///
    /// # Errors
    /// A file that cannot be opened, is damaged, belongs to another program, or was written by a
    /// later version of this crate. The message names the file and says what to do; the file is
    /// left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let path = path.as_ref();
        Self::open_file(path).map_err(|error| error.prefixed(path.display()))
    }

    fn open_file(path: &Path) -> Result<Self, failure::Failure> {
        // Absolute, because the side connection is opened later and the process may have moved.
        let path: PathBuf = std::path::absolute(path)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let connection = schema::open(&path)?;
        let writer = connection.query_one("SELECT random()", [], |row| row.get(0))?;
        let main = Worker::start("sqlite", connection)?;
        let side = Worker::start("sqlite-side", schema::open_again(&path)?)?;
        Ok(Self {
            main,
            side,
            writer,
            path: path.into(),
        })
    }

    /// The sessions of this file.
    #[must_use]
    pub fn sessions(&self) -> SqliteSessions {
        SqliteSessions::new(self.main.clone(), self.writer)
    }

    /// The memories of this file.
    #[must_use]
    pub fn memories(&self) -> SqliteMemories {
        SqliteMemories::new(self.main.clone())
    }

    /// The messages that hold every word of `query`, the most recently written first, at most
    /// `limit`.
    ///
    /// Users' messages and answers are searched, on every branch of every session: their text and
    /// the names of attached files. Case, accents and English endings make no difference. Chinese,
    /// Japanese and Korean need no spaces: each pair of neighbouring characters has to be there.
    /// Nothing in a query is syntax; one without any letter or digit finds nothing. Words behind
    /// the first 64 of a query do not count, nor those behind the first 64 KiB of a message.
    ///
    /// # Errors
    /// What SQLite says, in words for the user.
    pub async fn search_messages(
        &self,
        query: &str,
        limit: usize,
    ) -> Result<Vec<MessageHit>, StorageError> {
        let query = query.to_owned();
        self.side
            .run(move |connection| messages::search(connection, &query, limit))
            .await
    }

    /// Copies everything into a new file while the database is in use. The copy is a database
    /// that [`open`](Self::open) opens. A file that is there already is replaced once the copy is
    /// whole, so that it always holds the older or the newer copy.
    ///
    /// # Errors
    /// A copy that cannot be written, or `to` being the database itself.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<(), StorageError> {
        let (from, to) = (Arc::clone(&self.path), to.as_ref().to_owned());
        self.side
            .run(move |connection| backup::copy(connection, &from, &to))
            .await
    }

    /// Reads the whole file and looks for damage. Sessions and memories can be used meanwhile.
    ///
    /// # Errors
    /// What is damaged, in SQLite's words.
    pub async fn check(&self) -> Result<(), StorageError> {
        self.side.run(|connection| backup::check(connection)).await
    }
}

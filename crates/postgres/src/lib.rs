//! Sessions and memories of the YouYou agent in a PostgreSQL database.
//!
//! ```
//! use youyou_agent_postgres::Postgres;
//! # use youyou_agent::testing::{ScriptedProvider, done, text, text_model};
//! use youyou_agent::{AgentBuilder, AgentConfig, SessionConfig};
//!
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/storage/server.rs")); }
//! # let Some(server) = server::start() else { return Ok(()) };
//! # let url = server.url();
//! # let provider = ScriptedProvider::new("scripted")
//! #     .model(text_model("m1"))
//! #     .reply([text("Hello."), done()]);
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let db = Postgres::connect(&url).await?;
//! let agent = AgentBuilder::new(AgentConfig::new("m1"))
//!     .provider(provider)
//!     .session_storage(db.sessions())
//!     .memory_storage(db.memories())
//!     .build()
//!     .await?;
//!
//! let session = agent.create_session(SessionConfig::default()).await?;
//! session.send("Hi")?.outcome().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! - What was written is durable as the server is configured; by default, it survives a crash.
//! - Any number of processes may share a database. None replaces what another one wrote: such a
//!   write is refused with [`StorageError::conflict`], and the agent tells that the session was
//!   continued elsewhere.
//! - Calls about one session take effect in the order in which they were made, also those whose
//!   caller gave up.
//! - Tables are made and brought up to date on connecting, by one process at a time.
//! - Work on the server is given up after 30 seconds, whatever the server does. A call about a
//!   session also waits for those that were made before it.

#![warn(missing_docs)]

mod events;
mod failure;
mod lanes;
mod memories;
mod schema;
mod sessions;
mod terms;

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions as _, Executor as _, Row as _};
use youyou_agent::StorageError;

pub use memories::PostgresMemories;
pub use sessions::PostgresSessions;

use failure::Failure;
use lanes::Lanes;

/// How long a call waits for a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// What the server stops by itself, so that nothing is held up by a call that nobody ends.
const SERVER_LIMITS: [(&str, &str); 3] = [
    ("lock_timeout", "5s"),
    ("statement_timeout", "25s"),
    ("idle_in_transaction_session_timeout", "30s"),
];

/// A pool of connections to a database, cheap to clone. All handles that come from one `connect`
/// are one writer.
///
/// It belongs to the runtime in which it was made. The connections are closed when the last
/// handle is gone and all that was called is done.
#[derive(Debug, Clone)]
pub struct Postgres {
    lanes: Lanes,
    /// Tells this object's records from those of others.
    writer: i64,
}

/// How to connect.
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresOptions {
    url: String,
    schema: String,
    connections: u32,
}

impl PostgresOptions {
    /// A database by its URL, such as `postgres://user:password@host:5432/database`; see the
    /// parameters of [libpq](https://www.postgresql.org/docs/current/libpq-connect.html). An
    /// encrypted connection needs the feature `rustls`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "youyou_agent".to_owned(),
            connections: 10,
        }
    }

    /// The schema that holds the tables; it is created if it is missing. The default is
    /// `youyou_agent`. At most 63 lower-case ASCII letters, digits and `_`, no digit first.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// The most connections that are open at a time. The default is 10.
    pub fn max_connections(mut self, count: u32) -> Self {
        self.connections = count.max(1);
        self
    }

    /// Connects, makes the tables or brings them up to date.
    ///
    /// # Errors
    /// A URL or a schema name that is none, a server that cannot be reached or refuses, a
    /// database that is not in UTF-8, and tables of a later version of this crate.
    pub async fn connect(self) -> Result<Postgres, StorageError> {
        Ok(self.open().await?)
    }

    async fn open(self) -> Result<Postgres, Failure> {
        schema::check_name(&self.schema)?;
        let options = PgConnectOptions::from_str(&self.url)?
            .options([("search_path", self.schema.as_str())])
            .options(SERVER_LIMITS)
            .disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(self.connections)
            .acquire_timeout(CONNECTION_TIMEOUT)
            // In place of the pool's own ping, which would not notice an open transaction.
            .test_before_acquire(false)
            .before_acquire(|connection, _| Box::pin(is_clean(connection)))
            .connect_with(options)
            .await?;
        schema::prepare(&pool, &self.schema).await?;
        let writer = sqlx::query_scalar("SELECT nextval('writers')")
            .fetch_one(&pool)
            .await?;
        Ok(Postgres {
            lanes: Lanes::new(pool),
            writer,
        })
    }
}

/// Whether a connection works and is in no transaction. Work that is given up while its
/// transaction begins leaves one open, and what is written next would vanish with it. A
/// connection that is not clean is closed.
async fn is_clean(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // Both are the time of the statement unless a transaction began before it.
    let row = connection
        .fetch_one("SELECT now() = statement_timestamp()")
        .await?;
    row.try_get(0)
}

impl Postgres {
    /// Connects to a database by its URL, with the defaults of [`PostgresOptions`].
    ///
    /// # Errors
    /// As [`PostgresOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, StorageError> {
        PostgresOptions::new(url).connect().await
    }

    /// The sessions of this database.
    #[must_use]
    pub fn sessions(&self) -> PostgresSessions {
        PostgresSessions::new(self.lanes.clone(), self.writer)
    }

    /// The memories of this database.
    #[must_use]
    pub fn memories(&self) -> PostgresMemories {
        PostgresMemories::new(self.lanes.clone())
    }
}

#[cfg(test)]
#[path = "../tests/storage/server.rs"]
#[expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
mod server;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use youyou_agent::SessionStorage as _;
    use youyou_agent::testing::user_message;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_is_left_in_a_transaction_is_not_used_again() {
        let Some(server) = server::start() else {
            return;
        };
        let options = PostgresOptions::new(server.url()).max_connections(1);
        let db = options.connect().await.unwrap();
        let sessions = db.sessions();
        let hello = [user_message(0, "hello")];
        sessions.append("s1", &hello).await.unwrap();
        // Behind the back of the pool, as a cut `BEGIN` does it.
        let mut connection = db.lanes.pool().acquire().await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        drop(connection);
        assert!(sessions.rename("s1", "kept").await.unwrap());
        let other = Postgres::connect(&server.url()).await.unwrap().sessions();
        let row = other.summary("s1").await.unwrap().unwrap();
        assert_eq!(row.title, "kept");
    }
}

//! Where sessions and memories are kept: one SQLite file.

mod database;
mod memories;
mod ranking;
mod search;
mod sqlite;

pub use database::Database;
pub use memories::SqliteMemories;
pub use sqlite::SqliteSessions;

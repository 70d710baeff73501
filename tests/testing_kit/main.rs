//! The testing kit keeps its own promises.
#![cfg(feature = "testing")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod altered;
mod conformance;
mod epilogue;
mod events;
mod flawed_memories;
mod flawed_pages;
mod flawed_records;
mod flawed_sessions;
mod flawed_writers;
mod provider;
mod storages;
mod tools;
mod transcript;

//! The testing kit keeps its own promises.
#![cfg(feature = "testing")]

mod conformance;
mod epilogue;
mod events;
mod flawed_memories;
mod flawed_sessions;
mod provider;
mod storages;
mod tools;
mod transcript;

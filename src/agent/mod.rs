//! The agent: no Tauri, no input or output of its own.
pub(crate) mod clock;
pub(crate) mod contain;
pub mod config;
pub mod error;
pub mod event;
pub mod hook;
pub mod memory;
pub mod message;
pub(crate) mod outlet;
pub mod plugin;
pub mod provider;
pub mod skill;
pub mod storage;
pub mod tool;

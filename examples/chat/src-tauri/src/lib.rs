//! The backend of the desktop chat: everything concrete that the agent itself does not bring.
//!
//! # Layout
//! - `backend`: what is registered, in one place; begin here
//! - `providers`: vendors with a key, local servers, the offline demo
//! - `storage`: sessions and memories in one SQLite file
//! - `tools`, `workspace`: what the model can do, and the folder it can do it in
//! - `plugins`, `skills`: hooks and prompts
//! - `settings`: keys and choices of the user
//! - `commands`, `app`, `navigation`: how the page reaches all this, and no other page

mod app;
pub mod backend;
mod commands;
mod log;
mod navigation;
pub mod plugins;
pub mod providers;
pub mod settings;
pub mod skills;
pub mod storage;
pub mod tools;
pub mod workspace;

pub use app::run;

/// The README's Rust compiles as it stands: this app has all that its `main.rs` needs.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
struct ReadmeSnippets;

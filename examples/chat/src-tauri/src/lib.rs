//! The backend of the desktop chat: everything concrete that the agent itself does not bring.
//!
//! # Layout
//! - `backend`: what is registered, in one place; begin here
//! - `models`, `demo`: the model servers that are asked, and the offline demo
//! - `tools`, `workspace`: what the model can do, and the folder it can do it in
//! - `plugins`, `skills`: hooks and prompts
//! - `settings`: keys and choices of the user
//! - `commands`, `app`, `navigation`: how the page reaches all this, and no other page

mod app;
pub mod backend;
mod commands;
pub mod demo;
mod log;
pub mod models;
mod navigation;
pub mod plugins;
pub mod settings;
pub mod skills;
pub mod tools;
pub mod workspace;

pub use app::run;

/// The README's Rust compiles as it stands: this app has all that its `main.rs` needs.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
struct ReadmeSnippets;

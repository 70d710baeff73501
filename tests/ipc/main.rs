//! The plugin layer in an app without a webview: Tauri's mock runtime.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod commands;
mod delivery;
mod harness;
mod requests;
mod startup;
mod turns;
mod watching;

//! One thin function per command: take the state, call one method, return.
//!
//! All are `async`: a synchronous command runs under a lock of Tauri's, and a panic in it
//! would poison the app.

#![expect(
    clippy::unreachable,
    reason = "Tauri's macro writes one that never runs, to check the return type"
)]

pub(super) mod catalog;
pub(super) mod session;
pub(super) mod stored;
pub(super) mod turn;
mod wire;

pub(super) use wire::{Attachment, TurnAccepted};

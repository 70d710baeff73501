//! The agent's promises, a module per chapter of the requirements. Everything runs against a
//! scripted provider, on paused time where time matters; nothing sleeps.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod cancel;
mod context;
mod errors;
mod events;
mod hooks;
mod input;
mod lifecycle;
mod memory;
mod prompt;
mod properties;
mod rig;
mod sessions;
mod skills;
mod streaming;
mod tools;
mod turns;

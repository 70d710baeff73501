//! A complete LLM agent for Tauri apps.
mod agent;
#[cfg(feature = "testing")]
pub mod testing;

pub use agent::config::*;
pub use agent::error::*;
pub use agent::event::*;
pub use agent::hook::*;
pub use agent::memory::*;
pub use agent::message::*;
pub use agent::outlet::{Joining, Subscription, Turn, TurnEnding, TurnOutcome};
pub use agent::plugin::*;
pub use agent::provider::*;
pub use agent::skill::*;
pub use agent::storage::*;
pub use agent::tool;
pub use agent::tool::*;

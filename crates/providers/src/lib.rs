//! Language models for the YouYou agent: OpenAI, Anthropic, Gemini and every server that speaks
//! one of their protocols.

mod answer;
#[cfg(feature = "__bench")]
#[doc(hidden)]
pub mod bench;
mod calls;
mod catalog;
mod check;
mod endpoint;
mod failure;
mod http;
mod keys;
mod line;
mod local;
mod providers;
mod server;
mod sse;
mod think;
mod vendor;
mod wire;

pub use endpoint::Endpoint;
#[cfg(feature = "keyring")]
pub use keys::Keyring;
pub use keys::{Environment, Key, KeySource};
pub use providers::Providers;

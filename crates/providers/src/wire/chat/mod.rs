//! OpenAI Chat Completions, and everyone who speaks it.

mod assistant;
mod decoder;
mod request;
#[cfg(test)]
mod tests;
mod thoughts;
mod usage;

pub(crate) use decoder::decoder;
pub(crate) use request::request;

/// How this protocol is called in the data that goes back.
const WIRE: &str = "chat";

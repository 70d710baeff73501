//! OpenAI Chat Completions, and everyone who speaks it.

mod assistant;
mod call;
mod decoder;
mod request;
#[cfg(test)]
mod tests;
mod thoughts;
mod usage;

pub(crate) use decoder::decoder;
pub(crate) use request::{effort_word, request};

/// How this protocol is called in the data that goes back.
const WIRE: &str = "chat";

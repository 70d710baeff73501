//! Anthropic Messages, and every server that speaks it.

mod block;
mod claude;
mod decoder;
mod request;
#[cfg(test)]
mod tests;
mod usage;

pub(crate) use decoder::decoder;
pub(crate) use request::request;

/// How this protocol is called in the data that goes back.
const WIRE: &str = "messages";

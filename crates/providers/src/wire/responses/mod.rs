//! OpenAI Responses, and every server that speaks it.

mod decoder;
mod item;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use decoder::decoder;
pub(crate) use request::request;

/// How this protocol is called in the data that goes back.
const WIRE: &str = "responses";

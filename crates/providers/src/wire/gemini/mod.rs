//! Gemini `generateContent`, streamed.

mod decoder;
mod model;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use decoder::decoder;
pub(crate) use request::request;

/// How this protocol is called in the data that goes back.
const WIRE: &str = "gemini";

//! The protocols: a request out of the agent's messages, the agent's events out of frames.
//!
//! Everything here is pure: no network, no clock. A decoder takes frames and gives events, so
//! that each wire is tested without a server.

use std::collections::VecDeque;

use serde_json::Value;
use youyou_agent::{ChatEvent, ProviderError};

/// A request as a server takes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outgoing {
    /// Behind the base URL, without a slash at its start: `chat/completions`.
    pub(crate) path: String,
    /// Headers of the protocol besides authentication and content type.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The JSON body.
    pub(crate) body: Value,
}

/// One frame of a server-sent event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The `event:` line, if there was one.
    pub(crate) event: Option<&'a str>,
    /// The `data:` lines, joined.
    pub(crate) data: &'a str,
}

/// Reads one answer, frame by frame.
///
/// After [`ChatEvent::Done`] was given or an error returned nothing more is asked of it.
pub(crate) trait Decoder: Send {
    /// Takes the next frame; what it means goes to the end of `events`.
    ///
    /// # Errors
    /// The frame says that the answer failed.
    fn frame(&mut self, frame: Frame<'_>, events: &mut VecDeque<ChatEvent>) -> Result<(), ProviderError>;

    /// Takes the body of a server that answered with JSON in place of a stream: an error of its
    /// kind, or a whole answer.
    ///
    /// # Errors
    /// The body says that the answer failed, or is none.
    fn body(&mut self, body: &Value, events: &mut VecDeque<ChatEvent>) -> Result<(), ProviderError>;

    /// The stream ended. Gives `Done` where the protocol's end mark was seen before.
    ///
    /// # Errors
    /// `Network`: the end mark is missing, the answer is torn.
    fn end(&mut self, events: &mut VecDeque<ChatEvent>) -> Result<(), ProviderError>;
}

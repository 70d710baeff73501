//! What commands take and return beyond the agent's own types.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::SessionState;
use crate::agent::message::{ContentBlock, UserInput};

/// A whole number that JavaScript has exactly: 0 to 2^53 - 1. Any other is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) struct SafeInteger(#[cfg_attr(feature = "bindings", specta(type = u32))] pub(crate) u64);

/// `Number.MAX_SAFE_INTEGER`.
const LARGEST_SAFE: u64 = (1 << 53) - 1;

impl<'de> Deserialize<'de> for SafeInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if number > LARGEST_SAFE {
            return Err(D::Error::custom(format_args!(
                "{number} is too large; the largest number of a page is {LARGEST_SAFE}"
            )));
        }
        Ok(Self(number))
    }
}

/// What a user sends: text, or blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) enum MessageContent {
    /// Plain text.
    Text(String),
    /// One or more blocks.
    Blocks(Vec<ContentBlock>),
}

/// By hand, because of the messages: an untagged enum does not say which block lacks what.
impl<'de> Deserialize<'de> for MessageContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MessageContentVisitor)
    }
}

struct MessageContentVisitor;

impl<'de> Visitor<'de> for MessageContentVisitor {
    type Value = MessageContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of content blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<MessageContent, E> {
        Ok(MessageContent::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<MessageContent, E> {
        Ok(MessageContent::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<MessageContent, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(MessageContent::Blocks)
    }
}

impl From<MessageContent> for UserInput {
    fn from(content: MessageContent) -> Self {
        match content {
            MessageContent::Text(text) => text.into(),
            MessageContent::Blocks(blocks) => blocks.into(),
        }
    }
}

/// What `send_message` and `retry_turn` return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) struct TurnAccepted {
    /// The turn.
    pub(crate) turn_id: String,
    /// Number of the subscription, for `ack` and `detach`.
    pub(crate) subscription: u32,
}

/// What `attach` returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) struct Attachment {
    /// Number of the subscription, for `ack` and `detach`.
    pub(crate) subscription: u32,
    /// What the session is doing.
    pub(crate) state: SessionState,
    /// The running turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub(crate) turn_id: Option<String>,
    /// Number of the newest event there was when the page attached. What is newer comes
    /// through the channel.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub(crate) last_sequence: u64,
}

//! What is said in a session: messages, their parts, and the user's input (chapters 5.2 and 8).

mod image;
mod list;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use list::{Messages, MessagesIter};

use super::error::AgentError;

/// Opaque data of a provider, such as a signature: stored and sent back byte for byte,
/// dropped when the session goes on with another provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ProviderData(#[cfg_attr(feature = "bindings", specta(type = String))] pub Arc<str>);

/// A message as a provider gets it. [`ModelProvider`](crate::ModelProvider) has an example
/// that turns all of them into JSON.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// From the user's side.
    User(UserMessage),
    /// From the model.
    Assistant(AssistantMessage),
    /// The result of one tool call. Results follow their assistant message in call order.
    ToolResult(ToolResultMessage),
    /// A note to the model between messages: that the answer before was cut, in the fixed
    /// words of [`Interruption::note`](crate::Interruption::note), or what a stored
    /// [`SystemMessage`](crate::SessionEventKind::SystemMessage) says. It may come last, as
    /// when a failed turn is run again.
    System(Arc<str>),
}

impl Message {
    /// All text of the message, blocks joined by line breaks; images are left out.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::User(user) => {
                let texts: Vec<&str> = user
                    .content
                    .iter()
                    .filter_map(ContentBlock::as_text)
                    .collect();
                texts.join("\n")
            }
            Self::Assistant(assistant) => assistant.text(),
            Self::ToolResult(result) => result.content.to_string(),
            Self::System(text) => text.to_string(),
        }
    }
}

/// A message from the user's side.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// What it holds, in order; never empty, no block blank.
    pub content: Vec<ContentBlock>,
    /// Who put it there.
    pub origin: UserOrigin,
}

/// Who put a user-side message into the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserOrigin {
    /// The user wrote it.
    Input,
    /// A skill the user called; it precedes the user's own message and lives for one turn.
    Skill,
    /// A summary or notice that stands for messages that were removed.
    Summary,
}

/// One answer of a model, its parts in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls.
    pub parts: Vec<AssistantPart>,
    /// Opaque data of the whole message.
    pub provider_data: Option<ProviderData>,
}

impl AssistantMessage {
    /// The text parts, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Text { text, .. } => Some(text.as_ref()),
                AssistantPart::Reasoning { .. } | AssistantPart::ToolCall { .. } => None,
            })
            .collect()
    }
}

/// A part of a model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum AssistantPart {
    /// Text of the answer.
    Text {
        /// The text.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        text: Arc<str>,
        /// Opaque data of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        provider_data: Option<ProviderData>,
    },
    /// Reasoning before or between.
    Reasoning {
        /// The text; may be empty where only `provider_data` matters.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        text: Arc<str>,
        /// Opaque data of the block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        provider_data: Option<ProviderData>,
    },
    /// A tool call.
    ToolCall {
        /// Unique in the session.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        call_id: Arc<str>,
        /// The tool.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        tool_name: Arc<str>,
        /// The arguments as the model gave them: always a JSON object, `{}` where the
        /// model's own text was none.
        #[cfg_attr(feature = "bindings", specta(type = crate::agent::json::JsonValue))]
        arguments: Arc<Value>,
        /// Opaque data of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", specta(optional))]
        provider_data: Option<ProviderData>,
    },
}

impl AssistantPart {
    /// Text without opaque data.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text {
            text: text.into(),
            provider_data: None,
        }
    }
}

/// What came out of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResultMessage {
    /// The call it answers.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// What the model reads; never blank.
    pub content: Arc<str>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A block of a user's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image: PNG, JPEG, GIF or WebP, at most 20 MiB of decoded bytes.
    Image {
        /// Its media type. Taken from the bytes on sending, so it may be wrong or empty in
        /// an input; what providers and storages see is right.
        #[serde(default)]
        media_type: String,
        /// The bytes in standard base64; an input may carry a data-URL prefix.
        #[cfg_attr(feature = "bindings", specta(type = String))]
        data: Arc<str>,
    },
    /// A file that the caller read, as text.
    File {
        /// Its name.
        name: String,
        /// Its content.
        text: String,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// An image block; `data` is base64, with or without a data-URL prefix.
    pub fn image(media_type: impl Into<String>, data: impl Into<Arc<str>>) -> Self {
        Self::Image {
            media_type: media_type.into(),
            data: data.into(),
        }
    }

    /// A file block.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::File {
            name: name.into(),
            text: text.into(),
        }
    }

    /// The text of a text or file block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } | Self::File { text, .. } => Some(text),
            Self::Image { .. } => None,
        }
    }

    /// Whether there is nothing in it that a model could read.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Text { text } => text.trim().is_empty(),
            // A file is content even when it is empty: its name says something.
            Self::File { name, text } => name.trim().is_empty() && text.trim().is_empty(),
            Self::Image { .. } => false,
        }
    }
}

/// What a user sends: one or more blocks.
///
/// # Examples
/// ```
/// use youyou_agent::{ContentBlock, UserInput};
///
/// let plain: UserInput = "What is in this picture?".into();
/// let mixed: UserInput = vec![
///     ContentBlock::text("Compare these files."),
///     ContentBlock::file("a.txt", "alpha"),
///     ContentBlock::file("b.txt", "beta"),
/// ]
/// .into();
/// assert_eq!(plain.content.len(), 1);
/// assert_eq!(mixed.content.len(), 3);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct UserInput {
    /// The blocks, in order.
    pub content: Vec<ContentBlock>,
}

impl UserInput {
    /// Checks the input and brings it into the form that is stored: blank text blocks are
    /// dropped beside other content, images are decoded once and their type corrected.
    ///
    /// # Errors
    /// `INVALID_INPUT` when nothing is left or an image is none of the four formats.
    pub(crate) fn checked(self) -> Result<Vec<ContentBlock>, AgentError> {
        let mut content = Vec::with_capacity(self.content.len());
        for block in self.content {
            if block.is_blank() {
                continue;
            }
            content.push(match block {
                ContentBlock::Image { media_type, data } => image::checked(&media_type, data)?,
                ContentBlock::Text { .. } | ContentBlock::File { .. } => block,
            });
        }
        if content.is_empty() {
            return Err(AgentError::invalid_input(
                "the message is empty; write something or add an image or a file",
            ));
        }
        Ok(content)
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self {
            content: vec![ContentBlock::Text { text }],
        }
    }
}

impl From<Vec<ContentBlock>> for UserInput {
    fn from(content: Vec<ContentBlock>) -> Self {
        Self { content }
    }
}

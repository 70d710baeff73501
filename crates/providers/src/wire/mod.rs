//! The protocols: a request out of the agent's messages, the agent's events out of frames.
//!
//! Everything here is pure: no network, no clock. A decoder takes frames and gives events, so
//! that each wire is tested without a server.

pub(crate) mod anthropic;
pub(crate) mod body;
pub(crate) mod chat;
pub(crate) mod fault;
pub(crate) mod flow;
#[cfg(test)]
mod fuzz;
pub(crate) mod gemini;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod responses;
pub(crate) mod schema;
pub(crate) mod stop;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::VecDeque;
use std::sync::Arc;

use youyou_agent::{ChatEvent, ChatRequest, ProviderError};

/// The server and the model that a request goes to, as far as a wire must know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Id of the provider that the model belongs to.
    pub(crate) provider: Arc<str>,
    /// The vendor's id in the table, or `custom` for a server of the user's own.
    pub(crate) vendor: Arc<str>,
    /// The server's name for people; messages of errors begin with it.
    pub(crate) service: Arc<str>,
    /// The base address without a slash at its end. For messages; the path of an
    /// [`Outgoing`] is put behind it.
    pub(crate) address: Arc<str>,
    /// The model's id as the server knows it.
    pub(crate) model: Arc<str>,
    /// What the model belongs to: opaque data of one family means nothing to another
    /// (`claude`, `gemini`, `gpt`). The model's own id where no family is known.
    pub(crate) family: Arc<str>,
    /// Whether the model shows its reasoning and takes `reasoning_effort`.
    pub(crate) reasoning: bool,
    /// Upper limit of an answer in tokens for protocols that demand one, when the caller set
    /// none.
    pub(crate) max_output: u32,
    /// Where this server differs from its protocol.
    pub(crate) quirks: Quirks,
}

/// Where a server differs from its protocol, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// The name of the field that limits the answer (chat).
    pub(crate) max_tokens_field: &'static str,
    /// How the effort of reasoning is asked for (chat).
    pub(crate) effort: EffortField,
    /// When reasoning goes back that carries no signature (chat).
    pub(crate) reasoning_back: ReasoningBack,
    /// Whether the server is asked to tell the usage in its stream (chat): a few refuse it.
    pub(crate) usage_option: bool,
    /// What the server has for the shape of an answer.
    pub(crate) shape: Shape,
    /// Whether `<think>` in the text is reasoning (chat).
    pub(crate) think_tags: bool,
    /// Whether user and assistant messages must alternate and a system message is legal at
    /// the start only (chat).
    pub(crate) strict_roles: bool,
    /// Whether prompt caching is marked in the request (Anthropic, and Claude over gateways).
    pub(crate) cache_marks: bool,
    /// Which ids of calls the server takes (chat).
    pub(crate) call_ids: CallIds,
    /// Whether a user's message may follow the result of a call (chat).
    pub(crate) user_after_tool: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            max_tokens_field: "max_tokens",
            effort: EffortField::ReasoningEffort,
            reasoning_back: ReasoningBack::WithCalls,
            usage_option: true,
            shape: Shape::Schema,
            think_tags: true,
            strict_roles: true,
            cache_marks: false,
            call_ids: CallIds::Any,
            user_after_tool: true,
        }
    }
}

/// Which ids of calls a server takes: those of another vendor may be in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallIds {
    /// Any; for Claude at most 64 letters, digits, `_` and `-`.
    Any,
    /// At most 40 letters, digits, `_` and `-` (OpenAI).
    UpTo40,
    /// Exactly nine letters and digits (Mistral).
    Exactly9,
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
}

impl Protocol {
    /// The request as a server of this protocol takes it.
    ///
    /// # Errors
    /// The server has no way for what is asked.
    pub(crate) fn request(
        self,
        request: &ChatRequest,
        target: &Target,
    ) -> Result<Outgoing, ProviderError> {
        match self {
            Self::Chat => chat::request(request, target),
            Self::Responses => responses::request(request, target),
            Self::Anthropic => anthropic::request(request, target),
            Self::Gemini => gemini::request(request, target),
        }
    }

    /// Reads the answer.
    pub(crate) fn decoder(self, target: &Target) -> Box<dyn Decoder> {
        match self {
            Self::Chat => chat::decoder(target),
            Self::Responses => responses::decoder(target),
            Self::Anthropic => anthropic::decoder(target),
            Self::Gemini => gemini::decoder(target),
        }
    }

    /// Headers that a question for the list of models needs.
    pub(crate) fn list_headers(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Anthropic => vec![("anthropic-version", "2023-06-01".to_owned())],
            Self::Chat | Self::Responses | Self::Gemini => Vec::new(),
        }
    }
}

/// How a server is told how much to reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffortField {
    /// `reasoning_effort: "low"`.
    ReasoningEffort,
    /// `reasoning: { effort: "low" }` (OpenRouter).
    Reasoning,
    /// `thinking: { type: "enabled" }`, or `disabled` for the least effort.
    Thinking,
    /// `enable_thinking: true` (DashScope), or `false` for the least effort.
    EnableThinking,
    /// There is no such field.
    None,
}

/// When reasoning without a signature goes back to the server it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningBack {
    /// Never: the server refuses or ignores it.
    Never,
    /// With answers that called tools; servers of thinking models refuse them without it.
    WithCalls,
    /// With every answer.
    Always,
}

/// What a server has for the shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A JSON schema that the answer is held to.
    Schema,
    /// JSON of any shape; the schema is told to the model in words.
    Json,
    /// Nothing: such a request is refused.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "no server of the table is so poor; the wires know what to do"
        )
    )]
    None,
}

/// A request as a server takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Behind the base URL, without a slash at its start: `chat/completions`.
    pub(crate) path: String,
    /// Headers of the protocol besides authentication and content type.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The JSON body as text: a vendor's own item stays byte for byte what it was, which it
    /// would not in a `Value` (order of keys, numbers).
    pub(crate) body: String,
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
    fn frame(
        &mut self,
        frame: Frame<'_>,
        events: &mut VecDeque<ChatEvent>,
    ) -> Result<(), ProviderError>;

    /// Takes the body of a server that answered with JSON in place of a stream: an error of its
    /// kind, or a whole answer that ends with `Done`.
    ///
    /// # Errors
    /// The body says that the answer failed, or is none.
    fn body(&mut self, body: &str, events: &mut VecDeque<ChatEvent>) -> Result<(), ProviderError>;

    /// The stream ended. Gives `Done` where the protocol's end mark was seen before.
    ///
    /// # Errors
    /// `Network`: the end mark is missing, the answer is torn.
    fn end(&mut self, events: &mut VecDeque<ChatEvent>) -> Result<(), ProviderError>;

    /// Whether all of the answer was seen and only figures may follow: what is left is waited
    /// for a short while only, then [`end`](Self::end) is called.
    fn is_over(&self) -> bool {
        false
    }

    /// The body that goes on with a paused answer ([`stop::Ending::Paused`]); `sent` is the body
    /// whose answer is being read. Asked for after each frame and after a body, taken once: the
    /// frames of its answer come to this decoder, nothing more of the old answer does, and
    /// `Done` was not given before. How often an answer may be paused is limited by the decoder.
    fn continuation(&mut self, _sent: &str) -> Option<String> {
        None
    }
}

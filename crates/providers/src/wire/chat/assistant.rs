//! An answer of the model on its way back.

use serde_json::json;
use youyou_agent::{AssistantMessage, AssistantPart, ProviderError};

use super::WIRE;
use super::request::call_id;
use super::thoughts::PLAIN;
use crate::wire::body::{self, Piece, quoted};
use crate::wire::json::{self, Fields};
use crate::wire::origin::{Origin, Seen};
use crate::wire::{ReasoningBack, Target, names};

/// Collects one or more answers in a row into one message.
pub(super) struct Answer<'a> {
    target: &'a Target,
    origin: Origin,
    content: Vec<Chunk>,
    calls: Vec<String>,
    /// Fields beside content and calls, each with its values as they came.
    fields: Vec<(String, Vec<String>)>,
}

/// A piece of the content.
enum Chunk {
    Text(String),
    /// A chunk of the vendor's own.
    Own(String),
}

impl<'a> Answer<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        Self {
            target,
            origin: Origin::new(WIRE, target),
            content: Vec::new(),
            calls: Vec::new(),
            fields: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, message: &AssistantMessage) {
        let is_call = |part: &AssistantPart| matches!(part, AssistantPart::ToolCall { .. });
        let takes_plain = match self.target.quirks.reasoning_back {
            ReasoningBack::Never => false,
            ReasoningBack::WithCalls => message.parts.iter().any(is_call),
            ReasoningBack::Always => true,
        };
        for part in &message.parts {
            self.part(part, takes_plain);
        }
    }

    fn part(&mut self, part: &AssistantPart, takes_plain: bool) {
        match part {
            AssistantPart::Text { text, .. } => self.content.push(Chunk::Text(text.to_string())),
            AssistantPart::Reasoning {
                text,
                provider_data,
            } => {
                if let Some(back) = self.origin.back(provider_data.as_ref(), Seen::Text(text)) {
                    self.reasoning(&back.item, takes_plain);
                }
            }
            AssistantPart::ToolCall {
                call_id: id,
                tool_name,
                arguments,
                provider_data,
            } => {
                let seen = Seen::Call {
                    id: None,
                    name: tool_name,
                    arguments,
                };
                let id = call_id(self.target, id);
                let call = match self.origin.back(provider_data.as_ref(), seen) {
                    Some(back) => body::with_fields(&back.item, &[("id", quoted(&id))]),
                    None => json!({
                        "id": id,
                        "type": "function",
                        "function": { "name": names::tool_name(tool_name), "arguments": arguments.to_string() },
                    })
                    .to_string(),
                };
                self.calls.push(call);
            }
            _ => {}
        }
    }

    /// What goes back of reasoning: fields of the message, or a place in its content.
    fn reasoning(&mut self, item: &str, takes_plain: bool) {
        let fields = Fields::parse(item).unwrap_or_default();
        for (name, value) in fields.iter() {
            let is_plain = name == "content" || PLAIN.contains(&name);
            if is_plain && !takes_plain {
                continue;
            }
            if name == "content" {
                match json::text(value) {
                    Some(text) => self.content.push(Chunk::Text(text.into_owned())),
                    None => {
                        let chunks = json::items(value).into_iter();
                        self.content
                            .extend(chunks.map(|chunk| Chunk::Own(chunk.get().to_owned())));
                    }
                }
                continue;
            }
            match self.fields.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(value.get().to_owned()),
                None => self
                    .fields
                    .push((name.to_owned(), vec![value.get().to_owned()])),
            }
        }
    }

    /// The message; `None` where there is nothing that a server would take.
    ///
    /// # Errors
    /// `InvalidRequest`: a value cannot be written as JSON.
    pub(super) fn into_message(self) -> Result<Option<Piece>, ProviderError> {
        if self.content.is_empty() && self.calls.is_empty() {
            return Ok(None);
        }
        let mut fields = vec![("role".to_owned(), quoted("assistant"))];
        fields.push(("content".to_owned(), content(&self.content)));
        if !self.calls.is_empty() {
            fields.push((
                "tool_calls".to_owned(),
                format!("[{}]", self.calls.join(",")),
            ));
        }
        let kept = self
            .fields
            .iter()
            .map(|(name, values)| (name.clone(), joined(values)));
        fields.extend(kept);
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{}:{value}", quoted(name)))
            .collect();
        body::kept(format!("{{{}}}", fields.join(","))).map(Some)
    }
}

fn content(chunks: &[Chunk]) -> String {
    if chunks.is_empty() {
        return "null".to_owned();
    }
    let is_text = |chunk: &Chunk| matches!(chunk, Chunk::Text(_));
    if chunks.iter().all(is_text) {
        let texts = chunks.iter().map(|chunk| match chunk {
            Chunk::Text(text) | Chunk::Own(text) => text.as_str(),
        });
        return quoted(&texts.collect::<String>());
    }
    let chunks = chunks.iter().map(|chunk| match chunk {
        Chunk::Text(text) => format!(r#"{{"type":"text","text":{}}}"#, quoted(text)),
        Chunk::Own(own) => own.clone(),
    });
    format!("[{}]", chunks.collect::<Vec<_>>().join(","))
}

/// The values of one field over all blocks of reasoning: lists and texts go on, of anything
/// else the last counts.
fn joined(values: &[String]) -> String {
    if let [only] = values {
        return only.clone();
    }
    let inner = |open: char, close: char| -> Option<Vec<&str>> {
        values
            .iter()
            .map(|value| value.strip_prefix(open)?.strip_suffix(close))
            .collect()
    };
    if let Some(lists) = inner('[', ']') {
        return format!("[{}]", lists.join(","));
    }
    if let Some(texts) = inner('"', '"') {
        return format!("\"{}\"", texts.concat());
    }
    values.last().cloned().unwrap_or_default()
}

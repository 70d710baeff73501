//! A content block while it arrives.

use crate::wire::body::{quoted, with_fields};
use crate::wire::flow::{Call, Events, Flow, Kind};
use crate::wire::json::{Fields, text};

use super::request::tool_use;

/// A content block while it arrives.
#[derive(Debug)]
pub(super) struct Block {
    /// The block as its start told it; some servers tell all of it there.
    start: String,
    content: Content,
    /// Whether its end came.
    pub(super) is_done: bool,
}

#[derive(Debug)]
enum Content {
    Text {
        text: String,
        citations: Vec<String>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// A call of a tool, of ours or of the server's own.
    Call {
        name: String,
        id: String,
        input: String,
        is_ours: bool,
    },
    /// Anything else: it goes back as it came.
    Other,
}

impl Block {
    /// Reads the start of a block.
    pub(super) fn start(start: &str) -> Self {
        let fields = Fields::parse(start).unwrap_or_default();
        let field = |name: &str| fields.text(name).unwrap_or_default().into_owned();
        let kind = field("type");
        let content = match kind.as_str() {
            "text" => Content::Text {
                text: field("text"),
                citations: fields
                    .items("citations")
                    .iter()
                    .map(|citation| citation.get().to_owned())
                    .collect(),
            },
            "thinking" => Content::Thinking {
                text: field("thinking"),
                signature: field("signature"),
            },
            "tool_use" | "server_tool_use" | "mcp_tool_use" => Content::Call {
                name: field("name"),
                id: field("id"),
                input: String::new(),
                is_ours: kind == "tool_use",
            },
            _ => Content::Other,
        };
        Self {
            start: start.to_owned(),
            content,
            is_done: false,
        }
    }

    /// Whether it calls a tool of ours.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.content, Content::Call { is_ours: true, .. })
    }

    /// Shows what came with the start.
    pub(super) fn show(&self, flow: &mut Flow, events: &mut Events) {
        match &self.content {
            Content::Text { text, .. } => flow.piece(Kind::Text, text, events),
            Content::Thinking { text, .. } => flow.piece(Kind::Reasoning, text, events),
            Content::Call { .. } | Content::Other => {}
        }
    }

    /// Takes a piece.
    pub(super) fn delta(&mut self, delta: &Fields<'_>, flow: &mut Flow, events: &mut Events) {
        match &mut self.content {
            Content::Text { text, citations } => {
                if let Some(piece) = delta.text("text") {
                    text.push_str(&piece);
                    flow.piece(Kind::Text, &piece, events);
                }
                if let Some(citation) = delta.get("citation") {
                    citations.push(citation.get().to_owned());
                }
            }
            Content::Thinking { text, signature } => {
                if let Some(piece) = delta.text("thinking") {
                    text.push_str(&piece);
                    flow.piece(Kind::Reasoning, &piece, events);
                }
                if let Some(piece) = delta.text("signature") {
                    *signature = piece.into_owned();
                }
            }
            Content::Call { input, .. } => {
                if let Some(piece) = delta.get("partial_json") {
                    // Some servers send the object itself.
                    input.push_str(&text(piece).unwrap_or_else(|| piece.get().into()));
                }
            }
            Content::Other => tracing::trace!("a piece of a block that is not read"),
        }
    }

    /// Shows a piece whose block is not known; `false` where that cannot be done.
    pub(super) fn is_loose(delta: &Fields<'_>, flow: &mut Flow, events: &mut Events) -> bool {
        if let Some(piece) = delta.text("text") {
            flow.piece(Kind::Text, &piece, events);
        } else if let Some(piece) = delta.text("thinking") {
            flow.piece(Kind::Reasoning, &piece, events);
        }
        delta.get("partial_json").is_none()
    }

    /// Ends the block. Returns it whole, as it would go back.
    pub(super) fn finish(self, flow: &mut Flow, events: &mut Events) -> Option<String> {
        match self.content {
            Content::Text { text, citations } => {
                let mut fields = vec![("text", quoted(&text))];
                if !citations.is_empty() {
                    fields.push(("citations", format!("[{}]", citations.join(","))));
                }
                let item = with_fields(&self.start, &fields);
                if text.trim().is_empty() {
                    return None;
                }
                if has_more(&item, &["type", "text"]) {
                    flow.close(Kind::Text, text.len(), &item, events);
                }
                Some(item)
            }
            Content::Thinking { text, signature } => {
                let mut fields = vec![("thinking", quoted(&text))];
                if !signature.is_empty() {
                    fields.push(("signature", quoted(&signature)));
                } else if text.is_empty() {
                    return None;
                }
                let item = with_fields(&self.start, &fields);
                flow.close(Kind::Reasoning, text.len(), &item, events);
                Some(item)
            }
            Content::Call {
                name,
                id,
                input,
                is_ours,
            } => {
                let arguments = whole_input(&self.start, input);
                let is_object = serde_json::from_str::<serde_json::Map<_, _>>(&arguments)
                    .is_ok_and(|_: serde_json::Map<String, serde_json::Value>| true);
                let input = if is_object { arguments.trim() } else { "{}" };
                let item = with_fields(&self.start, &[("input", input.to_owned())]);
                if !is_ours {
                    flow.hidden(&item, events);
                    return Some(item);
                }
                // Arguments that are no object have no place in the vendor's own form.
                let is_kept = (is_object || arguments.trim().is_empty())
                    && item != tool_use(&id, &name, input);
                let call = Call {
                    id: Some(id.as_str()).filter(|id| !id.trim().is_empty()),
                    is_id_seen: true,
                    name: &name,
                    arguments,
                    item: is_kept.then_some(&*item),
                };
                flow.call(call, events);
                Some(item)
            }
            Content::Other => {
                flow.hidden(&self.start, events);
                Some(self.start)
            }
        }
    }
}

/// The arguments: the pieces, or what came with the start where there were none.
fn whole_input(start: &str, pieces: String) -> String {
    if !pieces.trim().is_empty() {
        return pieces;
    }
    let fields = Fields::parse(start).unwrap_or_default();
    let Some(input) = fields.get("input") else {
        return pieces;
    };
    match text(input) {
        Some(text) => text.into_owned(),
        // An empty object announces pieces: without them nothing came.
        None if Fields::of(input).is_empty() && input.get().starts_with('{') => pieces,
        None => input.get().to_owned(),
    }
}

/// Whether an item says more than these fields.
fn has_more(item: &str, known: &[&str]) -> bool {
    let fields = Fields::parse(item).unwrap_or_default();
    fields
        .iter()
        .any(|(name, value)| !known.contains(&name) && !matches!(value.get(), "null" | "[]"))
}

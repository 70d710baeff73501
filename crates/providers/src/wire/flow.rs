//! The events of an answer, with an eye on the part that is open.
//!
//! The agent joins neighbouring pieces of text into one part until opaque data closes it. Data
//! must fit the whole part as the agent will store it, so a decoder has to know that part.

use std::collections::VecDeque;

use youyou_agent::ChatEvent;

use super::origin::{Origin, Seen, visible_arguments};

/// Gives events and remembers the part they build.
#[derive(Debug)]
pub(crate) struct Flow {
    origin: Origin,
    /// The open part, empty where none is.
    open: String,
    kind: Kind,
    said: bool,
}

/// What kind of part is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text of the answer.
    Text,
    /// Reasoning.
    Reasoning,
}

/// The events that wait to be taken.
pub(crate) type Events = VecDeque<ChatEvent>;

impl Flow {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            open: String::new(),
            kind: Kind::Text,
            said: false,
        }
    }

    /// Whether any text of the answer came.
    pub(crate) fn has_text(&self) -> bool {
        self.said
    }

    /// A piece of text or reasoning.
    pub(crate) fn piece(&mut self, kind: Kind, piece: &str, events: &mut Events) {
        if piece.is_empty() {
            return;
        }
        if self.kind != kind {
            self.open.clear();
            self.kind = kind;
        }
        self.open.push_str(piece);
        self.said |= kind == Kind::Text;
        events.push_back(match kind {
            Kind::Text => ChatEvent::text(piece),
            Kind::Reasoning => ChatEvent::reasoning(piece),
        });
    }

    /// Closes the open part with the vendor's item, to which its last `own` bytes belong. An
    /// item without any text becomes a part of its own.
    pub(crate) fn close(&mut self, kind: Kind, own: usize, item: &str, events: &mut Events) {
        let open = std::mem::take(&mut self.open);
        let fits = self.kind == kind && own > 0 && own <= open.len();
        if !fits && own > 0 {
            // Something else came in between: the text is there, only its item has no place.
            self.open = open;
            return;
        }
        let text = String::new();
        if fits {
            let skip = open.len() - own;
            let provider_data = self.origin.keep(Seen::Text(&open), skip, item);
            events.push_back(match kind {
                Kind::Text => ChatEvent::TextDelta {
                    text,
                    provider_data,
                },
                Kind::Reasoning => ChatEvent::ReasoningDelta {
                    text,
                    provider_data,
                },
            });
        } else {
            // It closes the reasoning before it, if that is still open.
            let before = if self.kind == Kind::Reasoning {
                open.as_str()
            } else {
                ""
            };
            let seen = Seen::Text(before);
            events.push_back(ChatEvent::ReasoningDelta {
                text,
                provider_data: self.origin.keep(seen, before.len(), item),
            });
        }
    }

    /// An item that has nothing visible: it is handed on in its place.
    pub(crate) fn hidden(&mut self, item: &str, events: &mut Events) {
        self.close(Kind::Reasoning, 0, item, events);
    }

    /// A whole call.
    pub(crate) fn call(&mut self, call: Call<'_>, events: &mut Events) {
        self.open.clear();
        let provider_data = call.item.and_then(|item| {
            let seen = Seen::Call {
                id: call.id.filter(|_| call.is_id_seen),
                name: call.name,
                arguments: &visible_arguments(&call.arguments),
            };
            self.origin.keep(seen, 0, item)
        });
        events.push_back(ChatEvent::ToolCall {
            call_id: call.id.unwrap_or_default().to_owned(),
            tool_name: call.name.to_owned(),
            arguments: call.arguments,
            provider_data,
        });
    }
}

/// A whole call of a tool.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The vendor's id, if it gave one.
    pub(crate) id: Option<&'a str>,
    /// Whether the vendor's item goes back only with this very id.
    pub(crate) is_id_seen: bool,
    pub(crate) name: &'a str,
    /// As the vendor sent them.
    pub(crate) arguments: String,
    /// The vendor's own form, where the wire could not make the same of what is visible.
    pub(crate) item: Option<&'a str>,
}

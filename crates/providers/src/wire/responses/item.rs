//! An output item while it arrives.

use crate::wire::body::{quoted, with_fields};
use crate::wire::flow::{Call, Events, Flow, Kind};
use crate::wire::json::{self, Fields};

/// An output item while it arrives.
#[derive(Debug)]
pub(super) struct Item {
    /// Its place in the output.
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) kind: ItemKind,
    /// Text or reasoning that was shown.
    shown: String,
    /// The part of it that the last piece belonged to.
    part: Option<(bool, u64)>,
    name: String,
    call_id: String,
    arguments: String,
    /// The item as it ended.
    whole: Option<String>,
    pub(super) is_done: bool,
    /// Whether the end of the response named it.
    pub(super) is_claimed: bool,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// Anything else: it goes back as it came.
    Other,
}

impl ItemKind {
    pub(super) fn of(item: &Fields<'_>) -> Self {
        match item.text("type").as_deref() {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            _ => Self::Other,
        }
    }
}

impl Item {
    pub(super) fn new(kind: ItemKind, index: u64, id: &str) -> Self {
        Self {
            index,
            id: id.to_owned(),
            kind,
            shown: String::new(),
            part: None,
            name: String::new(),
            call_id: String::new(),
            arguments: String::new(),
            whole: None,
            is_done: false,
            is_claimed: false,
        }
    }

    /// Takes what a start tells of a call.
    pub(super) fn begin(&mut self, item: &Fields<'_>) {
        let field = |name: &str| item.text(name).unwrap_or_default().into_owned();
        self.name = field("name");
        self.call_id = field("call_id");
    }

    /// A piece of text.
    pub(super) fn text(&mut self, piece: &str, flow: &mut Flow, events: &mut Events) {
        self.shown.push_str(piece);
        flow.piece(Kind::Text, piece, events);
    }

    /// A piece of reasoning or of its summary, from the part with this number.
    pub(super) fn reasoning(
        &mut self,
        part: (bool, u64),
        piece: &str,
        flow: &mut Flow,
        events: &mut Events,
    ) {
        let begins = self.part.replace(part).is_some_and(|last| last != part);
        if begins && !self.shown.is_empty() {
            self.show_reasoning("\n\n", flow, events);
        }
        self.show_reasoning(piece, flow, events);
    }

    fn show_reasoning(&mut self, piece: &str, flow: &mut Flow, events: &mut Events) {
        self.shown.push_str(piece);
        flow.piece(Kind::Reasoning, piece, events);
    }

    /// A piece of the arguments.
    pub(super) fn arguments(&mut self, piece: &str) {
        self.arguments.push_str(piece);
    }

    /// All of the arguments.
    pub(super) fn all_arguments(&mut self, arguments: &str) {
        if !arguments.is_empty() {
            arguments.clone_into(&mut self.arguments);
        }
    }

    /// Takes the whole item. Returns whether it holds a refusal.
    pub(super) fn end(&mut self, whole: &str, flow: &mut Flow, events: &mut Events) -> bool {
        self.is_done = true;
        let item = Fields::parse(whole).unwrap_or_default();
        match self.kind {
            ItemKind::Message => {
                let texts = texts(&item, "content");
                let rest = rest(&texts.concat(), &self.shown).to_owned();
                self.text(&rest, flow, events);
                if !self.shown.is_empty() {
                    flow.close(Kind::Text, self.shown.len(), whole, events);
                }
                return item
                    .items("content")
                    .iter()
                    .any(|part| Fields::of(part).text("type").as_deref() == Some("refusal"));
            }
            ItemKind::Reasoning => {
                let all = [texts(&item, "summary"), texts(&item, "content")].concat();
                let rest = rest(&all.join("\n\n"), &self.shown).to_owned();
                self.show_reasoning(&rest, flow, events);
                flow.close(Kind::Reasoning, self.shown.len(), whole, events);
            }
            ItemKind::Call => {
                let arguments = item.get("arguments").map(|arguments| {
                    json::text(arguments).unwrap_or_else(|| arguments.get().into())
                });
                let mut whole = whole.to_owned();
                match arguments.filter(|arguments| !arguments.trim().is_empty()) {
                    Some(arguments) => arguments.into_owned().clone_into(&mut self.arguments),
                    None if self.arguments.is_empty() => {}
                    // The pieces came, and the end does not repeat them.
                    None => {
                        whole = with_fields(&whole, &[("arguments", quoted(&self.arguments))]);
                    }
                }
                let field = |name: &str, known: &str| {
                    let field = item.text(name).filter(|text| !text.is_empty());
                    field.map_or_else(|| known.to_owned(), Into::into)
                };
                self.name = field("name", &self.name);
                self.call_id = field("call_id", &self.call_id);
                self.whole = Some(whole);
            }
            ItemKind::Other => flow.hidden(whole, events),
        }
        false
    }

    /// Gives the call.
    pub(super) fn call(&mut self, flow: &mut Flow, events: &mut Events) {
        let id = [&self.call_id, &self.id]
            .into_iter()
            .find(|id| !id.trim().is_empty());
        let call = Call {
            id: id.map(String::as_str),
            is_id_seen: true,
            name: &self.name,
            arguments: std::mem::take(&mut self.arguments),
            item: self.whole.as_deref(),
        };
        flow.call(call, events);
    }
}

/// The texts in the parts of an item.
fn texts(item: &Fields<'_>, field: &str) -> Vec<String> {
    let parts = item.items(field);
    let parts = parts.iter().filter_map(|part| {
        let part = Fields::of(part);
        part.text("text").or_else(|| part.text("refusal"))
    });
    parts.map(Into::into).collect()
}

/// What is left to show of a text. What was shown cannot be taken back, so a text that goes
/// on in another way adds nothing.
fn rest<'a>(whole: &'a str, shown: &str) -> &'a str {
    whole.strip_prefix(shown).unwrap_or_default()
}

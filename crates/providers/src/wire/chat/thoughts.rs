//! The reasoning of an answer, with what must go back of it.
//!
//! There are as many fields for it as vendors. Whatever came goes back in the field it came in:
//! plain text (`reasoning_content` and its like), OpenRouter's `reasoning_details`, LiteLLM's
//! `thinking_blocks`, the `extra_content` of Google, `<think>` and Mistral's chunks in the text.

use serde_json::value::RawValue;

use crate::wire::body::quoted;
use crate::wire::json::{self, Fields};

/// The fields of plain reasoning. A server that sends two of them says the same in both.
pub(super) const PLAIN: &[&str] = &["reasoning_content", "reasoning", "reasoning_text"];

/// Fields of a message that go back as they came. Only their servers know what is in them.
pub(super) const OPAQUE: &[&str] = &["extra_content", "thought_signature"];

/// Where the text of the reasoning came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A field of the message.
    Field(&'static str),
    /// Tags in the text.
    Tags(&'static str, &'static str),
    /// Chunks of the content (Mistral).
    Chunks,
}

/// One block of reasoning, while it comes.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    source: Option<Source>,
    text: String,
    details: Vec<Block>,
    blocks: Vec<Block>,
    opaque: Vec<(&'static str, String)>,
}

impl Thoughts {
    pub(super) fn is_empty(&self) -> bool {
        self.source.is_none()
            && self.details.is_empty()
            && self.blocks.is_empty()
            && self.opaque.is_empty()
    }

    /// How many bytes of visible text belong to it.
    pub(super) fn shown(&self) -> usize {
        self.text.len()
    }

    pub(super) fn say(&mut self, source: Source, text: &str) {
        self.source.get_or_insert(source);
        self.text.push_str(text);
    }

    /// Text that is shown and goes back in a signed block only.
    pub(super) fn show(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn detail(&mut self, detail: &RawValue) {
        add(&mut self.details, detail, &["text", "summary"]);
    }

    pub(super) fn block(&mut self, block: &RawValue) {
        add(&mut self.blocks, block, &["thinking"]);
    }

    pub(super) fn opaque(&mut self, field: &'static str, value: &RawValue) {
        self.opaque.retain(|(known, _)| *known != field);
        self.opaque.push((field, value.get().to_owned()));
    }

    /// The fields of a message that bring all of it back, as a JSON object.
    pub(super) fn item(&self) -> String {
        let mut fields = Vec::new();
        let is_signed = !self.details.is_empty() || !self.blocks.is_empty();
        match self.source {
            // The text is in the signed blocks already.
            Some(Source::Field(name)) if !is_signed => {
                fields.push(format!("{}:{}", quoted(name), quoted(&self.text)));
            }
            Some(Source::Tags(open, close)) => {
                let text = format!("{open}\n{}\n{close}\n\n", self.text);
                fields.push(format!("\"content\":{}", quoted(&text)));
            }
            Some(Source::Chunks) => fields.push(format!(
                r#""content":[{{"type":"thinking","thinking":[{{"type":"text","text":{}}}]}}]"#,
                quoted(&self.text)
            )),
            Some(Source::Field(_)) | None => {}
        }
        for (name, blocks) in [
            ("reasoning_details", &self.details),
            ("thinking_blocks", &self.blocks),
        ] {
            if !blocks.is_empty() {
                let blocks: Vec<String> = blocks.iter().map(Block::json).collect();
                fields.push(format!("\"{name}\":[{}]", blocks.join(",")));
            }
        }
        let opaque = self
            .opaque
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        fields.extend(opaque);
        format!("{{{}}}", fields.join(","))
    }
}

/// The text that a block shows.
pub(super) fn text_of<'a>(
    block: &'a RawValue,
    names: &[&str],
) -> Option<std::borrow::Cow<'a, str>> {
    let fields = Fields::of(block);
    names
        .iter()
        .find_map(|name| fields.text(name))
        .filter(|text| !text.is_empty())
}

/// A signed block. It is the server's own text until another piece of it comes.
#[derive(Debug)]
enum Block {
    Own(String),
    Joined {
        /// Each field but the text, as JSON.
        fields: Vec<(String, String)>,
        name: &'static str,
        text: String,
    },
}

impl Block {
    fn json(&self) -> String {
        match self {
            Self::Own(json) => json.clone(),
            Self::Joined { fields, name, text } => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", quoted(name)));
                let text = format!("{}:{}", quoted(name), quoted(text));
                let all: Vec<String> = fields.chain([text]).collect();
                format!("{{{}}}", all.join(","))
            }
        }
    }

    /// As fields and text, if it is a block with one of these texts.
    fn parts(&self, names: &[&'static str]) -> Option<Joined> {
        match self {
            Self::Own(json) => Joined::of(&Fields::parse(json).ok()?, names),
            Self::Joined { .. } => None,
        }
    }
}

struct Joined {
    fields: Vec<(String, String)>,
    name: &'static str,
    text: String,
}

impl Joined {
    fn of(fields: &Fields<'_>, names: &[&'static str]) -> Option<Self> {
        let name = names.iter().find(|name| fields.text(name).is_some());
        // A piece that brings the signature alone has no text.
        let name = name.or(names.first())?;
        let others = fields
            .iter()
            .filter(|(key, value)| key != name && value.get() != "null");
        Some(Self {
            fields: others
                .map(|(key, value)| (key.to_owned(), value.get().to_owned()))
                .collect(),
            name,
            text: fields.text(name).unwrap_or_default().into_owned(),
        })
    }
}

/// Adds a piece to the block that it goes on with, or as a block of its own.
fn add(blocks: &mut Vec<Block>, piece: &RawValue, names: &[&'static str]) {
    if let Some(last) = blocks.last_mut()
        && let Some(new) = Joined::of(&Fields::of(piece), names)
        && is_of_pieces(&new.fields)
    {
        if let Some(Joined { fields, name, text }) =
            last.parts(names).filter(|old| goes_on(&old.fields, &new))
        {
            *last = Block::Joined { fields, name, text };
        }
        if let Block::Joined { fields, text, .. } = last
            && goes_on(fields, &new)
        {
            text.push_str(&new.text);
            fields.retain(|(key, _)| new.fields.iter().all(|(other, _)| other != key));
            fields.extend(new.fields);
            return;
        }
    }
    blocks.push(Block::Own(piece.get().to_owned()));
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// Encrypted and redacted blocks come whole.
fn is_of_pieces(fields: &[(String, String)]) -> bool {
    field(fields, "data").is_none()
}

/// Whether a piece is of the same block: same kind, same number, and the block is not signed.
fn goes_on(old: &[(String, String)], new: &Joined) -> bool {
    let is_same = |name: &str| match (field(old, name), field(&new.fields, name)) {
        (Some(old), Some(new)) => old == new,
        _ => true,
    };
    is_of_pieces(old)
        && field(old, "type") == field(&new.fields, "type")
        && is_same("index")
        && is_same("id")
        && field(old, "signature").is_none_or(|signature| signature == "\"\"")
}

/// The text and the thoughts of a content that is a list of chunks, each with whether it is a
/// thought.
pub(super) fn chunks(content: &RawValue) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for chunk in json::items(content) {
        let fields = Fields::of(chunk);
        if let Some(text) = json::text(chunk).or_else(|| fields.text("text")) {
            found.push((false, text.into_owned()));
        } else if let Some(thinking) = fields.get("thinking") {
            match json::text(thinking) {
                Some(text) => found.push((true, text.into_owned())),
                None => {
                    let texts = json::items(thinking).into_iter();
                    found.extend(texts.filter_map(|text| {
                        Some((true, Fields::of(text).text("text")?.into_owned()))
                    }));
                }
            }
        }
    }
    found
}

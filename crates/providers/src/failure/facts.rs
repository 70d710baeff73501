//! What the error bodies of servers say, whatever their shape and however often wrapped.

use serde_json::Value;

use super::table::{self, Meaning};
use super::wait;

/// How many wrappers are opened.
const DEPTH: usize = 5;
/// How much of a server's words is shown, in characters.
const SHOWN: usize = 300;

/// What an error body says.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// From the innermost error to the outermost.
    levels: Vec<Level>,
    said: String,
}

/// One of the errors that are put into each other.
#[derive(Debug, Default)]
struct Level {
    codes: Vec<String>,
    message: String,
    wait: Option<u64>,
}

impl Facts {
    pub(super) fn of(body: &str) -> Self {
        let mut levels = Vec::new();
        match serde_json::from_str::<Value>(body) {
            Ok(value) => open(&value, DEPTH, &mut levels),
            Err(_) if is_page(body) => {}
            Err(_) => open_text(body, DEPTH, &mut levels),
        }
        let said = levels
            .iter()
            .map(|level| level.message.as_str())
            .find(|said| !said.is_empty());
        let said = first_words(said.unwrap_or_default());
        Self { levels, said }
    }

    /// The innermost words, on one line; empty where there are none.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// What the codes mean, or else the words; the innermost that says more than that
    /// something is wrong.
    pub(super) fn meaning(&self) -> Option<Meaning> {
        let mut vague = None;
        for level in &self.levels {
            let meaning = table::by_words(table::by_codes(&level.codes), &level.message);
            match meaning {
                Some(meaning) if !meaning.is_vague() => return Some(meaning),
                _ => vague = vague.or(meaning),
            }
        }
        vague
    }

    /// The wait that the body asks for, in milliseconds.
    pub(super) fn wait(&self) -> Option<u64> {
        self.levels.iter().find_map(|level| level.wait)
    }

    /// Whether the words are about a model, and not about a path.
    pub(super) fn names(&self, model: &str) -> bool {
        self.levels.iter().any(|level| {
            level.message.to_lowercase().contains("model") || level.message.contains(model)
        })
    }
}

/// Takes an error out of what wraps it; the innermost comes first.
fn open(value: &Value, depth: usize, levels: &mut Vec<Level>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::String(text) => open_text(text, depth, levels),
        // A list of errors: the first one counts (Gemini in OpenAI's form, FastAPI).
        Value::Array(list) => {
            if let Some(first) = list.first() {
                open(first, depth, levels);
            }
        }
        Value::Object(_) => open_object(value, depth, levels),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where an error has another one in it.
const INNER: &[&str] = &[
    "/metadata/raw", // OpenRouter
    "/error",
    "/errors",
    "/response/error",  // OpenAI Responses
    "/detail",          // FastAPI
    "/innererror",      // Azure
    "/choices/0/error", // OpenRouter, in a stream
];

/// Where the words of an error are.
const MESSAGES: &[&str] = &[
    "/message",
    "/msg",
    "/error_message",
    "/error_msg",
    "/errorMessage",
    "/Message",
    "/base_resp/status_msg", // MiniMax
    "/title",
    "/reason",
];

/// Where the codes of an error are.
const CODES: &[&str] = &[
    "/code",
    "/type",
    "/status",
    "/error_code",
    "/errorCode",
    "/status_code",
    "/base_resp/status_code", // MiniMax
    "/__type",                // AWS
];

fn open_object(value: &Value, depth: usize, levels: &mut Vec<Level>) {
    for place in INNER {
        if let Some(inner) = value.pointer(place).filter(|inner| !inner.is_null()) {
            open(inner, depth, levels);
        }
    }
    let message = MESSAGES
        .iter()
        .find_map(|place| value.pointer(place).filter(|found| !found.is_null()));
    let message = match message {
        Some(Value::String(text)) => {
            open_wrapped(text, depth, levels);
            text.clone()
        }
        // Some put the whole error where its words belong.
        Some(inner @ (Value::Object(_) | Value::Array(_))) => {
            open(inner, depth, levels);
            String::new()
        }
        _ => String::new(),
    };
    let mut codes: Vec<String> = CODES
        .iter()
        .filter_map(|place| word(value.pointer(place)?))
        .collect();
    let details = value.get("details").and_then(Value::as_array);
    let details = details.map(Vec::as_slice).unwrap_or_default();
    // Gemini's own code for a wrong key is in the details only.
    codes.extend(
        details
            .iter()
            .filter_map(|detail| word(detail.get("reason")?)),
    );
    let wait = details
        .iter()
        .find_map(|detail| wait::in_words(detail.get("retryDelay")?.as_str()?))
        .or_else(|| wait::after_phrase(&message));
    levels.push(Level {
        codes,
        message,
        wait,
    });
}

fn open_text(text: &str, depth: usize, levels: &mut Vec<Level>) {
    open_wrapped(text, depth, levels);
    levels.push(Level {
        codes: Vec::new(),
        message: text.to_owned(),
        wait: wait::after_phrase(text),
    });
}

/// Some gateways write the JSON of the server behind them into their own words (LiteLLM).
fn open_wrapped(text: &str, depth: usize, levels: &mut Vec<Level>) {
    let Some((start, end)) = text.find('{').zip(text.rfind('}')) else {
        return;
    };
    let inner = text
        .get(start..=end)
        .and_then(|json| serde_json::from_str::<Value>(json).ok());
    if let Some(inner) = inner {
        open(&inner, depth, levels);
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether a body is a page for people, whose words say nothing.
pub(super) fn is_page(body: &str) -> bool {
    body.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
}

/// The start of a text, on one line.
pub(super) fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

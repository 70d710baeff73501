//! How long a piece of text may be on its way to a page, and what an event takes in memory.

use serde_json::Value;

use crate::agent::event::AgentEventKind;

/// Longest text of one delta, in bytes of JSON. With its envelope such an event stays below
/// 8,192 bytes of JSON; above that Tauri takes a slower way, on which later events wait.
pub(crate) const PART_JSON_BYTES: usize = 7_168;

/// Bytes that a byte of a text becomes at most.
const LONGEST_ESCAPE: usize = 6;

/// Bytes the text takes inside a JSON string.
pub(crate) fn json_bytes(text: &str) -> usize {
    text.bytes().map(escaped).sum()
}

/// Cuts a text so that no part exceeds [`PART_JSON_BYTES`].
pub(super) fn parts_of(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        // Most deltas are short enough however they are escaped.
        let end = if text.len() <= PART_JSON_BYTES / LONGEST_ESCAPE {
            text.len()
        } else {
            let mut bytes = 0;
            let fitting = text.bytes().take_while(|byte| {
                bytes += escaped(*byte);
                bytes <= PART_JSON_BYTES
            });
            text.floor_char_boundary(fitting.count())
        };
        let (part, rest) = text.split_at(end);
        text = rest;
        Some(part)
    })
}

fn escaped(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        byte if byte < b' ' => LONGEST_ESCAPE,
        _ => 1,
    }
}

/// What an event takes beside its own struct, roughly, in bytes.
pub(super) fn event_bytes(kind: &AgentEventKind) -> usize {
    match kind {
        AgentEventKind::ToolCallStart { arguments, .. } => value_bytes(arguments, DEEPEST),
        AgentEventKind::ToolProgress { message, .. } | AgentEventKind::Warning { message, .. } => {
            message.capacity()
        }
        AgentEventKind::ToolCallEnd {
            output, metadata, ..
        } => {
            let metadata = metadata.as_deref();
            output.len() + metadata.map_or(0, |value| value_bytes(value, DEEPEST))
        }
        AgentEventKind::TurnComplete {
            assistant_output, ..
        } => assistant_output.len(),
        AgentEventKind::Error { error } | AgentEventKind::ProviderRetry { error, .. } => {
            let details = error.details.as_ref();
            error.message.capacity() + details.map_or(0, |value| value_bytes(value, DEEPEST))
        }
        _ => 0,
    }
}

/// What lies deeper in a value is not counted: serde_json reads no deeper ones.
const DEEPEST: usize = 128;

fn value_bytes(value: &Value, deeper: usize) -> usize {
    let Some(deeper) = deeper.checked_sub(1) else {
        return 0;
    };
    let inside = match value {
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(|item| value_bytes(item, deeper)).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| size_of::<String>() + name.capacity() + value_bytes(value, deeper))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

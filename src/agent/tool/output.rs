//! What a tool's output looks like when it enters the context: clean and not too long.

use std::borrow::Cow;

/// Makes an output fit to be stored and sent: control characters become U+FFFD, and above
/// `limit` bytes the middle is cut out.
pub(crate) fn admitted(output: String, limit: usize) -> String {
    let clean = without_control_characters(output);
    match head_and_tail(&clean, limit) {
        Cow::Borrowed(_) => clean,
        Cow::Owned(cut) => cut,
    }
}

/// Replaces NUL and the other C0 characters except tab, line feed and carriage return.
pub(crate) fn without_control_characters(text: String) -> String {
    let bad = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    if text.contains(bad) {
        text.replace(bad, "\u{fffd}")
    } else {
        text
    }
}

/// Keeps the start and the end of a text that is longer than `limit` bytes, together at most
/// `limit` bytes, with a notice at the cut and one at the end.
pub(crate) fn head_and_tail(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let (head, _) = text.split_at(text.floor_char_boundary(limit.div_ceil(2)));
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len() - limit / 2));
    let size = text.len();
    let left_out = size - head.len() - tail.len();
    Cow::Owned(format!(
        "{head}\n[... {left_out} of {size} bytes left out ...]\n{tail}\n[Output truncated: {size} bytes, limit {limit} bytes]"
    ))
}

/// A text shortened for a message or a log line, at most `chars` characters.
pub(crate) fn excerpt(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

//! Cutting and cleaning text: for messages, titles, outputs and logs.

use std::borrow::Cow;

/// Replaces NUL and the other C0 characters except tab, line feed and carriage return.
pub(crate) fn without_control_characters(text: String) -> String {
    if text.contains(is_bad_control) {
        text.replace(is_bad_control, "\u{fffd}")
    } else {
        text
    }
}

/// NUL and the other C0 characters except tab, line feed and carriage return.
pub(crate) fn is_bad_control(c: char) -> bool {
    c < ' ' && !matches!(c, '\t' | '\n' | '\r')
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
    Cow::Owned(with_cut(head, tail, left_out, size, limit))
}

/// A start and an end with the notices that tell what is missing between them.
pub(crate) fn with_cut(
    head: &str,
    tail: &str,
    left_out: usize,
    size: usize,
    limit: usize,
) -> String {
    format!(
        "{head}\n[... {left_out} of {size} bytes left out ...]\n{tail}\n[Output truncated: {size} bytes, limit {limit} bytes]"
    )
}

/// A text shortened to at most `chars` characters and a sign that something is missing.
pub(crate) fn excerpt(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

/// The words of a text in one line, without control characters and without the characters
/// that change the direction of writing, which can make a title look like another.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: &char| c.is_whitespace() || !(c.is_control() || changes_direction(*c));
    let clean: String = text.chars().filter(shown).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ")
}

/// A line of at most `chars` characters; a cut one ends with `…`, which counts.
pub(crate) fn short_line(text: &str, chars: usize) -> String {
    // No more is looked at than a line of that length can come from, but for blanks.
    let line = one_line(
        text.get(..text.floor_char_boundary(64 * 1024))
            .unwrap_or(text),
    );
    match line.char_indices().nth(chars) {
        None => line,
        Some(_) => {
            let kept: String = line.chars().take(chars.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_and_no_direction_characters() {
        assert_eq!(one_line(" a\u{202e}b\u{7}\r\n\tc\u{2066} "), "ab c");
        assert_eq!(one_line("\u{200f}\u{0}"), "");
    }

    #[test]
    fn a_cut_line_says_so_within_its_length() {
        assert_eq!(short_line("four", 4), "four");
        assert_eq!(short_line("fives", 4), "fiv…");
        assert_eq!(short_line("ab cd", 4), "ab…");
    }
}

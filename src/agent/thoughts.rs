//! The thoughts that some models write into their text, between tags.

use std::borrow::Cow;

/// Names of the tags, in any case.
const NAMES: [&str; 3] = ["think", "thinking", "thought"];
/// What is in front of a tag that is only mentioned.
const QUOTES: [char; 3] = ['`', '"', '\''];
const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// A tag in a text.
struct Tag {
    /// Where it begins and ends, in bytes.
    start: usize,
    end: usize,
    /// Index in [`NAMES`].
    name: usize,
    closes: bool,
}

/// A text without the thoughts of the model that wrote it. Takes linear time.
///
/// - A block `<think> ... </think>` is left out, wherever it stands.
/// - A block that is not closed reaches to the end, if it begins a line.
/// - A closing tag that nothing was opened for, at either end of its line or right before JSON,
///   ends thoughts that began with the answer: many chat templates put the opening tag into the
///   request.
/// - A tag behind a quote or a backtick is only mentioned, and stays.
pub(crate) fn without_thoughts(text: &str) -> Cow<'_, str> {
    let tags: Vec<Tag> = text
        .match_indices('<')
        .filter_map(|(start, _)| tag_at(text, start))
        .collect();
    if tags.is_empty() {
        return Cow::Borrowed(text);
    }
    let last_closing: Vec<Option<usize>> = (0..NAMES.len())
        .map(|name| {
            let mut closing = tags.iter().filter(|tag| tag.closes && tag.name == name);
            closing.next_back().map(|tag| tag.start)
        })
        .collect();
    let mut kept = String::new();
    // Where the next piece that is kept begins.
    let mut from = 0;
    let mut inside = None;
    let mut any_block = false;
    for tag in &tags {
        match inside {
            Some(name) if tag.closes && tag.name == name => {
                inside = None;
                from = tag.end;
            }
            Some(_) => {}
            None if tag.closes => {
                if !any_block && ends_thoughts(text, tag) {
                    any_block = true;
                    from = tag.end;
                }
            }
            None => {
                let last_closing = last_closing.get(tag.name).copied().flatten();
                let is_closed = last_closing.is_some_and(|closing| closing > tag.start);
                if is_closed || begins_line(text, from, tag) {
                    kept.push_str(text.get(from..tag.start).unwrap_or_default());
                    inside = Some(tag.name);
                    any_block = true;
                }
            }
        }
    }
    if inside.is_none() {
        kept.push_str(text.get(from..).unwrap_or_default());
    }
    Cow::Owned(kept)
}

fn tag_at(text: &str, start: usize) -> Option<Tag> {
    if text.get(..start)?.ends_with(QUOTES) {
        return None;
    }
    let inner = text.get(start + 1..)?;
    let name_start = if inner.starts_with('/') {
        start + 2
    } else {
        start + 1
    };
    let rest = text.get(name_start..)?;
    let name = NAMES.iter().position(|name| {
        let of_its_length = rest.get(..name.len());
        of_its_length.is_some_and(|found| found.eq_ignore_ascii_case(name))
            && rest
                .get(name.len()..)
                .is_some_and(|rest| rest.starts_with('>'))
    })?;
    Some(Tag {
        start,
        end: name_start + NAMES.get(name)?.len() + 1,
        name,
        closes: name_start == start + 2,
    })
}

/// Whether nothing but blanks is in front of a tag in its line, or since the last block.
fn begins_line(text: &str, from: usize, tag: &Tag) -> bool {
    let before = text.get(from..tag.start).unwrap_or_default();
    let before = before.trim_end_matches(BLANKS);
    before.is_empty() || before.ends_with('\n')
}

fn ends_thoughts(text: &str, tag: &Tag) -> bool {
    let after = text.get(tag.end..).unwrap_or_default();
    let after = after.trim_start_matches(BLANKS);
    after.is_empty() || after.starts_with(['\n', '[', '{']) || begins_line(text, 0, tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_left(cases: &[(&str, &str)]) {
        for (text, left) in cases {
            assert_eq!(without_thoughts(text), *left, "{text}");
        }
    }

    #[test]
    fn blocks_are_left_out_wherever_they_stand() {
        assert_left(&[
            ("<think>x</think>a", "a"),
            ("<think>\nx\n</think>\n\na", "\n\na"),
            ("a<think>x</think>b<thinking>y</thinking>c", "abc"),
            ("<THINK>x</Think>a", "a"),
            ("<think>x <thinking> y</think>a", "a"),
            ("<think></think>", ""),
            ("答<thought>想</thought>案", "答案"),
        ]);
    }

    #[test]
    fn a_block_that_is_not_closed_reaches_to_the_end() {
        assert_left(&[
            ("<think>x", ""),
            ("a\n  <think>x\ny", "a\n  "),
            ("<think>x</think> <think>y", " "),
            ("<think>x</thinking>a", ""),
        ]);
    }

    #[test]
    fn a_closing_tag_alone_ends_thoughts_that_began_with_the_answer() {
        assert_left(&[
            ("x\n</think>\n\na", "\n\na"),
            ("x</think>\na", "\na"),
            ("[]</think>[1]", "[1]"),
            ("x</think>", ""),
        ]);
    }

    #[test]
    fn a_tag_that_is_only_mentioned_stays() {
        for text in [
            "The tags `<think>` and `</think>` are stripped.",
            "asked about <think> in the text",
            "asked about </think> in the text",
            r#"[{"content":"<think> is a tag"}]"#,
            "a < b, <b>bold</b>, <thinker>, <think",
            "",
        ] {
            assert_eq!(without_thoughts(text), text);
        }
    }

    #[test]
    fn any_number_of_tags_takes_linear_time() {
        let tags = "a<think>".repeat(200_000);
        assert_eq!(without_thoughts(&tags), tags);
        let closed = format!("{tags}</think>b");
        assert_eq!(without_thoughts(&closed), "ab");
    }
}

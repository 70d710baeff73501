//! What a tool's output looks like when it enters the context: clean and not too long.

use crate::agent::text::{head_and_tail, is_bad_control, with_cut, without_control_characters};

/// Makes an output fit to be stored and sent: control characters become U+FFFD, and above
/// `limit` bytes the middle is cut out. Only what is kept is cleaned.
pub(crate) fn admitted(output: String, limit: usize) -> String {
    if output.len() > limit {
        let head = kept(output.chars(), limit.div_ceil(2));
        let tail = kept(output.chars().rev(), limit / 2);
        let size = output.len();
        let left_out = size - head - tail;
        let (head, rest) = output.split_at(head);
        let (_, tail) = rest.split_at(left_out);
        let head = without_control_characters(head.to_owned());
        let tail = without_control_characters(tail.to_owned());
        return with_cut(&head, &tail, left_out, size, limit);
    }
    let clean = without_control_characters(output);
    match head_and_tail(&clean, limit) {
        std::borrow::Cow::Borrowed(_) => clean,
        std::borrow::Cow::Owned(cut) => cut,
    }
}

/// How many bytes of these characters take at most `limit` bytes once they are clean.
fn kept(chars: impl Iterator<Item = char>, limit: usize) -> usize {
    let (mut raw, mut clean) = (0, 0);
    for c in chars {
        clean += if is_bad_control(c) {
            '\u{fffd}'.len_utf8()
        } else {
            c.len_utf8()
        };
        if clean > limit {
            break;
        }
        raw += c.len_utf8();
    }
    raw
}

//! How long a piece of text may be, and how long it is, on its way to a page.

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

//! JSON that can be stored and read again: not nested too deep, not too long.
//!
//! A record with a value that its own reader refuses would be lost at the next resume, with
//! everything else in it. So each value is checked where it is made: a model's arguments, a
//! hook's change of them, a tool's metadata.

use std::io;

use serde_json::Value;

/// Levels of arrays and objects within each other. Readers of JSON give up at 128, and a record
/// adds some levels of its own.
pub(crate) const MAX_DEPTH: usize = 64;

/// A value that can be stored, with its size.
#[derive(Debug)]
pub(crate) struct Storable {
    pub(crate) value: Value,
    /// Bytes of its JSON.
    pub(crate) bytes: usize,
}

/// Why a value cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("its JSON is longer than {0} bytes")]
    TooLong(usize),
}

/// Takes a value whose JSON has at most `limit` bytes.
pub(crate) fn admit(value: Value, limit: usize) -> Result<Storable, Refused> {
    if !fits_depth(&value, MAX_DEPTH) {
        dismantle(value);
        return Err(Refused::TooDeep);
    }
    let mut count = Count { bytes: 0, limit };
    match serde_json::to_writer(&mut count, &value) {
        Ok(()) => Ok(Storable {
            value,
            bytes: count.bytes,
        }),
        Err(_) => Err(Refused::TooLong(limit)),
    }
}

/// Whether a text nests at most [`MAX_DEPTH`] levels. It need not be valid JSON.
pub(crate) fn text_fits_depth(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
    }
    true
}

fn fits_depth(value: &Value, left: usize) -> bool {
    let fits = |inner: &Value| left > 1 && fits_depth(inner, left - 1);
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| is_flat(item) || fits(item)),
        Value::Object(members) => {
            left > 0 && members.values().all(|item| is_flat(item) || fits(item))
        }
        _ => true,
    }
}

fn is_flat(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// Drops a value level by level: dropped as usual, a very deep one overflows the stack.
fn dismantle(value: Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.into_iter().map(|(_, item)| item)),
            _ => {}
        }
    }
}

/// Counts what is written, up to a limit.
struct Count {
    bytes: usize,
    limit: usize,
}

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({ "a": inner }),
        })
    }

    #[test]
    fn sixty_four_levels_fit_and_one_more_does_not() {
        for (levels, fits) in [(0, true), (1, true), (64, true), (65, false), (120, false)] {
            let value = nested(levels);
            assert_eq!(text_fits_depth(&value.to_string()), fits, "{levels}");
            assert_eq!(admit(value, 10_000).is_ok(), fits, "{levels}");
        }
    }

    #[test]
    fn brackets_in_strings_nest_nothing() {
        let brackets = json!({ "a": "[".repeat(100), "\\": "\"{[".repeat(100) });
        assert!(text_fits_depth(&brackets.to_string()));
        assert!(!text_fits_depth(&"[".repeat(65)));
        assert!(text_fits_depth(&"[]".repeat(100)));
    }

    #[test]
    fn the_size_is_that_of_the_json() {
        let value = json!({ "text": "ä\n", "list": [1, 2.5, null] });
        let bytes = value.to_string().len();
        assert_eq!(admit(value.clone(), bytes).unwrap().bytes, bytes);
        let refused = admit(value, bytes - 1).unwrap_err();
        assert_eq!(refused, Refused::TooLong(bytes - 1));
    }

    #[test]
    fn a_value_of_a_million_levels_is_refused_without_a_crash() {
        let mut value = json!(1);
        for _ in 0..1_000_000 {
            value = Value::Array(vec![value]);
        }
        assert_eq!(admit(value, 10).unwrap_err(), Refused::TooDeep);
    }
}

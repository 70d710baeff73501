//! Objects of a server read without a schema: nothing but broken JSON is an error.
//!
//! A field that is missing, null or of another type than expected is `None`, wherever a
//! server leaves its own documentation. Values stay the server's own text, so that what must
//! go back is there byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object, in their order. Anything else has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads JSON text.
    ///
    /// # Errors
    /// The text is no JSON.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The fields of a value; none where it is no object.
    pub(crate) fn of(value: &'a RawValue) -> Self {
        Self::parse(value.get()).unwrap_or_default()
    }

    /// A field that is there and not null. Of a repeated one the last counts.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| !is_null(value))
    }

    /// The fields of an object in a field; none where there is none.
    pub(crate) fn object(&self, name: &str) -> Self {
        self.get(name).map(Self::of).unwrap_or_default()
    }

    /// The items of an array in a field; none where there is none.
    pub(crate) fn items(&self, name: &str) -> Vec<&'a RawValue> {
        self.get(name).map(items).unwrap_or_default()
    }

    /// A string, which may be empty.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(text)
    }

    /// A count: a number that is not negative, or one in quotes.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(number)
    }

    /// All fields with their values, nulls too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&**key, *value))
    }

    /// Whether there is no field at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The items of an array; none where it is no array.
pub(crate) fn items(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str::<Items<'_>>(value.get())
        .map(|items| items.0)
        .unwrap_or_default()
}

/// A string, which may be empty.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    // Most pieces have nothing to unescape and are borrowed.
    let plain = json.strip_prefix('"')?.strip_suffix('"')?;
    if !plain.contains('\\') {
        return Some(Cow::Borrowed(plain));
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) => Some(Cow::Owned(text)),
        // Half of a character, as some servers cut them: all but it is kept.
        Err(_) => serde_json::from_str::<Bytes>(json)
            .ok()
            .map(|bytes| Cow::Owned(bytes.0)),
    }
}

/// Reads strings of a stream in which a character may be cut into its two UTF-16 halves.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    /// The escape of a first half, whose second comes with the next string.
    held: Option<String>,
}

/// The length of `\\ud83d`.
const ESCAPE: usize = 6;

impl Halves {
    /// A string, without a half at its end; that comes with the next one.
    pub(crate) fn text<'a>(&mut self, value: &'a RawValue) -> Option<Cow<'a, str>> {
        let json = value.get();
        let is_plain = self.held.is_none() && !json.contains("\\u");
        if is_plain || !json.starts_with('"') {
            return text(value);
        }
        let inner = json.strip_prefix('"')?.strip_suffix('"')?;
        let whole = self.held.take().unwrap_or_default() + inner;
        let at = whole.len().saturating_sub(ESCAPE);
        let whole = match whole.split_at_checked(at) {
            Some((before, half)) if is_first_half(half) && !ends_escaping(before) => {
                self.held = Some(half.to_owned());
                before.to_owned()
            }
            _ => whole,
        };
        let whole = RawValue::from_string(format!("\"{whole}\"")).ok()?;
        text(&whole).map(|text| Cow::Owned(text.into_owned()))
    }
}

fn is_first_half(escape: &str) -> bool {
    let code = escape
        .strip_prefix("\\u")
        .and_then(|code| u16::from_str_radix(code, 16).ok());
    code.is_some_and(|code| (0xd800..0xdc00).contains(&code))
}

/// Whether a backslash behind this text is escaped by it.
fn ends_escaping(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A string that may have halves of characters in it.
struct Bytes(String);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Bytes(String::from_utf8_lossy(bytes).into_owned()))
    }
}

/// A count: a number that is not negative, or one in quotes.
pub(crate) fn number(value: &RawValue) -> Option<u64> {
    let json = value.get().trim_matches('"');
    json.parse().ok().or_else(|| {
        let number = json.parse::<f64>().ok()?;
        // Servers in dynamic languages write 12.0.
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    })
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some(Key(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(Fields(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }
}

#[derive(serde::Deserialize)]
struct Items<'a>(#[serde(borrow)] Vec<&'a RawValue>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_is_none_and_what_is_there_is_the_servers_own_text() {
        let fields = Fields::parse(
            r#"{"a":1,"b":null,"c":"x\n","d":{"z":1.50,"y":[1, 2]},"e":"12","f":12.0,"a":"2"}"#,
        )
        .unwrap();
        assert_eq!(fields.text("a").as_deref(), Some("2"));
        assert_eq!(fields.text("b"), None);
        assert_eq!(fields.text("c").as_deref(), Some("x\n"));
        assert_eq!(
            fields.get("d").map(RawValue::get),
            Some(r#"{"z":1.50,"y":[1, 2]}"#)
        );
        assert_eq!(fields.object("d").items("y").len(), 2);
        assert_eq!(
            (fields.number("e"), fields.number("f")),
            (Some(12), Some(12))
        );
        assert!(fields.object("c").is_empty() && fields.items("a").is_empty());
        for other in [
            "[]",
            "[{\"a\":1}]",
            "null",
            "1",
            "-1",
            "1.5",
            "true",
            "\"x\"",
        ] {
            assert!(Fields::parse(other).unwrap().is_empty(), "{other}");
        }
        assert!(Fields::parse("{\"a\":").is_err() && Fields::parse("").is_err());
    }

    #[test]
    fn a_character_cut_into_halves_comes_whole() {
        let mut halves = Halves::default();
        let strings = [
            r#""a\ud83e""#,
            r#""\udd80b""#,
            r#""\\ud83e""#,
            r#""\u00e9\ud83e\udd80""#,
            r#""\ud83d""#,
            r#""c""#,
        ];
        let texts: Vec<String> = strings
            .iter()
            .map(|json| {
                halves
                    .text(serde_json::from_str(json).unwrap())
                    .unwrap()
                    .into_owned()
            })
            .collect();
        assert_eq!(texts[..5], ["a", "🦀b", "\\ud83e", "é🦀", ""]);
        assert!(
            texts[5].ends_with('c') && texts[5].len() > 1,
            "a half alone is told"
        );
    }
}

//! What must come back to a server unchanged: the vendor's own item of a part, kept beside it.
//!
//! The item goes back byte for byte while what is visible of it is the same as when it came and
//! the request goes to where it came from. Otherwise the wire makes an item of what is visible.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use youyou_agent::ProviderData;

use super::Target;

/// Where items come from and may go back to: one protocol, one vendor, one family of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

/// What is visible of an item: what the agent stores, shows and may edit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// The text of a text or reasoning part.
    Text(&'a str),
    /// A tool call. Without an id where the vendor gave none: then the agent makes one up.
    Call {
        id: Option<&'a str>,
        name: &'a str,
        arguments: &'a Value,
    },
}

/// An item on its way back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Back<'a> {
    /// The start of the visible text that came before the item and is no part of it.
    pub(crate) before: &'a str,
    /// The vendor's own JSON.
    pub(crate) item: String,
}

/// The opaque data of a part.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    /// Fingerprint of what is visible.
    #[serde(borrow)]
    seen: Cow<'a, str>,
    /// How many bytes of the visible text came before the item.
    #[serde(default, skip_serializing_if = "is_zero")]
    skip: usize,
    /// Where the visible text was taken out of `item`, so that it is not stored twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
    #[serde(borrow)]
    item: &'a RawValue,
}

/// A place in an item where [`HOLE`] stands for what is visible.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Cut {
    /// The text or the arguments as a JSON string, at this byte.
    Text(usize),
    /// The arguments as a JSON object, at this byte.
    Object(usize),
}

/// What stands in a place that was cut out: valid JSON.
const HOLE: &str = "\"\"";

/// Shorter texts are not worth a cut.
const WORTH_A_CUT: usize = 32;

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Origin {
    /// Where the answers of `target` come from over this protocol.
    pub(crate) fn new(wire: &str, target: &Target) -> Self {
        Self(format!("{wire}/{}/{}", target.vendor, target.family))
    }

    /// The data of a part: the item that ends it, and how much of its visible text came before
    /// that item. `None` where the item is no JSON.
    pub(crate) fn keep(&self, seen: Seen<'_>, skip: usize, item: &str) -> Option<ProviderData> {
        let (item, cut) = cut_out(seen, skip, item);
        let kept = Kept {
            from: Cow::Borrowed(&self.0),
            seen: Cow::Owned(seen.fingerprint()),
            skip,
            cut,
            item: serde_json::from_str(&item).ok()?,
        };
        let json = serde_json::to_string(&kept).ok()?;
        Some(ProviderData(json.into()))
    }

    /// The item of a part, if it may go back: it came from here and nothing visible changed.
    pub(crate) fn back<'a>(&self, data: Option<&ProviderData>, seen: Seen<'a>) -> Option<Back<'a>> {
        let kept: Kept<'_> = serde_json::from_str(&data?.0).ok()?;
        if kept.from != self.0 || kept.seen != seen.fingerprint() {
            return None;
        }
        let item = kept.item.get();
        let item = match kept.cut {
            None => item.to_owned(),
            Some(Cut::Text(at)) => fill_in(item, at, &seen.as_text(kept.skip)?)?,
            Some(Cut::Object(at)) => fill_in(item, at, &seen.as_object()?)?,
        };
        let before = match seen {
            Seen::Text(text) => text.get(..kept.skip)?,
            Seen::Call { .. } => "",
        };
        Some(Back { before, item })
    }
}

/// Takes what is visible out of an item, where it is there as it would be written now.
fn cut_out<'a>(seen: Seen<'_>, skip: usize, item: &'a str) -> (Cow<'a, str>, Option<Cut>) {
    type At = fn(usize) -> Cut;
    let places: [(Option<String>, At); 2] = [
        (seen.as_text(skip), Cut::Text),
        (seen.as_object(), Cut::Object),
    ];
    for (visible, cut) in places {
        let Some(visible) = visible.filter(|text| text.len() >= WORTH_A_CUT) else {
            continue;
        };
        let Some((head, tail)) = item.split_once(visible.as_str()) else {
            continue;
        };
        let rest = format!("{head}{HOLE}{tail}");
        // The text may stand inside of another one.
        if serde_json::from_str::<&RawValue>(&rest).is_ok() {
            return (Cow::Owned(rest), Some(cut(head.len())));
        }
    }
    (Cow::Borrowed(item), None)
}

/// Puts what is visible back to where it was taken out.
fn fill_in(item: &str, at: usize, visible: &str) -> Option<String> {
    let head = item.get(..at)?;
    let tail = item.get(at..)?.strip_prefix(HOLE)?;
    Some(format!("{head}{visible}{tail}"))
}

impl Seen<'_> {
    /// As a JSON string; of a call the arguments.
    fn as_text(self, skip: usize) -> Option<String> {
        match self {
            Seen::Text(text) => serde_json::to_string(text.get(skip..)?).ok(),
            Seen::Call { .. } => serde_json::to_string(&self.as_object()?).ok(),
        }
    }

    /// The arguments of a call as JSON.
    fn as_object(self) -> Option<String> {
        match self {
            Seen::Text(_) => None,
            Seen::Call { arguments, .. } => serde_json::to_string(arguments).ok(),
        }
    }

    fn fingerprint(self) -> String {
        let mut hash = Fnv::new();
        match self {
            Seen::Text(text) => hash.text(text),
            Seen::Call {
                id,
                name,
                arguments,
            } => {
                hash.text(id.unwrap_or_default());
                hash.text(name);
                hash.value(arguments);
            }
        }
        format!("{:016x}", hash.0)
    }
}

/// FNV-1a with 64 bits: the same in every version and on every machine, unlike the hashers of
/// the standard library, and the data is stored. It tells edits, not attacks.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// With its length, so that two texts in a row are not two others.
    fn text(&mut self, text: &str) {
        self.bytes(&text.len().to_le_bytes());
        self.bytes(text.as_bytes());
    }

    /// The order of keys does not count: a storage may change it.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                self.bytes(b"{");
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in fields {
                    self.text(key);
                    self.value(value);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.value(item));
                self.bytes(b"]");
            }
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.text(&value.to_string()),
        }
    }
}

/// The arguments of a call as the agent will store them: always an object, `{}` where the
/// model's text is none.
pub(crate) fn visible_arguments(text: &str) -> Value {
    let object = |value: Value| value.is_object().then_some(value);
    let parsed = serde_json::from_str(text)
        .ok()
        .and_then(|value| match value {
            // Some servers put the object into a string once more.
            Value::String(inner) => serde_json::from_str(&inner).ok().and_then(object),
            other => object(other),
        });
    parsed.unwrap_or_else(|| Value::Object(Map::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::testing::target;

    const LONG: &str = "a text that is long enough \"to be\" worth a cut\n";

    fn origin() -> Origin {
        Origin::new("messages", &target())
    }

    #[test]
    fn an_item_comes_back_byte_for_byte_while_its_text_is_the_same() {
        let quoted = serde_json::to_string(LONG).unwrap();
        for item in [
            format!(r#"{{"b":{quoted},"a": 1.50,"c":{quoted}}}"#),
            format!(r#"[ {quoted} ]"#),
            r#"{"signature":"x"}"#.to_owned(),
        ] {
            let data = origin().keep(Seen::Text(LONG), 0, &item);
            assert_eq!(
                origin().back(data.as_ref(), Seen::Text(LONG)),
                Some(Back { before: "", item })
            );
            assert_eq!(origin().back(data.as_ref(), Seen::Text("edited")), None);
        }
    }

    #[test]
    fn a_long_text_is_not_stored_a_second_time() {
        let item = json!({ "text": LONG, "signature": "s" }).to_string();
        let data = origin().keep(Seen::Text(LONG), 0, &item).unwrap();
        assert!(!data.0.contains("worth a cut"), "{}", data.0);
    }

    #[test]
    fn text_before_the_item_is_told_apart_from_it() {
        let text = format!("before {LONG}");
        let item = json!({ "text": LONG, "signature": "s" }).to_string();
        let data = origin().keep(Seen::Text(&text), 7, &item);
        let back = origin().back(data.as_ref(), Seen::Text(&text));
        assert_eq!(
            back,
            Some(Back {
                before: "before ",
                item
            })
        );
    }

    #[test]
    fn a_call_comes_back_with_its_own_spelling_of_numbers_and_escapes() {
        let text = r#"{"path": "a\u00e9", "size": 12345678901234567890123, "one": 1.0}"#;
        let arguments = visible_arguments(text);
        let item = json!({ "id": "fc_1", "arguments": text }).to_string();
        let seen = Seen::Call {
            id: Some("c1"),
            name: "read",
            arguments: &arguments,
        };
        let data = origin().keep(seen, 0, &item);
        assert_eq!(
            origin().back(data.as_ref(), seen).map(|back| back.item),
            Some(item)
        );
        let other = Seen::Call {
            id: Some("c2"),
            name: "read",
            arguments: &arguments,
        };
        assert_eq!(origin().back(data.as_ref(), other), None);
    }

    #[test]
    fn arguments_are_taken_out_as_a_string_and_as_an_object() {
        let arguments = json!({ "city": "Linz", "days": [1, 2, 3], "units": "metric" });
        let seen = Seen::Call {
            id: None,
            name: "weather",
            arguments: &arguments,
        };
        for item in [
            json!({ "arguments": arguments.to_string() }).to_string(),
            json!({ "functionCall": { "args": arguments } }).to_string(),
        ] {
            let data = origin().keep(seen, 0, &item);
            assert!(!data.as_ref().unwrap().0.contains("Linz"));
            assert_eq!(
                origin().back(data.as_ref(), seen).map(|back| back.item),
                Some(item)
            );
        }
    }

    #[test]
    fn another_vendor_family_or_protocol_gets_nothing() {
        let data = origin().keep(Seen::Text("t"), 0, "{}");
        let mut elsewhere = target();
        elsewhere.vendor = "other".into();
        let mut family = target();
        family.family = "other".into();
        for other in [
            Origin::new("messages", &elsewhere),
            Origin::new("messages", &family),
            Origin::new("responses", &target()),
        ] {
            assert_eq!(other.back(data.as_ref(), Seen::Text("t")), None);
        }
    }

    #[test]
    fn data_that_is_none_of_ours_is_none() {
        for foreign in ["", "null", "[]", "{}", r#"{"from":1}"#, r#"{"from":"#] {
            let data = ProviderData(foreign.into());
            assert_eq!(origin().back(Some(&data), Seen::Text("t")), None);
        }
        assert_eq!(origin().keep(Seen::Text("t"), 0, "{broken"), None);
    }
}

//! Pieces of a request's body: JSON of ours beside a vendor's own.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use youyou_agent::{ProviderError, ProviderErrorKind};

use super::json::Fields;

/// A piece of a body.
pub(crate) type Piece = Box<RawValue>;

/// Writes JSON of ours.
///
/// # Errors
/// `InvalidRequest`: the value cannot be written as JSON.
pub(crate) fn own(value: &impl Serialize) -> Result<Piece, ProviderError> {
    serde_json::value::to_raw_value(value).map_err(unwritable)
}

/// Takes a vendor's own JSON.
///
/// # Errors
/// `InvalidRequest`: the text is no JSON.
pub(crate) fn kept(item: String) -> Result<Piece, ProviderError> {
    RawValue::from_string(item).map_err(unwritable)
}

/// Writes the whole body.
///
/// # Errors
/// `InvalidRequest`: the value cannot be written as JSON.
pub(crate) fn text(value: &impl Serialize) -> Result<String, ProviderError> {
    serde_json::to_string(value).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::InvalidRequest,
        format!("the request cannot be written as JSON ({error})"),
    )
}

/// An object of a vendor's with some fields replaced; those it lacks come at the end.
pub(crate) fn with_fields(object: &str, fields: &[(&str, String)]) -> String {
    let old = Fields::parse(object).unwrap_or_default();
    let replaced = old.iter().map(|(name, value)| {
        let new = fields.iter().find(|(field, _)| *field == name);
        (name, new.map_or_else(|| value.get(), |(_, value)| value))
    });
    let added = fields
        .iter()
        .filter(|(name, _)| old.iter().all(|(known, _)| known != *name))
        .map(|(name, value)| (*name, value.as_str()));
    let fields: Vec<String> = replaced
        .chain(added)
        .map(|(name, value)| format!("{}:{value}", quoted(name)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Adds a field to an object of ours.
pub(crate) fn put(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_in_their_place_and_added_at_the_end() {
        let made = with_fields(
            r#"{"type":"t", "text":"", "n": 1.50}"#,
            &[("text", quoted("a\"b")), ("signature", quoted("s"))],
        );
        assert_eq!(
            made,
            r#"{"type":"t","text":"a\"b","n":1.50,"signature":"s"}"#
        );
        assert_eq!(with_fields("{}", &[]), "{}");
    }
}

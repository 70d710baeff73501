//! Telling an error object from a piece of an answer, whatever name it goes by.

use serde_json::value::RawValue;

use super::json::Fields;

/// Fields of which each marks a piece of an answer in one of the protocols.
const CONTENT: &[&str] = &[
    "type",
    "choices",
    "candidates",
    "promptFeedback",
    "usageMetadata",
    "usage",
    "output",
    "content",
    "delta",
];

/// Whether a frame or a body tells of a failure. `event` is the name of the frame's event.
///
/// `"error": null` and its like are none: many servers send them with each piece.
pub(crate) fn is_error(event: Option<&str>, fields: &Fields<'_>) -> bool {
    let says = |name: &str| fields.get(name).is_some_and(is_something);
    let is = |name: &str, word: &str| fields.text(name).as_deref() == Some(word);
    if event == Some("error")
        || is("type", "error")
        || is("object", "error")
        || ["error", "error_message", "error_msg", "errors"]
            .iter()
            .any(|name| says(name))
    {
        return true;
    }
    let has_content = CONTENT.iter().any(|name| fields.get(name).is_some());
    !has_content && (says("detail") || fields.text("message").is_some_and(|text| !text.is_empty()))
}

fn is_something(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "false" | "\"\"" | "0") && {
        let inner = value.get().trim_matches(['{', '}', '[', ']']);
        !inner.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: Option<&str>, json: &str) -> bool {
        is_error(event, &Fields::parse(json).unwrap())
    }

    #[test]
    fn an_error_is_known_by_each_of_its_names() {
        for json in [
            r#"{"error":{"message":"m"}}"#,
            r#"{"error":"m"}"#,
            r#"{"object":"error","message":"m","code":400}"#,
            r#"{"type":"error","message":"m"}"#,
            r#"{"error_message":"m"}"#,
            r#"{"detail":"Not Found"}"#,
            r#"{"detail":[{"msg":"m"}]}"#,
            r#"{"code":"InvalidParameter","message":"m"}"#,
        ] {
            assert!(check(None, json), "{json}");
        }
        assert!(check(Some("error"), "{}"));
    }

    #[test]
    fn an_error_that_is_nothing_is_none() {
        for json in [
            r#"{"type":"ping","error":null}"#,
            r#"{"candidates":[],"error":{}}"#,
            r#"{"type":"x","error":"","errors":[],"detail":"d","message":{"id":"m"}}"#,
            r#"{"error":false}"#,
            "{}",
        ] {
            assert!(!check(None, json), "{json}");
        }
    }
}

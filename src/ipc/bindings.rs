//! The TypeScript bindings and the one list of commands.

/// Free JSON, for TypeScript: `null`, booleans, numbers, strings, lists and objects.
///
/// It stands for `serde_json::Value` in the bindings. Integers above 2^53 lose precision in
/// JavaScript.
#[cfg(feature = "bindings")]
#[derive(specta::Type)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its type is used, for the bindings")]
pub(crate) enum JsonValue {
    Null(()),
    Bool(bool),
    Number(f64),
    String(String),
    Array(Vec<JsonValue>),
    Object(std::collections::BTreeMap<String, JsonValue>),
}

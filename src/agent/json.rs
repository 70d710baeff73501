//! Free JSON as the TypeScript bindings show it.

/// Stands for [`serde_json::Value`] in the bindings. Integers above 2^53 lose precision in a
/// page.
#[derive(serde::Serialize, specta::Type)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "only its type is used; it stands for serde_json::Value"
)]
pub(crate) enum JsonValue {
    Null(()),
    Bool(bool),
    // As a float it would be `number | null`.
    Number(#[specta(type = u32)] f64),
    String(String),
    Array(Vec<JsonValue>),
    Object(std::collections::BTreeMap<String, JsonValue>),
}

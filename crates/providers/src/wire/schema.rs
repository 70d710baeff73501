//! JSON schemas in the form that servers take.

use serde_json::{Map, Value, json};

/// The parameters of a tool: an object with properties, as all servers demand, also where the
/// tool takes nothing.
pub(crate) fn parameters(schema: &Value) -> Value {
    let mut fields = match schema {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    // Says which standard the schema follows; some servers refuse keys they do not know.
    fields.remove("$schema");
    fields.entry("type").or_insert_with(|| json!("object"));
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), json!({}));
    }
    Value::Object(fields)
}

/// Whether a tool takes nothing.
pub(crate) fn takes_nothing(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_none_or(Map::is_empty)
        && ["anyOf", "oneOf", "allOf", "$ref", "additionalProperties"]
            .iter()
            .all(|key| schema.get(key).is_none_or(|value| value == &json!(false)))
}

/// Whether a server can hold an answer to every word of the schema: each object is closed and
/// each of its properties required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_closed = !is_object(fields)
                || fields.get("additionalProperties") == Some(&json!(false))
                    && requires_all(fields);
            is_closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

/// The same schema with each object closed.
pub(crate) fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut closed_fields: Map<String, Value> = fields
                .iter()
                .map(|(key, value)| (key.clone(), closed(value)))
                .collect();
            if is_object(fields) {
                closed_fields
                    .entry("additionalProperties")
                    .or_insert(json!(false));
            }
            Value::Object(closed_fields)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}

fn is_object(fields: &Map<String, Value>) -> bool {
    match fields.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.contains(&json!("object")),
        _ => false,
    }
}

fn requires_all(fields: &Map<String, Value>) -> bool {
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else {
        return true;
    };
    let required = fields.get("required").and_then(Value::as_array);
    properties.keys().all(|name| {
        required.is_some_and(|required| required.iter().any(|known| known == name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_an_object_with_properties_whatever_the_tool_says() {
        let nothing = json!({ "type": "object", "properties": {} });
        for schema in [
            json!(null),
            json!(true),
            json!({}),
            json!({ "type": "object" }),
        ] {
            assert_eq!(parameters(&schema), nothing);
            assert!(takes_nothing(&schema));
        }
        let schema = json!({ "$schema": "x", "type": "object", "properties": { "a": {} } });
        assert_eq!(
            parameters(&schema),
            json!({ "type": "object", "properties": { "a": {} } })
        );
        assert!(!takes_nothing(&schema));
    }

    #[test]
    fn a_schema_is_strict_when_each_object_is_closed_and_requires_all() {
        let open = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert!(!is_strict(&open));
        assert!(!is_strict(&closed(&open)), "nothing is required");
        let strict = json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "required": ["a"],
            "additionalProperties": false,
        });
        assert!(is_strict(&strict));
    }

    #[test]
    fn closing_reaches_every_object() {
        let schema = json!({
            "type": "object",
            "properties": { "list": { "type": "array", "items": { "type": "object" } } },
        });
        let closed = closed(&schema);
        assert_eq!(closed["additionalProperties"], json!(false));
        assert_eq!(
            closed["properties"]["list"]["items"]["additionalProperties"],
            json!(false)
        );
    }
}

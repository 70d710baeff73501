//! The JSON Schema of a tool: compiled once, and what a model is told of arguments that break it.

use std::fmt::{self, Write as _};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Violations that are told at once.
const MAX_VIOLATIONS: usize = 5;

/// Characters of a violation that are told: some quote the whole value.
const MAX_VIOLATION_CHARS: usize = 200;

/// Arguments of more bytes are told their first violation only: the validator collects all of
/// them, each with a copy of what breaks it, before it gives the first.
const MAX_BYTES_TO_COLLECT: usize = 16 * 1024;

/// A compiled schema.
pub(super) struct Schema {
    validator: Validator,
    /// Whether a single violation may hold those of all branches of an `anyOf` or `oneOf`.
    has_branches: bool,
}

impl Schema {
    /// # Errors
    /// A text that says why the schema is invalid.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("must be a JSON object".to_owned());
        }
        let validator = jsonschema::validator_for(schema).map_err(|error| told(&error))?;
        Ok(Self {
            validator,
            has_branches: has_branches(schema),
        })
    }

    /// Checks arguments whose JSON has this many bytes. They are an object even where the
    /// schema would take anything.
    ///
    /// # Errors
    /// A text that tells the model what to mend.
    pub(super) fn check(&self, arguments: &Value, bytes: usize) -> Result<(), String> {
        if !arguments.is_object() {
            return Err("the arguments must be a JSON object".to_owned());
        }
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        if bytes <= MAX_BYTES_TO_COLLECT {
            let violations: Vec<String> = self
                .validator
                .iter_errors(arguments)
                .take(MAX_VIOLATIONS)
                .map(|violation| told(&violation))
                .collect();
            return Err(violations.join("; "));
        }
        if self.has_branches {
            return Err("they are too long to say where; compare them with the schema".to_owned());
        }
        match self.validator.validate(arguments) {
            Ok(()) => Ok(()),
            Err(first) => Err(told(&first)),
        }
    }
}

/// Whether the schema says `anyOf` or `oneOf` anywhere, be it as the name of a property.
fn has_branches(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| matches!(&**name, "anyOf" | "oneOf") || has_branches(inner)),
        Value::Array(items) => items.iter().any(has_branches),
        _ => false,
    }
}

/// Where and what, shortened while it is written: a violation may quote megabytes.
fn told(violation: &ValidationError<'_>) -> String {
    let mut short = Short {
        text: String::new(),
        left: MAX_VIOLATION_CHARS,
    };
    let at = violation.instance_path().as_str();
    let whole = if at.is_empty() {
        write!(short, "{violation}")
    } else {
        write!(short, "{at}: {violation}")
    };
    if whole.is_err() {
        short.text.push('…');
    }
    short.text
}

/// Takes a number of characters and then refuses more, which ends the writing.
struct Short {
    text: String,
    left: usize,
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for c in more.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(schema: &Value, arguments: &Value) -> String {
        let schema = Schema::compile(schema).unwrap();
        let bytes = arguments.to_string().len();
        schema.check(arguments, bytes).unwrap_err()
    }

    #[test]
    fn at_most_five_violations_are_told_each_in_two_hundred_characters() {
        let schema = json!({ "properties": { "xs": { "items": { "type": "string" } } } });
        let long = json!({ "long": "频".repeat(300) });
        let told = refused(&schema, &json!({ "xs": vec![long; 9] }));
        let violations: Vec<&str> = told.split("; ").collect();
        assert_eq!(violations.len(), MAX_VIOLATIONS);
        for (at, violation) in violations.iter().enumerate() {
            assert!(violation.starts_with(&format!("/xs/{at}: ")), "{violation}");
            assert!(violation.ends_with('…'), "{violation}");
            assert_eq!(violation.chars().count(), MAX_VIOLATION_CHARS + 1);
        }
    }

    #[test]
    fn long_arguments_are_told_their_first_violation() {
        let schema = json!({ "properties": { "xs": { "items": { "type": "string" } } } });
        let told = refused(&schema, &json!({ "xs": vec![1; 100_000] }));
        assert_eq!(told, "/xs/0: 1 is not of type \"string\"");
    }

    #[test]
    fn long_arguments_that_fit_no_branch_are_told_so_without_details() {
        let branches = json!([{ "items": { "type": "string" } }, { "type": "null" }]);
        for word in ["anyOf", "oneOf"] {
            let schema = json!({ "properties": { "xs": { word: branches } } });
            let told = refused(&schema, &json!({ "xs": vec![1; 100_000] }));
            assert!(told.contains("compare them with the schema"), "{told}");
            let few = refused(&schema, &json!({ "xs": [1] }));
            assert!(few.contains(word), "{few}");
        }
    }
}

//! The registered tools: found by name, their schemas compiled once, their arguments checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ToolHandler, ToolInfo};
use crate::agent::contain;
use crate::agent::error::AgentError;
use crate::agent::provider::ToolSpec;
use crate::agent::text::excerpt;

/// Violations of a schema that are told at once.
const MAX_VIOLATIONS: usize = 5;

const CUT: &str = "the arguments were cut before their end";

/// All tools of an agent, by name.
#[derive(Default)]
pub(crate) struct ToolSet {
    tools: BTreeMap<Arc<str>, Tool>,
    specs: Arc<[ToolSpec]>,
}

/// A registered tool.
pub(crate) struct Tool {
    pub(crate) name: Arc<str>,
    pub(crate) handler: Arc<dyn ToolHandler>,
    pub(crate) mutating: bool,
    validator: jsonschema::Validator,
}

impl ToolSet {
    /// # Errors
    /// `NAME_CONFLICT`, and `INVALID_CONFIG` for a name that is empty or a schema that is none.
    pub(crate) fn new(handlers: Vec<Arc<dyn ToolHandler>>) -> Result<Self, AgentError> {
        let mut tools = BTreeMap::new();
        let mut specs = Vec::with_capacity(handlers.len());
        for handler in handlers {
            let definition = contain::call(|| handler.definition()).map_err(|panicked| {
                AgentError::invalid_config("tool", &format!("its definition failed: {panicked}"))
            })?;
            if definition.name.trim().is_empty() {
                return Err(AgentError::invalid_config("tool", "its name is empty"));
            }
            let field = format!("schema of the tool \"{}\"", definition.name);
            if !definition.parameters.is_object() {
                return Err(AgentError::invalid_config(&field, "must be a JSON object"));
            }
            let validator = jsonschema::validator_for(&definition.parameters)
                .map_err(|error| AgentError::invalid_config(&field, &error.to_string()))?;
            let name: Arc<str> = definition.name.as_str().into();
            let tool = Tool {
                name: Arc::clone(&name),
                handler,
                mutating: definition.mutating,
                validator,
            };
            if tools.insert(Arc::clone(&name), tool).is_some() {
                return Err(AgentError::name_conflict("tool", &name));
            }
            specs.push(ToolSpec {
                name,
                description: definition.description,
                parameters: definition.parameters,
            });
        }
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            tools,
            specs: specs.into(),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.tools.keys().map(AsRef::as_ref).collect()
    }

    /// What the model is told of the tools, sorted by name.
    pub(crate) fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    pub(crate) fn infos(&self) -> Vec<ToolInfo> {
        self.specs
            .iter()
            .map(|spec| ToolInfo {
                name: spec.name.to_string(),
                description: spec.description.clone(),
                parameters: spec.parameters.clone(),
                mutating: self.get(&spec.name).is_some_and(|tool| tool.mutating),
            })
            .collect()
    }
}

impl Tool {
    /// Checks arguments against the schema; the text tells the model what to mend. They are
    /// an object even where the schema would take anything.
    pub(crate) fn validate(&self, arguments: &Value) -> Result<(), String> {
        if !arguments.is_object() {
            return Err("the arguments must be a JSON object".to_owned());
        }
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        let violations: Vec<String> = self
            .validator
            .iter_errors(arguments)
            .take(MAX_VIOLATIONS)
            .map(|violation| {
                let at = violation.instance_path().to_string();
                let text = violation.to_string();
                let text = excerpt(&text, 300);
                if at.is_empty() {
                    text.into_owned()
                } else {
                    format!("{at}: {text}")
                }
            })
            .collect();
        Err(violations.join("; "))
    }
}

/// Reads the arguments a model gave: an object, possibly wrapped in one JSON string;
/// nothing and null mean `{}`.
///
/// # Errors
/// A text for the model that says what is wrong.
pub(crate) fn parse_arguments(raw: &str) -> Result<Value, String> {
    let parsed = parse(raw)?;
    match parsed {
        Value::String(inner) => match parse(&inner) {
            Ok(object @ Value::Object(_)) => Ok(object),
            _ => Err(unusable("the arguments are a text, not an object", raw)),
        },
        Value::Object(_) => Ok(parsed),
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Array(_) => Err(unusable("the arguments are an array, not an object", raw)),
        Value::Bool(_) | Value::Number(_) => Err(unusable(
            "the arguments are a single value, not an object",
            raw,
        )),
    }
}

/// Like [`parse_arguments`], where the end of the answer may be missing: nothing is no sign
/// of a call without arguments then.
pub(crate) fn parse_begun_arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Err(unusable(CUT, raw));
    }
    parse_arguments(raw)
}

fn parse(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(raw).map_err(|error| {
        if error.is_eof() {
            unusable(CUT, raw)
        } else {
            unusable(&format!("the arguments are no valid JSON ({error})"), raw)
        }
    })
}

fn unusable(what: &str, raw: &str) -> String {
    format!(
        "{what}; the tool was not run. Send the arguments as one complete JSON object. Received: {}",
        excerpt(raw, 200)
    )
}

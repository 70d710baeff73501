//! The registered tools: found by name, their schemas compiled once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::arguments::{Arguments, beside};
use super::schema::Schema;
use super::{ToolHandler, ToolInfo};
use crate::agent::contain;
use crate::agent::error::AgentError;
use crate::agent::provider::ToolSpec;
use crate::agent::text::excerpt;

/// Longest name of a tool, in characters: what every provider takes.
const MAX_NAME: usize = 64;

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
    schema: Arc<Schema>,
}

impl ToolSet {
    /// # Errors
    /// `NAME_CONFLICT`, and `INVALID_CONFIG` for a name that providers would refuse or a schema
    /// that is invalid.
    pub(crate) fn new(handlers: Vec<Arc<dyn ToolHandler>>) -> Result<Self, AgentError> {
        let mut tools = BTreeMap::new();
        let mut specs = Vec::with_capacity(handlers.len());
        for handler in handlers {
            let definition = contain::call(|| handler.definition()).map_err(|panicked| {
                AgentError::invalid_config("tool", &format!("its definition failed: {panicked}"))
            })?;
            check_name(&definition.name)?;
            let schema = Schema::compile(&definition.parameters).map_err(|reason| {
                let field = format!("schema of the tool \"{}\"", definition.name);
                AgentError::invalid_config(&field, &reason)
            })?;
            let name: Arc<str> = definition.name.as_str().into();
            let tool = Tool {
                name: Arc::clone(&name),
                handler,
                mutating: definition.mutating,
                schema: Arc::new(schema),
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
    /// Checks arguments against the schema, beside the runtime where that takes long.
    ///
    /// # Errors
    /// A text that tells the model what to mend.
    pub(crate) async fn check(&self, arguments: &Arguments) -> Result<(), String> {
        let (schema, Arguments { value, bytes }) = (Arc::clone(&self.schema), arguments.clone());
        beside(bytes, move || schema.check(&value, bytes)).await?
    }

    /// Checks arguments that were changed, whose JSON has this many bytes.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub(crate) fn check_now(&self, arguments: &Value, bytes: usize) -> Result<(), String> {
        self.schema.check(arguments, bytes)
    }
}

fn check_name(name: &str) -> Result<(), AgentError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(legal) {
        return Ok(());
    }
    let reason = format!(
        "the name \"{}\" is not allowed; a name has 1 to {MAX_NAME} characters, each one of A-Z, a-z, 0-9, \"_\" and \"-\"",
        excerpt(name, 200)
    );
    Err(AgentError::invalid_config("tool", &reason))
}

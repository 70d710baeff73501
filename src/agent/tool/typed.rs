//! Tools from plain functions: the schema is derived from the argument type.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::inside;
use super::{ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput};
use crate::agent::text::excerpt;

/// A tool made of a function by [`typed`] or [`typed_blocking`]. It is read-only unless
/// [`mutating`](Self::mutating) says otherwise.
pub struct TypedTool {
    definition: ToolDefinition,
    run: Box<Run>,
}

type Run = dyn Fn(Value, ToolContext) -> Running + Send + Sync;
type Running = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

impl TypedTool {
    /// Marks the tool as one that changes something. The calls of an answer run at once when
    /// all are read-only, else one after another.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.definition.mutating = true;
        self
    }
}

impl std::fmt::Debug for TypedTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTool")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

/// What the function of a typed tool can give back: a [`ToolOutput`], or anything that can be
/// serialized. A text stays as it is; anything else becomes JSON.
pub trait IntoToolOutput {
    /// The output for the model.
    ///
    /// # Errors
    /// The value cannot be written as JSON, such as a map whose keys are not texts.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + 'static> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        // A plain text, which may be long, is not written and read again.
        let mut value = Some(self);
        if let Some(text) = (&mut value as &mut dyn Any).downcast_mut::<Option<String>>() {
            return Ok(ToolOutput::text(text.take().unwrap_or_default()));
        }
        let unusable = |error| ToolError::new(format_args!("the output is not JSON: {error}"));
        let json = serde_json::to_string(&value).map_err(unusable)?;
        if json.starts_with('"') {
            let text: String = serde_json::from_str(&json).map_err(unusable)?;
            return Ok(ToolOutput::text(text));
        }
        Ok(ToolOutput::text(json))
    }
}

/// A read-only tool from an async function of typed arguments.
///
/// `A` is a struct with named fields. Their docs become descriptions in the schema; an
/// `Option` or `#[serde(default)]` makes a field optional. `O` is anything that can be serialized,
/// or a [`ToolOutput`]: see [`IntoToolOutput`].
///
/// # Examples
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use youyou_agent::{ToolContext, ToolError, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     /// The numbers to add.
///     numbers: Vec<f64>,
/// }
///
/// let sum = tool::typed("sum", "Adds numbers.", |args: Sum, _context: ToolContext| async move {
///     if args.numbers.is_empty() {
///         return Err(ToolError::new("give at least one number"));
///     }
///     Ok(args.numbers.iter().sum::<f64>())
/// });
/// # let _ = sum;
/// ```
///
/// What a tool shares with the app is cloned twice: into the function, and into each call.
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use youyou_agent::{ToolContext, ToolError, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Note {
///     text: String,
/// }
///
/// let notes = Arc::new(Mutex::new(Vec::new()));
/// let shared = Arc::clone(&notes);
/// let add = tool::typed("add_note", "Keeps a note.", move |note: Note, context: ToolContext| {
///     let notes = Arc::clone(&shared);
///     async move {
///         context.progress("writing");
///         let mut notes = notes.lock().map_err(ToolError::new)?;
///         notes.push(note.text);
///         Ok(format!("{} notes", notes.len()))
///     }
/// })
/// .mutating();
/// # let _ = add;
/// ```
pub fn typed<A, O, F, Fut>(
    name: impl Into<String>,
    description: impl Into<String>,
    run: F,
) -> TypedTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoToolOutput,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    TypedTool {
        definition: definition::<A>(name.into(), description.into()),
        run: Box::new(move |arguments, context| {
            let call = read(arguments).map(|arguments| run(arguments, context));
            Box::pin(async move { call?.await?.into_tool_output() })
        }),
    }
}

/// Like [`typed`] for a function that blocks: it runs on tokio's blocking pool.
///
/// A thread cannot be interrupted: after `tool_timeout_ms` the call has failed and its result
/// is dropped, but the function runs on until it returns. One that takes long looks at
/// [`ToolContext::timed_out`].
///
/// # Examples
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use youyou_agent::{ToolContext, ToolError, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Count {
///     /// A folder.
///     path: String,
/// }
///
/// fn count(args: Count, context: ToolContext) -> Result<String, ToolError> {
///     let mut files = 0;
///     for _entry in std::fs::read_dir(&args.path).map_err(ToolError::new)? {
///         if context.timed_out.is_cancelled() {
///             return Err(ToolError::new("the folder is too large"));
///         }
///         files += 1;
///     }
///     Ok(format!("{files} files"))
/// }
///
/// let tool = tool::typed_blocking("count_files", "Counts the files of a folder.", count);
/// # let _ = tool;
/// ```
pub fn typed_blocking<A, O, F>(
    name: impl Into<String>,
    description: impl Into<String>,
    run: F,
) -> TypedTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoToolOutput,
    F: Fn(A, ToolContext) -> Result<O, ToolError> + Send + Sync + 'static,
{
    let run = Arc::new(run);
    TypedTool {
        definition: definition::<A>(name.into(), description.into()),
        run: Box::new(move |arguments, context| {
            let run = Arc::clone(&run);
            let call = move || run(read(arguments)?, context)?.into_tool_output();
            let call = tokio::task::spawn_blocking(inside::carried(call));
            Box::pin(async move {
                match call.await {
                    Ok(output) => output,
                    Err(stopped) => match stopped.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => Err(ToolError::new("the runtime is shutting down")),
                    },
                }
            })
        }),
    }
}

/// Reads the arguments into their type. What the schema lets through and the type refuses is
/// told like what the schema refuses.
fn read<A: DeserializeOwned>(arguments: Value) -> Result<A, ToolError> {
    serde_json::from_value(arguments).map_err(|error| {
        ToolError::new(format_args!(
            "the arguments do not fit: {}; the tool was not run",
            excerpt(&error.to_string(), 200)
        ))
    })
}

fn definition<A: JsonSchema>(name: String, description: String) -> ToolDefinition {
    let mut parameters = schemars::schema_for!(A).to_value();
    if let Value::Object(schema) = &mut parameters {
        // The model needs neither; they cost tokens in every request.
        schema.remove("$schema");
        schema.remove("title");
        schema.entry("type").or_insert_with(|| "object".into());
    }
    ToolDefinition::new(name, description, parameters)
}

#[async_trait]
impl ToolHandler for TypedTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(input.arguments, context).await
    }
}

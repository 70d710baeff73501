//! Tools from plain functions: the schema is derived from the argument type.

use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput};

/// A tool made of a function by [`typed`] or [`typed_blocking`]. It is read-only unless
/// [`mutating`](Self::mutating) says otherwise.
pub struct TypedTool<A, F> {
    definition: ToolDefinition,
    run: F,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> TypedTool<A, F> {
    /// Marks the tool as one that changes something. The calls of an answer run at once when
    /// all are read-only, else one after another.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.definition.mutating = true;
        self
    }
}

/// A read-only tool from an async function of typed arguments.
///
/// `A` is a struct with named fields. Their docs become descriptions in the schema; an
/// `Option` or `#[serde(default)]` makes a field optional. `O` is a `String`, a `&str` or a
/// [`ToolOutput`].
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
///     Ok(args.numbers.iter().sum::<f64>().to_string())
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
) -> TypedTool<A, impl Fn(A, ToolContext) -> BoxedOutput + Send + Sync + 'static>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: Into<ToolOutput>,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    TypedTool {
        definition: definition::<A>(name.into(), description.into()),
        run: move |arguments, context| {
            let call = run(arguments, context);
            Box::pin(async move { call.await.map(Into::into) }) as BoxedOutput
        },
        arguments: PhantomData,
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
) -> TypedTool<A, impl Fn(A, ToolContext) -> BoxedOutput + Send + Sync + 'static>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: Into<ToolOutput>,
    F: Fn(A, ToolContext) -> Result<O, ToolError> + Send + Sync + 'static,
{
    let run = std::sync::Arc::new(run);
    TypedTool {
        definition: definition::<A>(name.into(), description.into()),
        run: move |arguments, context| {
            let run = std::sync::Arc::clone(&run);
            let call = tokio::task::spawn_blocking(move || run(arguments, context).map(Into::into));
            Box::pin(async move {
                match call.await {
                    Ok(output) => output,
                    Err(stopped) => match stopped.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => Err(ToolError::new("the runtime is shutting down")),
                    },
                }
            }) as BoxedOutput
        },
        arguments: PhantomData,
    }
}

/// What a typed tool's function gives back, boxed. Only the signatures of [`typed`] and
/// [`typed_blocking`] need it.
pub type BoxedOutput =
    std::pin::Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

fn definition<A: JsonSchema>(name: String, description: String) -> ToolDefinition {
    let mut parameters = schemars::schema_for!(A).to_value();
    if let Value::Object(schema) = &mut parameters {
        // The model needs neither; they cost tokens in every request.
        schema.remove("$schema");
        schema.remove("title");
        schema.entry("type").or_insert_with(|| "object".into());
    }
    ToolDefinition {
        name,
        description,
        parameters,
        mutating: false,
    }
}

#[async_trait]
impl<A, F> ToolHandler for TypedTool<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> BoxedOutput + Send + Sync + 'static,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = serde_json::from_value(input.arguments)
            .map_err(|error| ToolError::new(format_args!("invalid arguments: {error}")))?;
        (self.run)(arguments, context).await
    }
}

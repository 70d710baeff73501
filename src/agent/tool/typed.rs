//! Tools from plain functions: the schema is derived from the argument type.

use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput};

/// A tool made of a function; see [`typed`] and [`typed_blocking`].
pub struct TypedTool<A, F> {
    definition: ToolDefinition,
    run: F,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> TypedTool<A, F> {
    /// Marks the tool as one that changes something.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.definition.mutating = true;
        self
    }
}

/// A read-only tool from an async function of typed arguments. Field docs of `A` become
/// descriptions in the schema.
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

/// What a typed tool's function gives back, boxed.
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

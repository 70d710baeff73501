//! Tools that do what a test says and remember what was asked of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CallLog, Gate};
use crate::{ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput};

/// A tool that is put together from what it does before it answers, and its answer.
/// It takes any arguments and answers "ok" unless told otherwise. Copies share the log.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use youyou_agent::testing::{Gate, RecordingTool};
/// use youyou_agent::{ToolContext, ToolHandler as _, ToolInput};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let gate = Gate::opened();
/// let tool = RecordingTool::read_only("ro_gate").gated(&gate).echo();
/// let input = ToolInput::new("c1", "ro_gate", json!({ "path": "a" }));
/// let output = tool.call(input, ToolContext::detached()).await?;
/// assert_eq!(output.content, r#"{"path":"a"}"#);
/// assert_eq!(tool.log().order(), ["c1 started", "c1 ended"]);
/// # Ok::<(), youyou_agent::ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordingTool {
    definition: ToolDefinition,
    /// What happens before the answer, in order.
    acts: Vec<Act>,
    answer: Answer,
    log: CallLog,
}

#[derive(Debug, Clone)]
enum Act {
    Gate(Gate),
    Sleep(Duration),
    UntilTimedOut,
    UntilCancelRequested,
    Progress(String),
    Hang,
}

type Compute = dyn Fn(&ToolInput) -> Result<ToolOutput, ToolError> + Send + Sync;

#[derive(Clone)]
enum Answer {
    Output(Result<ToolOutput, ToolError>),
    Computed(Arc<Compute>),
    Panic(String),
    PanicWithoutText,
    PanicAtOnce(String),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output(output) => f.debug_tuple("Output").field(output).finish(),
            Self::Computed(_) => f.write_str("Computed(..)"),
            Self::Panic(message) => f.debug_tuple("Panic").field(message).finish(),
            Self::PanicWithoutText => f.write_str("PanicWithoutText"),
            Self::PanicAtOnce(message) => f.debug_tuple("PanicAtOnce").field(message).finish(),
        }
    }
}

impl RecordingTool {
    /// A tool that changes nothing.
    pub fn read_only(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            definition: ToolDefinition::new(
                &name,
                format!("The test tool {name}."),
                json!({ "type": "object" }),
            ),
            acts: Vec::new(),
            answer: Answer::Output(Ok(ToolOutput::text("ok"))),
            log: CallLog::new(),
        }
    }

    /// A tool that changes something.
    pub fn mutating(name: impl Into<String>) -> Self {
        let mut tool = Self::read_only(name);
        tool.definition.mutating = true;
        tool
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.definition.parameters = schema;
        self
    }

    /// Writes into this log, so that the calls of several tools stand in one order.
    #[must_use]
    pub fn logged_in(mut self, log: &CallLog) -> Self {
        self.log = log.clone();
        self
    }

    /// Waits at the gate, then goes on.
    #[must_use]
    pub fn gated(mut self, gate: &Gate) -> Self {
        self.acts.push(Act::Gate(gate.clone()));
        self
    }

    /// Takes this long, then goes on. For tests with paused time.
    #[must_use]
    pub fn taking(mut self, duration: Duration) -> Self {
        self.acts.push(Act::Sleep(duration));
        self
    }

    /// Waits until its time is up, then goes on: a tool that cleans up, or is too late.
    #[must_use]
    pub fn until_timed_out(mut self) -> Self {
        self.acts.push(Act::UntilTimedOut);
        self
    }

    /// Waits until the user cancels, then goes on: a tool that ends early.
    #[must_use]
    pub fn until_cancel_requested(mut self) -> Self {
        self.acts.push(Act::UntilCancelRequested);
        self
    }

    /// Reports progress, then goes on.
    #[must_use]
    pub fn saying(mut self, progress: impl Into<String>) -> Self {
        self.acts.push(Act::Progress(progress.into()));
        self
    }

    /// Never answers and does not care about its token.
    #[must_use]
    pub fn hanging(mut self) -> Self {
        self.acts.push(Act::Hang);
        self
    }

    /// Answers this.
    #[must_use]
    pub fn answering(mut self, output: impl Into<ToolOutput>) -> Self {
        self.answer = Answer::Output(Ok(output.into()));
        self
    }

    /// Answers what the function makes of the call.
    #[must_use]
    pub fn computing(
        mut self,
        answer: impl Fn(&ToolInput) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.answer = Answer::Computed(Arc::new(answer));
        self
    }

    /// Answers its arguments as JSON.
    #[must_use]
    pub fn echo(self) -> Self {
        self.computing(|input| Ok(ToolOutput::text(input.arguments.to_string())))
    }

    /// Answers `bytes` times the letter `a`.
    #[must_use]
    pub fn big(self, bytes: usize) -> Self {
        self.answering("a".repeat(bytes))
    }

    /// Fails with this message.
    #[must_use]
    pub fn failing(mut self, message: impl Into<String>) -> Self {
        let error = ToolError::new(message.into());
        self.answer = Answer::Output(Err(error));
        self
    }

    /// Panics with this message while it is awaited.
    #[must_use]
    pub fn panicking(mut self, message: impl Into<String>) -> Self {
        self.answer = Answer::Panic(message.into());
        self
    }

    /// Panics with something that is no text, while it is awaited.
    #[must_use]
    pub fn panicking_without_text(mut self) -> Self {
        self.answer = Answer::PanicWithoutText;
        self
    }

    /// Panics with this message before there is anything to await.
    #[must_use]
    pub fn panicking_at_once(mut self, message: impl Into<String>) -> Self {
        self.answer = Answer::PanicAtOnce(message.into());
        self
    }

    /// What was asked of the tool, and when.
    #[must_use]
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    #[expect(clippy::panic, reason = "the test asks for it")]
    async fn run(self, input: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let running = self.log.start(&input);
        for act in self.acts {
            match act {
                Act::Gate(gate) => gate.pass().await,
                Act::Sleep(duration) => tokio::time::sleep(duration).await,
                Act::UntilTimedOut => context.timed_out.cancelled().await,
                Act::UntilCancelRequested => context.cancel_requested.cancelled().await,
                Act::Progress(message) => context.progress(message),
                Act::Hang => std::future::pending().await,
            }
        }
        let answer = match self.answer {
            Answer::Output(output) => output,
            Answer::Computed(answer) => answer(&input),
            Answer::Panic(message) | Answer::PanicAtOnce(message) => panic!("{message}"),
            Answer::PanicWithoutText => std::panic::panic_any(7_u32),
        };
        running.end();
        answer
    }
}

impl ToolHandler for RecordingTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    // Written out instead of by `async_trait`, so that a panic can come before the future.
    #[expect(clippy::panic, reason = "the test asks for it")]
    fn call<'life0, 'async_trait>(
        &'life0 self,
        input: ToolInput,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        if let Answer::PanicAtOnce(message) = &self.answer {
            drop(self.log.start(&input));
            panic!("{message}");
        }
        Box::pin(self.clone().run(input, context))
    }
}

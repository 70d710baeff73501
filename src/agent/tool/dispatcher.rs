//! Running the calls of one response: batch rule, hooks, limits (chapters 5.1 and 5.4).
//!
//! Whatever goes wrong with a call is an error result to the model; its siblings and the
//! turn go on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::output::admitted;
use super::set::{Tool, ToolSet};
use super::{ToolContext, ToolInput, ToolOutput};
use crate::agent::config::AgentConfig;
use crate::agent::contain::Panicked;
use crate::agent::context::normalize::{CANCELLED, NOT_EXECUTED};
use crate::agent::error::{AgentError, ErrorCode, ErrorOrigin};
use crate::agent::event::AgentEventKind;
use crate::agent::event_log::TurnLog;
use crate::agent::hook::registry::{self, HookDeadline, Taps};
use crate::agent::hook::{AfterToolUse, BeforeToolUse, OnFault};
use crate::agent::journal::{Journal, Written};
use crate::agent::storage::{Interruption, SessionEvent, SessionEventKind};
use crate::agent::text::without_control_characters;

/// How long a tool may go on after its time was up, before it is dropped. Delays nothing.
const GRACE: Duration = Duration::from_secs(2);

/// A call as the model made it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool_name: Arc<str>,
    /// The arguments, or what is wrong with them.
    pub(crate) arguments: Result<Arc<Value>, String>,
    /// Whether the turn's limit was reached before it.
    pub(crate) over_limit: bool,
}

impl Call {
    /// Its result where its answer was cut, so that it never ran.
    pub(crate) fn never_run(&self, interruption: Interruption) -> SessionEventKind {
        let (text, error) = match interruption {
            Interruption::Cancelled => (CANCELLED, Some(ErrorCode::RequestCancelled)),
            Interruption::Failed | Interruption::ProcessEnded => (NOT_EXECUTED, None),
        };
        SessionEventKind::ToolResult {
            call_id: Arc::clone(&self.call_id),
            tool_name: Arc::clone(&self.tool_name),
            output: text.into(),
            is_error: true,
            error,
            metadata: None,
            duration_ms: 0,
        }
    }
}

/// What the calls of a response run with.
pub(crate) struct Dispatcher<'a> {
    pub(crate) tools: &'a ToolSet,
    pub(crate) taps: &'a Taps,
    pub(crate) config: &'a AgentConfig,
    pub(crate) journal: &'a Arc<Journal>,
    pub(crate) log: &'a Arc<TurnLog>,
    pub(crate) step: u32,
    /// Fires when the user cancels: what runs is awaited, what has not started is skipped.
    pub(crate) cancel: &'a CancellationToken,
}

/// What becomes the result of a call.
struct Outcome {
    output: Arc<str>,
    error: Option<ErrorCode>,
    metadata: Option<Arc<Value>>,
    duration: Duration,
}

impl Dispatcher<'_> {
    /// Runs all calls and answers with their stored events, in order of index.
    ///
    /// # Order
    /// All read-only: at once. Any mutating: one after another in the model's order, hooks
    /// included.
    pub(crate) async fn run(&self, calls: &[Call]) -> Vec<Arc<SessionEvent>> {
        let serial = calls.iter().any(|call| {
            self.tools
                .get(&call.tool_name)
                .is_some_and(|tool| tool.mutating)
        });
        let mut events: Vec<Arc<SessionEvent>> = match calls {
            [only] => self.run_call(only).await,
            _ if serial => {
                let mut events = Vec::with_capacity(calls.len() * 2);
                for call in calls {
                    events.extend(self.run_call(call).await);
                }
                events
            }
            _ => join_all(calls.iter().map(|call| self.run_call(call)))
                .await
                .concat(),
        };
        events.sort_by_key(|event| event.index);
        events
    }

    async fn run_call(&self, call: &Call) -> Vec<Arc<SessionEvent>> {
        if call.over_limit {
            let error = AgentError::max_tool_calls_exceeded(self.config.max_tool_calls_per_turn);
            return vec![self.unreached(call, &told(&error), Some(error.code)).await];
        }
        if self.cancel.is_cancelled() {
            return vec![self.unreached(call, CANCELLED, None).await];
        }
        let (tool, arguments) = match self.checked(call) {
            Ok(checked) => checked,
            Err(error) => return vec![self.rejected(call, &error).await],
        };
        // On the heap, and only where there are hooks: the future of a call stays small.
        let allowed = if self.taps.before_tool_use.is_empty() {
            Ok(arguments)
        } else {
            Box::pin(self.before(call, tool, arguments)).await
        };
        if self.cancel.is_cancelled() {
            return vec![self.unreached(call, CANCELLED, None).await];
        }
        let arguments = match allowed {
            Ok(arguments) => arguments,
            Err(error) => return vec![self.rejected(call, &error).await],
        };
        let started = self
            .record(SessionEventKind::ToolCall {
                call_id: Arc::clone(&call.call_id),
                tool_name: Arc::clone(&call.tool_name),
                arguments: Arc::clone(&arguments),
            })
            .await;
        self.publish_start(call, &arguments);
        let outcome = self.execute(call, tool, &arguments).await;
        let outcome = if self.taps.after_tool_use.is_empty() {
            outcome
        } else {
            Box::pin(self.after(call, outcome)).await
        };
        vec![started, self.finish(call, outcome).await]
    }

    fn checked(&self, call: &Call) -> Result<(&Tool, Arc<Value>), AgentError> {
        let tool = self
            .tools
            .get(&call.tool_name)
            .ok_or_else(|| AgentError::tool_not_found(&call.tool_name, &self.tools.names()))?;
        let arguments = call
            .arguments
            .as_ref()
            .map_err(|reason| AgentError::tool_execution(reason.clone()))?;
        tool.validate(arguments).map_err(|violation| {
            AgentError::tool_execution(format!(
                "the arguments do not fit the schema of \"{}\": {violation}; the tool was not run",
                tool.name
            ))
        })?;
        Ok((tool, Arc::clone(arguments)))
    }

    /// Runs the `BeforeToolUse` hooks. They fail closed.
    async fn before(
        &self,
        call: &Call,
        tool: &Tool,
        arguments: Arc<Value>,
    ) -> Result<Arc<Value>, AgentError> {
        let payload = BeforeToolUse {
            session_id: Arc::clone(self.log.session_id()),
            turn_id: Arc::clone(self.log.turn_id()),
            tool_name: Arc::clone(&call.tool_name),
            arguments,
            plugin_config: Arc::default(),
        };
        let run = registry::run(
            &self.taps.before_tool_use,
            payload,
            self.deadline(),
            |_: OnFault| true,
            |payload, changed| {
                tool.validate(&changed)?;
                payload.arguments = Arc::new(changed);
                Ok(())
            },
        )
        .await;
        match run.stopped {
            Some(stop) => Err(AgentError::hook_aborted(
                &stop.plugin_id,
                "BeforeToolUse",
                &format!("{}; the tool was not run", stop.reason),
            )),
            None => Ok(run.payload.arguments),
        }
    }

    /// Runs the tool in a task of its own, for at most `tool_timeout_ms`.
    async fn execute(&self, call: &Call, tool: &Tool, arguments: &Arc<Value>) -> Outcome {
        let began = Instant::now();
        let timed_out = CancellationToken::new();
        let context = ToolContext::new(self.log, &call.call_id, timed_out.clone());
        let input = ToolInput {
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            arguments: Value::clone(arguments),
        };
        let handler = Arc::clone(&tool.handler);
        let span = tracing::info_span!(
            "execute_tool",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = %tool.name,
            gen_ai.tool.call.id = %call.call_id,
        );
        let running = tracing::Instrument::instrument(
            async move { handler.call(input, context).await },
            span,
        );
        let mut task = AbortOnDropHandle::new(tokio::spawn(running));
        let limit = Duration::from_millis(self.config.tool_timeout_ms);
        let answered = tokio::time::timeout(limit, &mut task).await;
        let duration = began.elapsed();
        match answered {
            Ok(Ok(Ok(output))) => Outcome::of(output, self.config, duration),
            Ok(Ok(Err(error))) => Outcome::failed(
                &AgentError::tool_execution(error.message),
                self.config,
                duration,
            ),
            Ok(Err(stopped)) => {
                let reason = match stopped.try_into_panic() {
                    Ok(payload) => Panicked::from_payload(&*payload).to_string(),
                    Err(_) => "it was stopped".to_owned(),
                };
                let error = AgentError::tool_execution(format!(
                    "the tool \"{}\" has a fault: {reason}",
                    tool.name
                ));
                Outcome::failed(&error, self.config, duration)
            }
            Err(_) => {
                timed_out.cancel();
                // Owned by its limit: whatever the tool still does, it is dropped after it.
                tokio::spawn(async move {
                    let _late = tokio::time::timeout(GRACE, task).await;
                });
                let error = AgentError::tool_timeout(&tool.name, self.config.tool_timeout_ms);
                Outcome::failed(&error, self.config, duration)
            }
        }
    }

    /// Runs the `AfterToolUse` hooks over what the model will see.
    async fn after(&self, call: &Call, outcome: Outcome) -> Outcome {
        let payload = AfterToolUse {
            session_id: Arc::clone(self.log.session_id()),
            turn_id: Arc::clone(self.log.turn_id()),
            tool_name: Arc::clone(&call.tool_name),
            output: Arc::clone(&outcome.output),
            duration_ms: millis(outcome.duration),
            success: outcome.error.is_none(),
            plugin_config: Arc::default(),
        };
        let run = registry::run(
            &self.taps.after_tool_use,
            payload,
            self.deadline(),
            |on_fault| on_fault == OnFault::Deny,
            |payload, changed| {
                payload.output = admitted(changed, self.config.tool_output_limit_bytes).into();
                Ok(())
            },
        )
        .await;
        self.warn(run.warnings);
        match run.stopped {
            Some(stop) => {
                let error = AgentError::hook_aborted(
                    &stop.plugin_id,
                    "AfterToolUse",
                    &format!("{}; the tool ran, its output is withheld", stop.reason),
                );
                Outcome::failed(&error, self.config, outcome.duration)
            }
            None => Outcome {
                output: run.payload.output,
                ..outcome
            },
        }
    }

    fn deadline(&self) -> HookDeadline<'_> {
        HookDeadline {
            limit: Duration::from_millis(self.config.hook_timeout_ms),
            cancel: Some(self.cancel),
        }
    }

    fn publish_start(&self, call: &Call, arguments: &Arc<Value>) {
        self.log.push(AgentEventKind::ToolCallStart {
            step: self.step,
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            arguments: Arc::clone(arguments),
        });
    }

    /// A call that cannot run: it is shown, with what the model is told.
    async fn rejected(&self, call: &Call, error: &AgentError) -> Arc<SessionEvent> {
        let arguments = call.arguments.as_ref().map_or_else(
            |_| Arc::new(Value::Object(serde_json::Map::new())),
            Arc::clone,
        );
        let outcome = Outcome::failed(error, self.config, Duration::ZERO);
        let event = self.record(outcome.event(call)).await;
        self.publish_start(call, &arguments);
        self.publish_end(call, outcome);
        event
    }

    /// A call that was never reached: the model is told, nothing is shown.
    async fn unreached(
        &self,
        call: &Call,
        text: &str,
        error: Option<ErrorCode>,
    ) -> Arc<SessionEvent> {
        let outcome = Outcome {
            output: text.into(),
            error: error.or(Some(ErrorCode::RequestCancelled)),
            metadata: None,
            duration: Duration::ZERO,
        };
        self.record(outcome.event(call)).await
    }

    async fn finish(&self, call: &Call, outcome: Outcome) -> Arc<SessionEvent> {
        let event = self.record(outcome.event(call)).await;
        self.publish_end(call, outcome);
        event
    }

    fn publish_end(&self, call: &Call, outcome: Outcome) {
        self.log.push(AgentEventKind::ToolCallEnd {
            step: self.step,
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            duration_ms: millis(outcome.duration),
            success: outcome.error.is_none(),
            output: outcome.output,
            metadata: outcome.metadata,
            error: outcome.error,
        });
    }

    /// Stores an event before anything of it is published.
    async fn record(&self, kind: SessionEventKind) -> Arc<SessionEvent> {
        let event = self.journal.event(self.log.turn_id(), None, kind);
        if let Written::Failed(error) = self.journal.write(&event, self.cancel).await {
            self.log.push(AgentEventKind::Error { error });
        }
        event
    }

    fn warn(&self, warnings: Vec<String>) {
        for message in warnings {
            self.log.push(AgentEventKind::Warning {
                message,
                origin: ErrorOrigin::Plugin,
            });
        }
    }
}

impl Outcome {
    fn of(output: ToolOutput, config: &AgentConfig, duration: Duration) -> Self {
        Self {
            output: admitted(output.content, config.tool_output_limit_bytes).into(),
            error: output.is_error.then_some(ErrorCode::ToolExecutionError),
            metadata: output.metadata.map(Arc::new),
            duration,
        }
    }

    fn failed(error: &AgentError, config: &AgentConfig, duration: Duration) -> Self {
        Self {
            output: admitted(told(error), config.tool_output_limit_bytes).into(),
            error: Some(error.code),
            metadata: None,
            duration,
        }
    }

    fn event(&self, call: &Call) -> SessionEventKind {
        SessionEventKind::ToolResult {
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            output: Arc::clone(&self.output),
            is_error: self.error.is_some(),
            error: self.error,
            metadata: self.metadata.clone(),
            duration_ms: millis(self.duration),
        }
    }
}

/// What the model reads of an error: the code first.
fn told(error: &AgentError) -> String {
    without_control_characters(error.to_string())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! Running the calls of one response: batch rule, hooks, limits (chapters 5.1 and 5.4).
//!
//! Whatever goes wrong with a call is an error result to the model; its siblings and the
//! turn go on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::output::admitted;
use super::set::{Tool, ToolSet};
use super::storable;
use crate::agent::config::AgentConfig;
use crate::agent::error::{AgentError, ErrorOrigin};
use crate::agent::event::AgentEventKind;
use crate::agent::event_log::TurnLog;
use crate::agent::hook::registry::{self, HookDeadline, Taps};
use crate::agent::hook::{AfterToolUse, BeforeToolUse, OnFault};
use crate::agent::journal::{Journal, Written};
use crate::agent::notes::Notes;
use crate::agent::storage::{Interruption, SessionEvent, SessionEventKind};
use crate::agent::text::excerpt;

/// A call as the model made it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool_name: Arc<str>,
    /// The arguments, or what is wrong with them.
    pub(crate) arguments: Result<Arguments, String>,
    /// Whether the turn's limit was reached before it.
    pub(crate) over_limit: bool,
    /// How many calls of the same answer came after it and were dropped.
    pub(crate) dropped_after: usize,
}

impl Call {
    /// The arguments as they are shown: `{}` where they cannot be used.
    pub(crate) fn shown_arguments(&self) -> Arc<Value> {
        match &self.arguments {
            Ok(arguments) => Arc::clone(&arguments.value),
            Err(_) => Arc::new(Value::Object(serde_json::Map::new())),
        }
    }

    /// Its result where its answer was cut, so that it never ran.
    pub(crate) fn never_run(&self, interruption: Interruption, notes: &Notes) -> SessionEventKind {
        match interruption {
            Interruption::Cancelled => Outcome::cancelled(notes),
            Interruption::Failed | Interruption::ProcessEnded => Outcome::not_executed(notes),
        }
        .event(self)
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

impl Dispatcher<'_> {
    /// Runs all calls. Returns their stored events, in order of index.
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
            let outcome = Outcome::over_limit(call, self.config);
            return vec![self.record(outcome.event(call)).await];
        }
        if self.cancel.is_cancelled() {
            return vec![self.skipped(call).await];
        }
        let (tool, arguments) = match self.checked(call).await {
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
            return vec![self.skipped(call).await];
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
        // The write may have taken long. Without a result the record would read as a call whose
        // outcome is unknown.
        if self.cancel.is_cancelled() {
            return vec![started, self.skipped(call).await];
        }
        self.publish_start(call, &arguments);
        let outcome = self.execute(call, tool, &arguments).await;
        let outcome = if self.taps.after_tool_use.is_empty() {
            outcome
        } else {
            Box::pin(self.after(call, &arguments, outcome)).await
        };
        vec![started, self.finish(call, outcome).await]
    }

    async fn checked(&self, call: &Call) -> Result<(&Tool, Arc<Value>), AgentError> {
        let tool = self.tools.get(&call.tool_name).ok_or_else(|| {
            AgentError::tool_not_found(&excerpt(&call.tool_name, 200), &self.tools.names())
        })?;
        let arguments = call
            .arguments
            .as_ref()
            .map_err(|reason| AgentError::tool_execution(reason.clone()))?;
        tool.check(arguments).await.map_err(|violation| {
            AgentError::tool_execution(format!(
                "the arguments do not fit the schema of \"{}\": {violation}; the tool was not run",
                tool.name
            ))
        })?;
        Ok((tool, Arc::clone(&arguments.value)))
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
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            arguments,
            plugin_config: Arc::default(),
            cancel: None,
        };
        let run = registry::run(
            &self.taps.before_tool_use,
            payload,
            self.deadline(),
            |_: OnFault| true,
            |payload, changed| {
                let limit = self.config.tool_arguments_limit_bytes;
                let changed = storable::admit(changed, limit)
                    .map_err(|refused| format!("the arguments cannot be stored: {refused}"))?;
                tool.check_now(&changed.value, changed.bytes)?;
                payload.arguments = Arc::new(changed.value);
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

    /// Runs the `AfterToolUse` hooks over what the model will see.
    async fn after(&self, call: &Call, arguments: &Arc<Value>, outcome: Outcome) -> Outcome {
        let payload = AfterToolUse {
            session_id: Arc::clone(self.log.session_id()),
            turn_id: Arc::clone(self.log.turn_id()),
            call_id: Arc::clone(&call.call_id),
            tool_name: Arc::clone(&call.tool_name),
            arguments: Arc::clone(arguments),
            output: Arc::clone(&outcome.output),
            duration_ms: outcome.duration_ms(),
            success: !outcome.is_error,
            plugin_config: Arc::default(),
            cancel: None,
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
        self.warn(run.warnings, ErrorOrigin::Plugin);
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
        let outcome = Outcome::failed(error, self.config, Duration::ZERO);
        let event = self.record(outcome.event(call)).await;
        self.publish_start(call, &call.shown_arguments());
        self.publish_end(call, outcome);
        event
    }

    /// A call that a cancel came before: the model is told, nothing is shown.
    async fn skipped(&self, call: &Call) -> Arc<SessionEvent> {
        let outcome = Outcome::cancelled(&self.config.notes);
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
            duration_ms: outcome.duration_ms(),
            success: !outcome.is_error,
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

    pub(super) fn warn(&self, warnings: Vec<String>, origin: ErrorOrigin) {
        for message in warnings {
            self.log.push(AgentEventKind::Warning { message, origin });
        }
    }
}

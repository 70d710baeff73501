//! One tool at work: in a task of its own, for a limited time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::dispatcher::{Call, Dispatcher};
use super::inside::Marked;
use super::outcome::Outcome;
use super::set::Tool;
use super::{ToolContext, ToolInput, ToolOutput};
use crate::agent::contain::{self, Panicked};
use crate::agent::error::{AgentError, ErrorOrigin};

/// How long a tool may go on after its time was up, before it is dropped. Delays nothing.
const GRACE: Duration = Duration::from_secs(2);

impl Dispatcher<'_> {
    /// Runs the tool for at most `tool_timeout_ms`.
    pub(super) async fn execute(
        &self,
        call: &Call,
        tool: &Tool,
        arguments: &Arc<Value>,
    ) -> Outcome {
        let config = self.config;
        let began = Instant::now();
        let timed_out = CancellationToken::new();
        let mut task = self.spawn(call, tool, arguments, &timed_out);
        let limit = Duration::from_millis(config.tool_timeout_ms);
        let answered = tokio::time::timeout(limit, &mut task).await;
        let duration = began.elapsed();
        match answered {
            Ok(Ok(Ok(Ok(output)))) => {
                let (outcome, left_out) = Outcome::of(output, config, duration);
                if let Some(reason) = left_out {
                    let message = format!(
                        "the metadata of a result of the tool \"{}\" is left out: {reason}",
                        tool.name
                    );
                    self.warn(vec![message], ErrorOrigin::Tool);
                }
                outcome
            }
            Ok(Ok(Ok(Err(message)))) => Outcome::of_error(message, config, duration),
            Ok(Ok(Err(panicked))) => {
                let message = format!("the tool \"{}\" failed: {panicked}", tool.name);
                Outcome::failed(&AgentError::tool_execution(message), config, duration)
            }
            // Only the end of the runtime stops a call whose handle is still held.
            Ok(Err(_stopped)) => {
                let message = format!("the tool \"{}\" failed: it was stopped", tool.name);
                Outcome::failed(&AgentError::tool_execution(message), config, duration)
            }
            Err(_) => {
                timed_out.cancel();
                // Owned by its limit: whatever the tool still does, it is dropped after it.
                tokio::spawn(async move {
                    let _late = tokio::time::timeout(GRACE, task).await;
                });
                let error = AgentError::tool_timeout(&tool.name, config.tool_timeout_ms);
                Outcome::failed(&error, config, duration)
            }
        }
    }

    /// Starts the call in a task, so that a tool that blocks its thread takes no other call with
    /// it. Gives its output, the message of its error, or its panic: nothing else of the tool's
    /// leaves the place where a panic is contained.
    fn spawn(
        &self,
        call: &Call,
        tool: &Tool,
        arguments: &Arc<Value>,
        timed_out: &CancellationToken,
    ) -> AbortOnDropHandle<Result<Result<ToolOutput, String>, Panicked>> {
        // A child, so that a tool can fire only its own token.
        let cancel_requested = self.cancel.child_token();
        let context =
            ToolContext::new(self.log, &call.call_id, timed_out.clone(), cancel_requested);
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
        let marked = Marked::new(self.log.session_id(), &tool.name);
        let running = marked.future(contain::future(|| async move {
            let called = (*handler).call(input, context).await;
            called.map_err(|error| error.message)
        }));
        AbortOnDropHandle::new(tokio::spawn(running.instrument(span)))
    }
}

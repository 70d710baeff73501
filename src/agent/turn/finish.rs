//! How a turn ends: what its ending leaves in the conversation, TurnEnd hooks, the memory
//! checkpoint, and the session handed back before the last event.

use std::sync::Arc;

use super::{Ending, TurnRun};
use crate::agent::error::{AgentError, ErrorOrigin};
use crate::agent::event::{AgentEventKind, TurnStatus};
use crate::agent::hook::{TurnEnd, registry};
use crate::agent::storage::{Interruption, SessionEventKind, SessionMetadata};

impl TurnRun<'_> {
    /// The way out, the same for every ending. Returns the last event.
    pub(super) async fn finish(mut self, ending: Ending) -> AgentEventKind {
        let in_time = self.session.begin_finishing();
        // A cancel never hides that the message was not stored.
        if let Ending::Failed(error) = &ending
            && (in_time || !self.began)
        {
            self.log.push(AgentEventKind::Error {
                error: error.clone(),
            });
        }
        let ending = if in_time { ending } else { Ending::Cancelled };
        let interruption = match &ending {
            Ending::Completed => None,
            Ending::Failed(_) => Some(Interruption::Failed),
            Ending::Cancelled => Some(Interruption::Cancelled),
        };
        if let Some(interruption) = interruption
            && self.began
            && !self.interruption_noted
        {
            self.record(
                None,
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::TurnInterrupted { interruption },
                },
            )
            .await;
        }
        let output = self.run_turn_end().await;
        self.checkpoint_memories().await;
        self.work.context.set_skill(None);
        self.work.usage += self.usage;
        match ending {
            Ending::Cancelled => AgentEventKind::TurnCancelled { usage: self.usage },
            Ending::Completed => self.complete(TurnStatus::Completed, None, output),
            Ending::Failed(error) => self.complete(TurnStatus::Failed, Some(error), output),
        }
    }

    fn complete(
        &self,
        status: TurnStatus,
        error: Option<AgentError>,
        assistant_output: Arc<str>,
    ) -> AgentEventKind {
        AgentEventKind::TurnComplete {
            status,
            error: error.map(Box::new),
            stop_reason: self.stop_reason,
            assistant_output,
            usage: self.usage,
            session_usage: self.work.usage,
            context_tokens: self.work.context.tokens(),
            context_window: self.model.info.context_window,
        }
    }

    async fn run_turn_end(&mut self) -> Arc<str> {
        let output = std::mem::take(&mut self.output);
        if !self.announce_end || self.core().taps.turn_end.is_empty() {
            return output;
        }
        let run = registry::run(
            &self.core().taps.turn_end,
            TurnEnd {
                session_id: Arc::clone(&self.session.id),
                turn_id: Arc::clone(self.log.turn_id()),
                assistant_output: output,
                plugin_config: Arc::default(),
                cancel: None,
            },
            self.core().hook_limit_with(&self.cancel),
            |_| false,
            |payload, output| {
                payload.assistant_output = output.into();
                Ok(())
            },
        )
        .await;
        let mut warnings = run.warnings;
        warnings.extend(run.stopped.map(|stop| {
            format!(
                "the plugin \"{}\" aborted in TurnEnd, which is too late: {}",
                stop.plugin_id, stop.reason
            )
        }));
        self.warn(warnings, ErrorOrigin::Plugin);
        run.payload.assistant_output
    }

    /// A checkpoint is noted once it has ended: what a crash cuts off is extracted when the
    /// session is resumed.
    async fn checkpoint_memories(&mut self) {
        let core = Arc::clone(self.core());
        let Some(memory) = &mut self.work.memory else {
            return;
        };
        let ended = memory.take_finished();
        if memory.checkpoint_is_due(core.config.memory_checkpoint_interval) {
            memory.checkpoint(&core, &self.session.id, &self.model);
        }
        let Some(extracted) = ended else { return };
        self.work.usage += extracted.usage;
        if let Some(metadata) = extracted.metadata() {
            self.record(None, SessionEventKind::Metadata { metadata })
                .await;
        }
    }
}

//! The turn: the one place that decides what happens in which order (chapter 5.1).
//!
//! TurnStarted → TurnStart hooks → first write → (compaction → model → answer stored →
//! tools) until there is no call → TurnEnd hooks → the session is idle → the last event.

mod begin;
mod finish;
mod respond;
mod response;
mod stream;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::catalog::Model;
use super::config::SendOptions;
use super::contain;
use super::core::Core;
use super::error::{AgentError, ErrorOrigin};
use super::event::AgentEventKind;
use super::event_log::TurnLog;
use super::provider::{PromptBlock, StopReason, ToolSpec, Usage};
use super::storage::{Interruption, SessionEventKind, SessionMetadata};
use super::tool::dispatcher::{Call, Dispatcher};
use super::work::{Lease, NewMessage, OpenSession, SessionCore};
use respond::Answer;

/// How many calls beyond the limit of a turn are kept, so that the model is told of each. More
/// are dropped while the answer streams.
const CALLS_KEPT_BEYOND: usize = 64;

/// What a turn is asked to do.
pub(crate) struct TurnRequest {
    pub(crate) model: Model,
    pub(crate) cancel: CancellationToken,
    pub(crate) input: TurnInput,
    pub(crate) options: SendOptions,
}

/// What a turn is about.
#[derive(Debug)]
pub(crate) enum TurnInput {
    New(NewMessage),
    /// The last message again.
    Again,
}

/// A turn under way, with everything it works with.
pub(crate) struct TurnRun<'a> {
    session: &'a OpenSession,
    work: &'a mut SessionCore,
    log: &'a Arc<TurnLog>,
    model: Model,
    cancel: CancellationToken,
    input: Option<TurnInput>,
    options: SendOptions,
    system: Arc<[PromptBlock]>,
    tools: Arc<[ToolSpec]>,
    dynamic_sections: Vec<String>,
    /// What the turn has cost.
    usage: Usage,
    /// Why the model stopped in the newest response.
    stop_reason: Option<StopReason>,
    /// Text of the newest response.
    output: Arc<str>,
    tool_calls: u32,
    /// Whether a hook vetoed compaction in this turn.
    compaction_vetoed: bool,
    /// Whether the TurnEnd hooks run: not after a TurnStart abort.
    announce_end: bool,
    /// Whether the conversation says why this turn ended early.
    interruption_noted: bool,
    /// Whether the user's message was stored.
    began: bool,
}

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum Ending {
    Completed,
    Failed(AgentError),
    Cancelled,
}

/// Runs a turn to its end, whatever happens in it.
pub(crate) async fn run(mut lease: Lease, log: Arc<TurnLog>, request: TurnRequest) {
    let span = tracing::info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %log.session_id(),
        gen_ai.request.model = %request.model.id,
        turn = %log.turn_id(),
    );
    async {
        let session = Arc::clone(lease.open());
        let Some(work) = lease.work() else { return };
        let mut turn = TurnRun::new(&session, work, &log, request);
        turn.log.push(AgentEventKind::TurnStarted);
        let ending = match contain::future(|| turn.steps()).await {
            Ok(Ok(())) => Ending::Completed,
            Ok(Err(ending)) => ending,
            Err(panicked) => {
                Ending::Failed(AgentError::internal(format!("the turn failed: {panicked}")))
            }
        };
        let last = turn.finish(ending).await;
        lease.give_back(Some(last));
    }
    .instrument(span)
    .await;
}

impl<'a> TurnRun<'a> {
    fn new(
        session: &'a OpenSession,
        work: &'a mut SessionCore,
        log: &'a Arc<TurnLog>,
        request: TurnRequest,
    ) -> Self {
        Self {
            session,
            work,
            log,
            model: request.model,
            cancel: request.cancel,
            input: Some(request.input),
            options: request.options,
            system: Arc::default(),
            tools: Arc::default(),
            dynamic_sections: Vec::new(),
            usage: Usage::default(),
            stop_reason: None,
            output: Arc::default(),
            tool_calls: 0,
            compaction_vetoed: false,
            announce_end: true,
            interruption_noted: false,
            began: false,
        }
    }

    fn core(&self) -> &Arc<Core> {
        &self.session.core
    }

    async fn steps(&mut self) -> Result<(), Ending> {
        self.begin().await?;
        self.prepare().await;
        for step in 0.. {
            self.check_cancel()?;
            let answer = self.respond(step).await?;
            self.output = answer.text();
            self.stop_reason = answer.stop_reason;
            let calls = self.record_answer(answer).await?;
            if calls.is_empty() {
                return Ok(());
            }
            self.run_tools(step, calls).await?;
        }
        Ok(())
    }

    fn check_cancel(&self) -> Result<(), Ending> {
        if self.cancel.is_cancelled() {
            Err(Ending::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Stores an answer that is whole. Answers its calls.
    async fn record_answer(&mut self, answer: Answer) -> Result<Vec<Call>, Ending> {
        // An answer without calls is the end of the turn: a cancel either came before this
        // point, and the answer counts as cut, or it comes too late.
        let is_last = answer.calls.is_empty();
        let cut = is_last && !self.session.begin_finishing();
        let interruption = cut.then_some(Interruption::Cancelled);
        let calls = self.store_answer(answer, interruption).await;
        if cut {
            Err(Ending::Cancelled)
        } else {
            Ok(calls)
        }
    }

    /// Stores an answer, whole or cut, or what there is to say where it holds nothing.
    async fn store_answer(
        &mut self,
        answer: Answer,
        interruption: Option<Interruption>,
    ) -> Vec<Call> {
        let kind = if answer.parts.is_empty() {
            let metadata = match interruption {
                Some(interruption) => SessionMetadata::TurnInterrupted { interruption },
                None => SessionMetadata::TurnEndedSilently {
                    stop_reason: answer.stop_reason,
                },
            };
            SessionEventKind::Metadata { metadata }
        } else {
            answer.message(&self.model, interruption)
        };
        self.interruption_noted |= interruption.is_some();
        self.record(answer.reserved, kind).await;
        answer.calls
    }

    /// How many calls of the next answer are kept: those that may run, and some to tell the
    /// model that they did not.
    fn room_for_calls(&self) -> usize {
        let left = self
            .core()
            .config
            .max_tool_calls_per_turn
            .saturating_sub(self.tool_calls);
        usize::try_from(left)
            .unwrap_or(usize::MAX)
            .saturating_add(CALLS_KEPT_BEYOND)
    }

    async fn run_tools(&mut self, step: u32, mut calls: Vec<Call>) -> Result<(), Ending> {
        let limit = self.core().config.max_tool_calls_per_turn;
        for call in &mut calls {
            self.tool_calls = self.tool_calls.saturating_add(1);
            call.over_limit = self.tool_calls > limit;
        }
        let core = Arc::clone(self.core());
        let dispatcher = Dispatcher {
            tools: &core.tools,
            taps: &core.taps,
            config: &core.config,
            journal: &self.work.journal,
            log: self.log,
            step,
            cancel: &self.cancel,
        };
        let events = dispatcher.run(&calls).await;
        for event in &events {
            self.work.push(event);
        }
        if self.tool_calls > limit {
            return Err(Ending::Failed(AgentError::max_tool_calls_exceeded(limit)));
        }
        Ok(())
    }

    /// Stores an event of this turn and takes it into the context. A storage that has just
    /// gone down is told once; the turn goes on.
    async fn record(&mut self, reserved: Option<u64>, kind: SessionEventKind) {
        let turn_id = Arc::clone(self.log.turn_id());
        let recorded = self.work.record(&turn_id, reserved, kind, &self.cancel);
        if let Some(error) = recorded.await {
            self.log.push(AgentEventKind::Error { error });
        }
    }

    fn warn(&self, warnings: Vec<String>, origin: ErrorOrigin) {
        for message in warnings {
            self.log.push(AgentEventKind::Warning { message, origin });
        }
    }
}

//! The turn: the one place that decides what happens in which order (chapter 5.1).
//!
//! TurnStarted → TurnStart hooks → first write → (compaction → model → answer stored →
//! tools) until there is no call → TurnEnd hooks → the session is idle → the last event.

mod respond;
mod response;
mod stream;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::catalog::Model;
use super::contain;
use super::context::SkillPrompt;
use super::core::Core;
use super::error::{AgentError, ErrorSource};
use super::event::{AgentEventKind, TurnStatus};
use super::hook::registry;
use super::hook::{OnFault, TurnEnd, TurnStart, TurnStartChange};
use super::message::{ContentBlock, UserInput};
use super::outlet::TurnLog;
use super::prompt;
use super::provider::{PromptBlock, ToolSpec, Usage};
use super::session::{SendOptions, SessionInner, TurnInput, Work};
use super::storage::{Interruption, SessionEventKind, SessionMetadata};
use super::tool::dispatcher::{Call, Dispatcher};
use respond::Answer;

/// Longest title made from a user's words, in characters.
const TITLE_CHARS: usize = 40;
/// Title of a session that starts with an image alone.
const IMAGE_TITLE: &str = "Image";

/// A turn under way, with everything it works with.
pub(crate) struct TurnRun {
    session: Arc<SessionInner>,
    work: Box<Work>,
    log: Arc<TurnLog>,
    model: Model,
    cancel: CancellationToken,
    input: Option<TurnInput>,
    options: SendOptions,
    system: Arc<[PromptBlock]>,
    tools: Arc<[ToolSpec]>,
    dynamic_sections: Vec<String>,
    /// What the turn has cost.
    usage: Usage,
    /// Text of the newest response.
    output: Arc<str>,
    tool_calls: u32,
    /// Whether a hook or a lack of progress spoke against compaction in this turn.
    compaction_refused: bool,
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
pub(crate) async fn run(mut turn: TurnRun) {
    let span = tracing::info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %turn.session.id,
        gen_ai.request.model = %turn.model.id,
        turn = %turn.log.turn_id(),
    );
    async {
        turn.log.push(AgentEventKind::TurnStarted);
        let ending = match contain::future(|| turn.steps()).await {
            Ok(Ok(())) => Ending::Completed,
            Ok(Err(ending)) => ending,
            Err(panicked) => Ending::Failed(AgentError::internal(format!(
                "the turn has a fault: {panicked}"
            ))),
        };
        turn.finish(ending).await;
    }
    .instrument(span)
    .await;
}

impl TurnRun {
    pub(crate) fn new(
        session: Arc<SessionInner>,
        work: Box<Work>,
        log: Arc<TurnLog>,
        model: Model,
        cancel: CancellationToken,
        input: TurnInput,
        options: SendOptions,
    ) -> Self {
        Self {
            session,
            work,
            log,
            model,
            cancel,
            input: Some(input),
            options,
            system: Arc::default(),
            tools: Arc::default(),
            dynamic_sections: Vec::new(),
            usage: Usage::default(),
            output: Arc::default(),
            tool_calls: 0,
            compaction_refused: false,
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

    /// Hooks, then the first write.
    async fn begin(&mut self) -> Result<(), Ending> {
        let (content, skill) = match self.input.take() {
            Some(TurnInput::New { content, skill }) => (content, skill),
            Some(TurnInput::Again) | None => return self.begin_again().await,
        };
        let changed = self.run_turn_start(content.clone()).await?;
        let content = changed.unwrap_or(content);
        let skills = &self.core().skills;
        let prompt = skill
            .as_ref()
            .and_then(|name| skills.prompt(name, &content));
        let mut kinds = std::mem::take(&mut self.work.pending);
        let title = self.opening(&mut kinds, &content);
        kinds.push(SessionEventKind::UserMessage { content, skill });
        let written = self
            .work
            .journal
            .write_first(self.log.turn_id(), kinds.clone())
            .await;
        let events = match written {
            Ok(events) => events,
            Err(error) => {
                // Nothing is kept but what waited before: it goes with the next message.
                kinds.pop();
                kinds.retain(|kind| !is_opening(kind));
                self.work.pending = kinds;
                return Err(Ending::Failed(error));
            }
        };
        self.began = true;
        self.work.stored_model = Some(Arc::clone(&self.model.id));
        if let Some(title) = title {
            self.session.set_title(title);
        }
        if let (Some(text), Some(last)) = (prompt, events.last()) {
            self.work.context.set_skill(Some(SkillPrompt {
                before: last.index,
                text,
            }));
        }
        for event in &events {
            self.work.push(event);
        }
        Ok(())
    }

    /// What goes before the message: the session's creation, or a change of its model.
    /// Answers the title of a new session.
    fn opening(
        &self,
        kinds: &mut Vec<SessionEventKind>,
        content: &[ContentBlock],
    ) -> Option<String> {
        let model_id = Arc::clone(&self.model.id);
        if self.work.journal.is_unwritten() {
            let title = self.session.title().unwrap_or_else(|| title_of(content));
            kinds.insert(
                0,
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::Created {
                        title: title.clone(),
                        model_id,
                        overrides: self.session.overrides.clone(),
                    },
                },
            );
            return Some(title);
        }
        if self.work.stored_model.as_ref() != Some(&model_id) {
            kinds.push(SessionEventKind::Metadata {
                metadata: SessionMetadata::ModelChanged { model_id },
            });
        }
        None
    }

    /// The last message once more: its skill, if it called one, counts again.
    async fn begin_again(&mut self) -> Result<(), Ending> {
        let Some(said) = self.work.context.newest_user() else {
            return Err(Ending::Failed(AgentError::invalid_input(
                "there is no message to run again; send one",
            )));
        };
        let (index, content) = (said.index, said.content.to_vec());
        let skill = said.skill.map(str::to_owned);
        let _unchanged = self.run_turn_start(content.clone()).await?;
        let mut kinds = std::mem::take(&mut self.work.pending);
        let _titled = self.opening(&mut kinds, &content);
        if !kinds.is_empty() {
            let written = self
                .work
                .journal
                .write_first(self.log.turn_id(), kinds.clone())
                .await;
            match written {
                Ok(events) => events.iter().for_each(|event| self.work.push(event)),
                Err(error) => {
                    kinds.retain(|kind| !is_opening(kind));
                    self.work.pending = kinds;
                    return Err(Ending::Failed(error));
                }
            }
        }
        self.began = true;
        self.work.stored_model = Some(Arc::clone(&self.model.id));
        let prompt = skill.and_then(|name| self.core().skills.prompt(&name, &content));
        self.work.context.set_skill(prompt.map(|text| SkillPrompt {
            before: index,
            text,
        }));
        Ok(())
    }

    /// Answers the changed input, if a handler changed it.
    async fn run_turn_start(
        &mut self,
        content: Vec<ContentBlock>,
    ) -> Result<Option<Vec<ContentBlock>>, Ending> {
        if self.core().taps.turn_start.is_empty() {
            return Ok(None);
        }
        let mut changed = false;
        let mut sections = Vec::new();
        let run = registry::run(
            &self.core().taps.turn_start,
            TurnStart {
                session_id: Arc::clone(&self.session.id),
                turn_id: Arc::clone(self.log.turn_id()),
                user_input: content.into(),
                plugin_config: Arc::default(),
            },
            self.core().hook_limit_with(&self.cancel),
            |on_fault| on_fault == OnFault::Deny,
            |payload, change: TurnStartChange| {
                if let Some(content) = change.user_input {
                    let content = UserInput { content }
                        .checked()
                        .map_err(|error| error.message)?;
                    payload.user_input = content.into();
                    changed = true;
                }
                sections.extend(change.prompt_sections);
                Ok(())
            },
        )
        .await;
        self.dynamic_sections = sections;
        self.warn(run.warnings, ErrorSource::Plugin);
        if let Some(stop) = run.stopped {
            self.announce_end = false;
            return Err(Ending::Failed(AgentError::hook_aborted(
                &stop.plugin_id,
                "TurnStart",
                &stop.reason,
            )));
        }
        Ok(changed.then(|| run.payload.user_input.to_vec()))
    }

    /// Memories once per session, then the system prompt of this turn.
    async fn prepare(&mut self) {
        if self.work.memories.is_none()
            && let Some(memory) = &self.work.memory
        {
            let search = memory.search(self.core());
            let found = tokio::select! {
                biased;
                found = search => Some(found),
                () = self.cancel.cancelled() => None,
            };
            self.work.memories = found;
        }
        let (stable, tools) = self.work.prepare(&self.session, &self.model);
        self.system = prompt::with_dynamic(&stable, &self.dynamic_sections);
        self.tools = tools;
        self.work.context.set_fixed(&self.system, &self.tools);
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
                None => SessionMetadata::TurnEndedSilently,
            };
            SessionEventKind::Metadata { metadata }
        } else {
            answer.message(&self.model, interruption)
        };
        self.interruption_noted |= interruption.is_some();
        self.record(answer.reserved, kind).await;
        answer.calls
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
            log: &self.log,
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
        if let Some(error) = self.work.record(&turn_id, reserved, kind).await {
            self.log.push(AgentEventKind::Error { error });
        }
    }

    fn warn(&self, warnings: Vec<String>, source: ErrorSource) {
        for message in warnings {
            self.log.push(AgentEventKind::Warning { message, source });
        }
    }

    /// The way out, the same for every ending.
    async fn finish(mut self, ending: Ending) {
        let ending = if self.session.begin_finishing() {
            ending
        } else {
            Ending::Cancelled
        };
        if let Ending::Failed(error) = &ending {
            self.log.push(AgentEventKind::Error {
                error: error.clone(),
            });
        }
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
        self.work.usage.add(&self.usage);
        let last = match ending {
            Ending::Cancelled => AgentEventKind::TurnCancelled { usage: self.usage },
            Ending::Completed => self.complete(TurnStatus::Completed, None, output),
            Ending::Failed(error) => self.complete(TurnStatus::Failed, Some(error), output),
        };
        let log = Arc::clone(&self.log);
        self.session.give_back(self.work, || log.end(last)).wake();
    }

    fn complete(
        &self,
        status: TurnStatus,
        error: Option<AgentError>,
        assistant_output: Arc<str>,
    ) -> AgentEventKind {
        AgentEventKind::TurnComplete {
            status,
            error,
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
        self.warn(warnings, ErrorSource::Plugin);
        run.payload.assistant_output
    }

    async fn checkpoint_memories(&mut self) {
        let interval = self.core().config.memory_checkpoint_interval;
        let due = self
            .work
            .memory
            .as_mut()
            .is_some_and(|memory| memory.checkpoint_is_due(interval));
        if !due {
            return;
        }
        let core = Arc::clone(self.core());
        if let Some(memory) = &mut self.work.memory {
            memory.checkpoint(&core, &self.session.id, &self.model);
        }
        self.record(
            None,
            SessionEventKind::Metadata {
                metadata: SessionMetadata::MemoryCheckpoint,
            },
        )
        .await;
    }
}

/// Whether an event is made anew with the next first message.
fn is_opening(kind: &SessionEventKind) -> bool {
    matches!(
        kind,
        SessionEventKind::Metadata {
            metadata: SessionMetadata::Created { .. } | SessionMetadata::ModelChanged { .. }
        }
    )
}

/// A title from the user's own first words: one line, at most 40 characters.
fn title_of(content: &[ContentBlock]) -> String {
    let text = content.iter().find_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        ContentBlock::File { name, .. } => Some(name.as_str()),
        ContentBlock::Image { .. } => None,
    });
    let words: Vec<&str> = text.unwrap_or(IMAGE_TITLE).split_whitespace().collect();
    let line: String = words.join(" ").chars().take(TITLE_CHARS).collect();
    if line.is_empty() {
        IMAGE_TITLE.to_owned()
    } else {
        line
    }
}

//! The invariants of a request (chapter 5.2), kept by one fold over the stored events.
//!
//! Whatever the events say, the messages that come out are valid: each call is followed by
//! exactly one result in call order, ids are unique, nothing is blank, the first message is
//! user-side. The fold is pure and goes on event by event, so that a request costs nothing
//! per message of its history.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::estimate::{self, Quarters};
use crate::agent::message::{
    AssistantMessage, AssistantPart, ContentBlock, Message, Messages, ToolResultMessage,
    UserMessage, UserOrigin,
};
use crate::agent::storage::{
    CompactionRecord, Interruption, MessageStatus, SessionEvent, SessionEventKind, SessionMetadata,
};
use crate::agent::text::head_and_tail;

/// What the receiving model can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelProfile {
    /// Opaque data of other providers is left out.
    pub(crate) provider_id: Arc<str>,
    /// Without it images are placeholders.
    pub(crate) vision: bool,
}

/// The message a skill puts before the user's own, for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillPrompt {
    /// Index of the user message it precedes.
    pub(crate) before: u64,
    pub(crate) text: String,
}

/// The fold: events in, messages out.
#[derive(Debug)]
pub(crate) struct Normalizer {
    view: ModelProfile,
    skill: Option<SkillPrompt>,
    /// User messages whose images a model refused.
    refused: HashSet<u64>,
    /// Limits that a compaction set for results, in bytes.
    shortened: HashMap<Arc<str>, usize>,
    seen_ids: HashSet<Arc<str>>,
    open: Option<OpenRound>,
    messages: Messages,
    /// How many of them stand for messages that are gone.
    placeholders: usize,
    cost: Quarters,
}

/// An answer whose calls do not all have their result yet.
#[derive(Debug)]
struct OpenRound {
    parts: Vec<AssistantPart>,
    provider_data: Option<crate::agent::message::ProviderData>,
    interruption: Option<Interruption>,
    calls: Vec<OpenCall>,
}

#[derive(Debug)]
struct OpenCall {
    /// As stored; results are matched by it.
    stored_id: Arc<str>,
    /// As sent; differs where the stored one was empty or taken.
    id: Arc<str>,
    tool_name: Arc<str>,
    started: bool,
    result: Option<(Arc<str>, bool)>,
}

impl Normalizer {
    pub(crate) fn new(
        view: ModelProfile,
        compaction: Option<&CompactionRecord>,
        refused: HashSet<u64>,
        skill: Option<SkillPrompt>,
    ) -> Self {
        let mut this = Self {
            view,
            skill,
            refused,
            shortened: HashMap::new(),
            seen_ids: HashSet::new(),
            open: None,
            messages: Messages::default(),
            placeholders: 0,
            cost: 0,
        };
        if let Some(record) = compaction {
            this.shortened = record
                .shortened
                .iter()
                .map(|result| {
                    let limit = usize::try_from(result.max_bytes).unwrap_or(usize::MAX);
                    (Arc::clone(&result.call_id), limit)
                })
                .collect();
            if let Some(summary) = &record.summary {
                this.emit_user(
                    vec![ContentBlock::text(summary.clone())],
                    UserOrigin::Summary,
                );
            }
        }
        this
    }

    pub(crate) fn view(&self) -> &ModelProfile {
        &self.view
    }

    /// Sets the skill prompt of a user message that is still to come.
    pub(crate) fn expect_skill(&mut self, skill: Option<SkillPrompt>) {
        self.skill = skill;
    }

    /// The messages so far. Complete once every call has its result, which the turn sees
    /// to before it asks.
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// What the messages cost.
    pub(crate) fn cost(&self) -> Quarters {
        self.cost
    }

    /// How many messages are there, without those that stand for others.
    pub(crate) fn message_count(&self) -> usize {
        self.messages.len() - self.placeholders
    }

    /// Takes the next event.
    pub(crate) fn push(&mut self, event: &SessionEvent) {
        match &event.kind {
            SessionEventKind::UserMessage { content, .. } => {
                self.close_round();
                self.user(event.index, content);
            }
            SessionEventKind::AssistantMessage {
                parts,
                status,
                interruption,
                provider_id,
                provider_data,
                ..
            } => {
                self.close_round();
                // A storage may know only that it was cut.
                let cut = *status == MessageStatus::Incomplete;
                let interruption = interruption.or(cut.then_some(Interruption::Cancelled));
                self.assistant(parts, interruption, provider_id, provider_data);
            }
            SessionEventKind::ToolCall { call_id, .. } => {
                if let Some(call) = self.open_call(call_id) {
                    call.started = true;
                }
            }
            SessionEventKind::ToolResult {
                call_id,
                output,
                is_error,
                ..
            } => self.result(call_id, output, *is_error),
            SessionEventKind::SystemMessage { text } => {
                self.close_round();
                if !text.trim().is_empty() {
                    self.emit(Message::System(Arc::clone(text)));
                }
            }
            SessionEventKind::Metadata { metadata } => {
                if let SessionMetadata::TurnInterrupted { interruption } = metadata {
                    self.close_round();
                    self.emit(Message::System(interruption.note().into()));
                }
            }
        }
    }

    /// Ends an open round: calls without a result get one that tells the truth.
    pub(crate) fn close_round(&mut self) {
        let Some(round) = self.open.take() else {
            return;
        };
        if !round.parts.is_empty() {
            self.emit(Message::Assistant(AssistantMessage {
                parts: round.parts,
                provider_data: round.provider_data,
            }));
        }
        for call in round.calls {
            let (output, is_error) = call.result.unwrap_or_else(|| {
                let text = if call.started {
                    OUTCOME_UNKNOWN
                } else {
                    NOT_EXECUTED
                };
                (text.into(), true)
            });
            let content = self.fitting(&call.stored_id, output);
            self.emit(Message::ToolResult(ToolResultMessage {
                call_id: call.id,
                tool_name: call.tool_name,
                content,
                is_error,
            }));
        }
        if let Some(interruption) = round.interruption {
            self.emit(Message::System(interruption.note().into()));
        }
    }

    fn user(&mut self, index: u64, content: &[ContentBlock]) {
        if let Some(skill) = &self.skill
            && skill.before == index
        {
            let prompt = vec![ContentBlock::text(skill.text.clone())];
            self.emit_user(prompt, UserOrigin::Skill);
        }
        let placeholder = if self.refused.contains(&index) {
            Some(IMAGE_REFUSED)
        } else if self.view.vision {
            None
        } else {
            Some(IMAGE_UNSEEN)
        };
        let content: Vec<ContentBlock> = content
            .iter()
            .filter(|block| {
                // A stored blank can only come from elsewhere; it would be refused.
                !matches!(block, ContentBlock::Text { text } if text.trim().is_empty())
            })
            .map(|block| match (block, placeholder) {
                (ContentBlock::Image { .. }, Some(placeholder)) => ContentBlock::text(placeholder),
                _ => block.clone(),
            })
            .collect();
        if !content.is_empty() {
            self.emit_user(content, UserOrigin::Input);
        }
    }

    fn assistant(
        &mut self,
        parts: &[AssistantPart],
        interruption: Option<Interruption>,
        provider_id: &Arc<str>,
        provider_data: &Option<crate::agent::message::ProviderData>,
    ) {
        let same_provider = *provider_id == self.view.provider_id;
        let mut calls = Vec::new();
        let mut kept: Vec<AssistantPart> = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                AssistantPart::Text {
                    text,
                    provider_data,
                } => {
                    if !text.trim().is_empty() {
                        kept.push(AssistantPart::Text {
                            text: Arc::clone(text),
                            provider_data: provider_data.clone().filter(|_| same_provider),
                        });
                    }
                }
                AssistantPart::Reasoning {
                    text,
                    provider_data,
                } => {
                    let provider_data = provider_data.clone().filter(|_| same_provider);
                    if provider_data.is_some() || !text.trim().is_empty() {
                        kept.push(AssistantPart::Reasoning {
                            text: Arc::clone(text),
                            provider_data,
                        });
                    }
                }
                AssistantPart::ToolCall {
                    call_id,
                    tool_name,
                    arguments,
                    provider_data,
                } => {
                    let id = self.unique_id(call_id);
                    kept.push(AssistantPart::ToolCall {
                        call_id: Arc::clone(&id),
                        tool_name: Arc::clone(tool_name),
                        arguments: Arc::clone(arguments),
                        provider_data: provider_data.clone().filter(|_| same_provider),
                    });
                    calls.push(OpenCall {
                        stored_id: Arc::clone(call_id),
                        id,
                        tool_name: Arc::clone(tool_name),
                        started: false,
                        result: None,
                    });
                }
            }
        }
        // Reasoning alone is no answer; providers refuse it without text or calls.
        if kept
            .iter()
            .all(|part| matches!(part, AssistantPart::Reasoning { .. }))
        {
            kept.clear();
        }
        self.open = Some(OpenRound {
            parts: kept,
            provider_data: provider_data.clone().filter(|_| same_provider),
            interruption,
            calls,
        });
        self.close_if_answered();
    }

    fn result(&mut self, call_id: &str, output: &Arc<str>, is_error: bool) {
        // A result without a call is left out: no provider takes it.
        if let Some(call) = self.open_call(call_id) {
            call.result = Some((Arc::clone(output), is_error));
            self.close_if_answered();
        }
    }

    fn open_call(&mut self, stored_id: &str) -> Option<&mut OpenCall> {
        let round = self.open.as_mut()?;
        round
            .calls
            .iter_mut()
            .find(|call| &*call.stored_id == stored_id && call.result.is_none())
    }

    fn close_if_answered(&mut self) {
        let answered = self
            .open
            .as_ref()
            .is_some_and(|round| round.calls.iter().all(|call| call.result.is_some()));
        if answered {
            self.close_round();
        }
    }

    /// The id itself, or one derived from it where it is empty or taken.
    fn unique_id(&mut self, id: &Arc<str>) -> Arc<str> {
        let mut unique = Arc::clone(id);
        let mut n = 1;
        while unique.is_empty() || self.seen_ids.contains(&unique) {
            n += 1;
            let base = if id.is_empty() { "call" } else { id };
            unique = format!("{base}_{n}").into();
        }
        self.seen_ids.insert(Arc::clone(&unique));
        unique
    }

    fn fitting(&self, stored_id: &str, output: Arc<str>) -> Arc<str> {
        let output = match self.shortened.get(stored_id) {
            Some(limit) => match head_and_tail(&output, *limit) {
                std::borrow::Cow::Borrowed(_) => output,
                std::borrow::Cow::Owned(cut) => cut.into(),
            },
            None => output,
        };
        if output.trim().is_empty() {
            NO_OUTPUT.into()
        } else {
            output
        }
    }

    fn emit_user(&mut self, content: Vec<ContentBlock>, origin: UserOrigin) {
        self.placeholders += usize::from(origin == UserOrigin::Summary);
        self.emit(Message::User(UserMessage { content, origin }));
    }

    fn emit(&mut self, message: Message) {
        if self.messages.is_empty() && !matches!(message, Message::User(_)) {
            self.emit_user(
                vec![ContentBlock::text(EARLIER_MISSING)],
                UserOrigin::Summary,
            );
        }
        self.cost += estimate::message(&message);
        self.messages.push(message);
    }
}

/// Result of a call that never ran.
pub(crate) const NOT_EXECUTED: &str = "[not executed] This call did not run.";
/// Result of a call that was skipped because the user cancelled.
pub(crate) const CANCELLED: &str = "[已取消] not executed";
/// Result of a call that was running when the process ended.
const OUTCOME_UNKNOWN: &str = "[outcome unknown] The program ended while this call was running. It may or may not have taken effect; check before you repeat it.";
/// What the model reads where a tool said nothing.
const NO_OUTPUT: &str = "(no output)";
const IMAGE_UNSEEN: &str = "[An image is left out here: this model cannot see images.]";
const IMAGE_REFUSED: &str = "[An image is left out here: the model refused it.]";
const EARLIER_MISSING: &str = "[Earlier messages are not available.]";

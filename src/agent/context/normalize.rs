//! The invariants of a request (chapter 5.2), kept by one fold over the stored events.
//!
//! Whatever the events say, the messages that come out are valid: each call is followed by
//! exactly one result in call order, ids are unique, nothing is blank, the first message is
//! user-side. The fold is pure and goes on event by event, so that a request costs nothing
//! per message of its history.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::estimate::{self, Quarters};
use crate::agent::message::{
    AssistantMessage, AssistantPart, ContentBlock, Message, Messages, ToolResultMessage,
    UserMessage, UserOrigin,
};
use crate::agent::notes::Notes;
use crate::agent::storage::{
    CompactionRecord, Interruption, SessionEvent, SessionEventKind, SessionMetadata,
};
use crate::agent::text::head_and_tail;

/// What the receiving model can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelProfile {
    /// Opaque data of other providers is left out.
    pub(crate) provider_id: Arc<str>,
    pub(crate) images: Images,
}

/// What becomes of the images of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// The model is shown them.
    Shown,
    /// The model cannot see images: placeholders.
    Unseen,
    /// The model refused a request with them: placeholders.
    Refused,
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
    notes: Arc<Notes>,
    profile: ModelProfile,
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
        notes: &Arc<Notes>,
        profile: ModelProfile,
        compaction: Option<&CompactionRecord>,
        refused: HashSet<u64>,
        skill: Option<SkillPrompt>,
    ) -> Self {
        let mut this = Self {
            notes: Arc::clone(notes),
            profile,
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
                // A blank one can only come from elsewhere; it would be refused.
                let text = match summary.trim() {
                    "" => this.notes.earlier_removed.to_string(),
                    _ => summary.clone(),
                };
                this.emit_user(vec![ContentBlock::text(text)], UserOrigin::Summary);
            }
        }
        this
    }

    pub(crate) fn profile(&self) -> &ModelProfile {
        &self.profile
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
                provider_id,
                provider_data,
                ..
            } => {
                self.close_round();
                // No note follows what the model itself ended: it goes on from a cut text.
                self.assistant(parts, event.interruption(), provider_id, provider_data);
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
                let note = match metadata {
                    SessionMetadata::TurnInterrupted { interruption } => {
                        self.notes.interruption(*interruption)
                    }
                    SessionMetadata::TurnEndedSilently { .. } => {
                        self.close_round();
                        self.note_silence();
                        return;
                    }
                    _ => return,
                };
                let note = note.into();
                self.close_round();
                self.emit(Message::System(note));
            }
        }
    }

    /// Ends an open round: calls without a result get one that tells the truth.
    pub(crate) fn close_round(&mut self) {
        let Some(round) = self.open.take() else {
            return;
        };
        let says_nothing = round.parts.is_empty();
        if !says_nothing {
            self.emit(Message::Assistant(AssistantMessage {
                parts: round.parts,
                provider_data: round.provider_data,
            }));
        }
        for call in round.calls {
            let (output, is_error) = call.result.unwrap_or_else(|| {
                let text = if call.started {
                    &self.notes.call_outcome_unknown
                } else {
                    &self.notes.call_not_executed
                };
                (text.as_ref().into(), true)
            });
            let content = self.fitting(&call.stored_id, output);
            self.emit(Message::ToolResult(ToolResultMessage {
                call_id: call.id,
                tool_name: call.tool_name,
                content,
                is_error,
            }));
        }
        match round.interruption {
            Some(interruption) => {
                let note = self.notes.interruption(interruption).into();
                self.emit(Message::System(note));
            }
            None if says_nothing => self.note_silence(),
            None => {}
        }
    }

    /// Two messages of the user never stand side by side without a word between them.
    fn note_silence(&mut self) {
        let last = self.messages.last();
        if last.is_some_and(|last| matches!(&**last, Message::User(_))) {
            let note = self.notes.no_answer.as_ref().into();
            self.emit(Message::System(note));
        }
    }

    fn user(&mut self, index: u64, content: &[ContentBlock]) {
        if let Some(skill) = &self.skill
            && skill.before == index
        {
            let prompt = vec![ContentBlock::text(skill.text.clone())];
            self.emit_user(prompt, UserOrigin::Skill);
        }
        let placeholder = match self.profile.images {
            _ if self.refused.contains(&index) => Some(&self.notes.image_refused),
            Images::Refused => Some(&self.notes.image_refused),
            Images::Unseen => Some(&self.notes.image_unseen),
            Images::Shown => None,
        };
        let content: Vec<ContentBlock> = content
            .iter()
            // A stored blank can only come from elsewhere; it would be refused.
            .filter(|block| !block.is_blank())
            .map(|block| match (block, placeholder) {
                (ContentBlock::Image { .. }, Some(placeholder)) => {
                    ContentBlock::text(placeholder.as_ref())
                }
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
        let same_provider = *provider_id == self.profile.provider_id;
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
                    let tool_name = legal_name(tool_name);
                    // What is no object can only come from elsewhere; it would be refused.
                    let arguments = if arguments.is_object() {
                        Arc::clone(arguments)
                    } else {
                        Arc::new(Value::Object(Map::new()))
                    };
                    kept.push(AssistantPart::ToolCall {
                        call_id: Arc::clone(&id),
                        tool_name: Arc::clone(&tool_name),
                        arguments,
                        provider_data: provider_data.clone().filter(|_| same_provider),
                    });
                    calls.push(OpenCall {
                        stored_id: Arc::clone(call_id),
                        id,
                        tool_name,
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
        while unique.trim().is_empty() || self.seen_ids.contains(&unique) {
            n += 1;
            let base = if id.trim().is_empty() { "call" } else { id };
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
            self.notes.no_output.as_ref().into()
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
                vec![ContentBlock::text(self.notes.earlier_missing.as_ref())],
                UserOrigin::Summary,
            );
        }
        self.cost += estimate::message(&message);
        self.messages.push(message);
    }
}

/// Longest name of a tool, in characters.
const MAX_NAME: usize = 64;
/// Stands for a name that the model left empty.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// The name itself if every provider takes it; else with other characters replaced. A model
/// may have made it up, and a foreign record may hold anything.
fn legal_name(name: &Arc<str>) -> Arc<str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() {
        return UNKNOWN_TOOL.into();
    }
    if name.len() <= MAX_NAME && name.chars().all(legal) {
        return Arc::clone(name);
    }
    let replaced = name.chars().take(MAX_NAME);
    let replaced: String = replaced.map(|c| if legal(c) { c } else { '_' }).collect();
    replaced.into()
}

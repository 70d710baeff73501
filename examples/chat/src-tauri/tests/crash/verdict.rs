//! What must be stored, given what was told and what the tools left behind.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use youyou_agent::{
    AgentEvent, AgentEventKind, AssistantPart, ContentBlock, MessageStatus, SessionEvent,
    SessionEventKind, SessionLog, SessionMetadata, TurnStatus,
};

use super::conversation::answer;

/// What an answer says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    reasoning: String,
}

/// Everything that is wrong, in words.
pub(crate) fn losses(told: &[AgentEvent], log: &SessionLog, left_by_tools: &str) -> Vec<String> {
    let mut losses = Vec::new();
    if log.unreadable > 0 {
        losses.push(format!("{} records cannot be read", log.unreadable));
    }
    let gap = log
        .events
        .iter()
        .zip(0..)
        .find(|(event, index)| event.index != *index);
    if let Some((event, index)) = gap {
        losses.push(format!("index {index} is missing before {}", event.index));
    }
    let stored = Stored::of(log);
    losses.extend(told_but_not_stored(told, &stored));
    losses.extend(wrongly_stored(&stored));
    losses.extend(tools(&stored, left_by_tools));
    losses
}

/// The stored events, to be looked up.
#[derive(Default)]
struct Stored<'a> {
    all: &'a [SessionEvent],
    calls: HashMap<&'a str, &'a serde_json::Value>,
    results: HashMap<&'a str, &'a str>,
    /// The number in the user's message.
    numbers: HashMap<&'a str, u32>,
    /// The answers of each turn, in order of its rounds.
    answers: HashMap<&'a str, Vec<(Said, MessageStatus)>>,
}

impl<'a> Stored<'a> {
    fn of(log: &'a SessionLog) -> Self {
        let mut stored = Self {
            all: &log.events,
            ..Self::default()
        };
        for event in &log.events {
            match &event.kind {
                SessionEventKind::UserMessage { content, .. } => {
                    let Some(ContentBlock::Text { text }) = content.first() else {
                        continue;
                    };
                    let number = text.rsplit(' ').next().and_then(|word| word.parse().ok());
                    stored
                        .numbers
                        .extend(number.map(|number| (&*event.turn_id, number)));
                }
                SessionEventKind::AssistantMessage { parts, status, .. } => {
                    let answers = stored.answers.entry(&event.turn_id).or_default();
                    answers.push((said(parts), *status));
                }
                SessionEventKind::ToolCall {
                    call_id, arguments, ..
                } => {
                    stored.calls.insert(call_id, arguments);
                }
                SessionEventKind::ToolResult {
                    call_id, output, ..
                } => {
                    stored.results.insert(call_id, output);
                }
                _ => {}
            }
        }
        stored
    }

    fn was_compacted(&self, turn_id: &str, before: u64) -> bool {
        self.all.iter().any(|event| match &event.kind {
            SessionEventKind::Metadata {
                metadata: SessionMetadata::Compacted(record),
            } => &*event.turn_id == turn_id && record.tokens_before == before,
            _ => false,
        })
    }
}

pub(crate) fn said(parts: &[AssistantPart]) -> Said {
    let mut said = Said::default();
    for part in parts {
        match part {
            AssistantPart::Text { text, .. } => said.text.push_str(text),
            AssistantPart::Reasoning { text, .. } => said.reasoning.push_str(text),
            _ => {}
        }
    }
    said
}

/// Every event is stored before it is told; of deltas that holds as soon as anything else of
/// the turn was told after them.
fn told_but_not_stored(told: &[AgentEvent], stored: &Stored<'_>) -> Vec<String> {
    let mut losses = Vec::new();
    // What was shown, by turn and round, as long as nothing came after it.
    let mut open: BTreeMap<(Arc<str>, u32), Said> = BTreeMap::new();
    for event in told {
        let turn = &event.turn_id;
        let mut expect = |ok: bool, what: &str| {
            if !ok {
                losses.push(format!("turn {turn}, event {}: {what}", event.sequence));
            }
        };
        match &event.kind {
            AgentEventKind::TurnStarted | AgentEventKind::ToolProgress { .. } => continue,
            AgentEventKind::TextDelta { step, delta, .. } => {
                expect(
                    stored.numbers.contains_key(&**turn),
                    "its message is missing",
                );
                let said = open.entry((Arc::clone(turn), *step)).or_default();
                said.text.push_str(delta);
                continue;
            }
            AgentEventKind::ReasoningDelta { step, delta, .. } => {
                expect(
                    stored.numbers.contains_key(&**turn),
                    "its message is missing",
                );
                let said = open.entry((Arc::clone(turn), *step)).or_default();
                said.reasoning.push_str(delta);
                continue;
            }
            AgentEventKind::ToolCallStart {
                call_id, arguments, ..
            } => expect(
                stored.calls.get(&**call_id) == Some(&&**arguments),
                "its call is missing",
            ),
            AgentEventKind::ToolCallEnd {
                call_id,
                output,
                success,
                ..
            } => {
                expect(*success, "a tool failed");
                expect(
                    stored.results.get(&**call_id) == Some(&&**output),
                    "its result is missing",
                );
            }
            AgentEventKind::ContextCompacted { tokens_before, .. } => expect(
                stored.was_compacted(turn, *tokens_before),
                "its compaction is missing",
            ),
            AgentEventKind::TurnComplete {
                status,
                error,
                assistant_output,
                ..
            } => {
                expect(
                    *status == TurnStatus::Completed,
                    &format!("the turn failed: {error:?}"),
                );
                let last = stored.answers.get(&**turn).and_then(|all| all.last());
                expect(
                    last.is_some_and(|(said, _)| *said.text == **assistant_output),
                    "its answer is missing",
                );
            }
            other => expect(false, &format!("unexpected: {other:?}")),
        }
        // Something came after these texts, so they are stored, whole.
        for ((turn, step), said) in std::mem::take(&mut open) {
            let answers = stored.answers.get(&*turn);
            let found = answers.and_then(|answers| answers.get(step as usize));
            if found
                .is_none_or(|(found, status)| *found != said || *status != MessageStatus::Complete)
            {
                losses.push(format!(
                    "turn {turn}, round {step}: told {said:?}, stored {found:?}"
                ));
            }
        }
    }
    losses
}

/// No stored answer says anything the model did not; a whole one says all of it.
fn wrongly_stored(stored: &Stored<'_>) -> Vec<String> {
    let mut losses = Vec::new();
    for (turn, answers) in &stored.answers {
        let Some(number) = stored.numbers.get(turn) else {
            losses.push(format!("turn {turn} has answers and no message"));
            continue;
        };
        for ((said, status), round) in answers.iter().zip(0..) {
            let whole = answer(*number, round);
            let fits = match status {
                MessageStatus::Complete => said.text == whole,
                MessageStatus::Incomplete => whole.starts_with(&said.text),
            };
            if !fits {
                losses.push(format!(
                    "turn {turn}, round {round}: stored {said:?} as {status:?}"
                ));
            }
        }
    }
    losses
}

/// A tool runs once, and only after its call was stored.
fn tools(stored: &Stored<'_>, left_by_tools: &str) -> Vec<String> {
    let announced: HashSet<&str> = stored
        .calls
        .values()
        .filter_map(|arguments| arguments.get("line")?.as_str())
        .collect();
    let mut losses = Vec::new();
    let mut seen = HashSet::new();
    for line in left_by_tools.lines() {
        if !seen.insert(line) {
            losses.push(format!("the tool call {line} ran twice"));
        }
        if !announced.contains(line) {
            losses.push(format!("the tool call {line} ran and is not stored"));
        }
    }
    let unknown = stored
        .results
        .keys()
        .filter(|call_id| !stored.calls.contains_key(*call_id));
    losses.extend(unknown.map(|call_id| format!("a result without its call {call_id}")));
    losses
}

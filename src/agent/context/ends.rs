//! How the last turn ended, and where it goes on from when it is run again.

// Requirements: 5.1 retry_turn, 13 A conversation one can bend.

use std::sync::Arc;

use super::Context;
use crate::agent::message::{AssistantPart, ContentBlock};
use crate::agent::storage::{SessionEvent, SessionEventKind, SessionMetadata};

impl Context {
    /// Whether the last turn did not end with a whole answer, so that it can be run again.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.events
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                SessionEventKind::UserMessage { .. }
                | SessionEventKind::ToolCall { .. }
                | SessionEventKind::ToolResult { .. } => Some(true),
                SessionEventKind::AssistantMessage { parts, .. } => Some(
                    event.interruption().is_some()
                        || parts
                            .iter()
                            .any(|part| matches!(part, AssistantPart::ToolCall { .. })),
                ),
                SessionEventKind::Metadata { metadata } => match metadata {
                    SessionMetadata::TurnInterrupted { .. } => Some(true),
                    SessionMetadata::TurnEndedSilently { .. } => Some(false),
                    _ => None,
                },
                SessionEventKind::SystemMessage { .. } => None,
            })
            .unwrap_or(false)
    }

    /// Whether the last turn ends in the open: neither answered nor marked as interrupted.
    pub(crate) fn ends_in_the_open(&self) -> bool {
        let marked = self
            .events
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::TurnInterrupted { .. },
                } => Some(true),
                SessionEventKind::AssistantMessage { .. } => Some(event.interruption().is_some()),
                SessionEventKind::UserMessage { .. } => Some(false),
                // Calls belong to their answer, which says whether it was cut.
                _ => None,
            });
        self.is_unanswered() && marked != Some(true)
    }

    /// A user message as a `TurnStart` handler changed it.
    pub(crate) fn rewritten(
        &self,
        index: u64,
        content: Vec<ContentBlock>,
    ) -> Option<Arc<SessionEvent>> {
        let event = self.events.iter().find(|event| event.index == index)?;
        let mut changed = SessionEvent::clone(event);
        if let SessionEventKind::UserMessage { content: own, .. } = &mut changed.kind {
            *own = content;
        }
        Some(Arc::new(changed))
    }

    /// Takes an event in place of the one with its index.
    pub(crate) fn replace(&mut self, event: &Arc<SessionEvent>) {
        let mut events = self.events.iter_mut();
        if let Some(known) = events.find(|known| known.index == event.index) {
            *known = Arc::clone(event);
            self.refold();
        }
    }

    /// Leaves out what came after an event. Returns how many messages are gone with it.
    pub(crate) fn rewind(&mut self, to: u64) -> u32 {
        let after = self.events.iter().filter(|event| event.index > to);
        let gone = after.filter(|event| event.is_message()).count();
        self.events.retain(|event| event.index <= to);
        self.refold();
        u32::try_from(gone).unwrap_or(u32::MAX)
    }

    /// Where the last turn goes on from when it is run again: after its last whole round of
    /// calls, so that no tool runs twice, else after its message. What compactions stored there
    /// stays.
    pub(crate) fn retry_point(&self) -> Option<u64> {
        let message = self.newest_user()?.index;
        let mut point = message;
        let mut in_round = false;
        for event in self.events.iter().filter(|event| event.index > message) {
            match &event.kind {
                SessionEventKind::AssistantMessage { parts, .. } => {
                    let calls = parts
                        .iter()
                        .any(|part| matches!(part, AssistantPart::ToolCall { .. }));
                    in_round = event.interruption().is_none() && calls;
                    if !in_round {
                        break;
                    }
                }
                SessionEventKind::ToolCall { .. } | SessionEventKind::ToolResult { .. }
                    if in_round => {}
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::Compacted(_),
                } => {}
                _ => continue,
            }
            point = event.index;
        }
        Some(point)
    }

    /// Whether anything came after an event.
    pub(crate) fn goes_beyond(&self, index: u64) -> bool {
        self.events.last().is_some_and(|last| last.index > index)
    }
}

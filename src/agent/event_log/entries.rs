//! What the log of a turn holds.

use std::sync::Arc;

use super::log::TurnLog;
use super::size::{PART_JSON_BYTES, event_bytes, json_bytes};
use crate::agent::event::{AgentEvent, AgentEventKind};

/// Dropped entries that are left where they are: moving the others is worth it for more.
const FEW_DROPPED: usize = 64;

/// Entries in order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) list: Vec<Entry>,
    /// How many of them are dropped.
    dropped: usize,
    /// Raised when entries have moved.
    pub(super) moves: usize,
}

#[derive(Debug)]
pub(super) enum Entry {
    Event(AgentEvent),
    Deltas(Deltas),
    /// Was the event with this number.
    Dropped(u64),
}

/// Neighbouring deltas of one kind and step: one text, and where each part ends.
#[derive(Debug)]
pub(super) struct Deltas {
    kind: DeltaKind,
    step: u32,
    pub(super) first_sequence: u64,
    text: String,
    /// Never empty.
    pub(super) parts: Vec<Part>,
}

/// The end of a part in its text, and its time after the start of the turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    end: u32,
    after_ms: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeltaKind {
    Text,
    Reasoning,
}

/// A part of a text on its way into the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewPart<'a> {
    pub(super) kind: DeltaKind,
    pub(super) step: u32,
    pub(super) text: &'a str,
    pub(super) sequence: u64,
    pub(super) after_ms: u32,
}

impl Entry {
    pub(super) fn last_sequence(&self) -> u64 {
        match self {
            Self::Event(event) => event.sequence,
            Self::Deltas(deltas) => deltas.last_sequence(),
            Self::Dropped(sequence) => *sequence,
        }
    }
}

impl Entries {
    pub(super) fn push(&mut self, event: AgentEvent) {
        self.list.push(Entry::Event(event));
    }

    pub(super) fn push_part(&mut self, part: NewPart<'_>) {
        let NewPart {
            kind,
            step,
            text,
            sequence,
            after_ms,
        } = part;
        if let Some(Entry::Deltas(deltas)) = self.list.last_mut()
            && deltas.kind == kind
            && deltas.step == step
            && deltas.last_sequence() + 1 == sequence
            && let Ok(end) = u32::try_from(deltas.text.len() + text.len())
        {
            deltas.text.push_str(text);
            deltas.parts.push(Part { end, after_ms });
            return;
        }
        self.list.push(Entry::Deltas(Deltas {
            kind,
            step,
            first_sequence: sequence,
            text: text.to_owned(),
            parts: vec![Part {
                // A part is at most PART_JSON_BYTES long.
                end: u32::try_from(text.len()).unwrap_or(u32::MAX),
                after_ms,
            }],
        }));
    }

    /// Drops the event with this number; its number becomes a gap.
    pub(super) fn drop_event(&mut self, sequence: u64) {
        let at = self.first_after(sequence.saturating_sub(1));
        let Some(entry) = self.list.get_mut(at) else {
            return;
        };
        if !matches!(entry, Entry::Event(event) if event.sequence == sequence) {
            return;
        }
        *entry = Entry::Dropped(sequence);
        self.dropped += 1;
        if self.dropped > FEW_DROPPED && self.dropped > self.list.len() / 2 {
            self.list
                .retain(|entry| !matches!(entry, Entry::Dropped(_)));
            self.dropped = 0;
            self.moves += 1;
        }
    }

    /// Index of the first entry that reaches beyond event `after`.
    pub(super) fn first_after(&self, after: u64) -> usize {
        self.list
            .partition_point(|entry| entry.last_sequence() <= after)
    }

    /// The last event, if it lies beyond number `after`, and how many events do, deltas counted
    /// one by one.
    pub(super) fn unread_after(&self, after: u64, log: &TurnLog) -> Option<(AgentEvent, u64)> {
        let unread = self.list.get(self.first_after(after)..)?;
        let last = match unread.last()? {
            Entry::Event(event) => event.clone(),
            Entry::Deltas(deltas) => deltas.event(deltas.parts.len() - 1, 1, log)?,
            Entry::Dropped(_) => return None,
        };
        let events = unread.iter().map(|entry| match entry {
            Entry::Event(_) => 1,
            Entry::Deltas(deltas) => deltas.last_sequence() - after.max(deltas.first_sequence - 1),
            Entry::Dropped(_) => 0,
        });
        Some((last, events.sum()))
    }

    /// All text that was shown.
    pub(super) fn text(&self) -> String {
        let text = |entry: &Entry| match entry {
            Entry::Deltas(deltas) if deltas.kind == DeltaKind::Text => Some(deltas.text.clone()),
            _ => None,
        };
        self.list.iter().filter_map(text).collect()
    }

    /// The memory they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let beside: usize = self
            .list
            .iter()
            .map(|entry| match entry {
                Entry::Event(event) => event_bytes(&event.kind),
                Entry::Deltas(deltas) => {
                    deltas.text.capacity() + deltas.parts.capacity() * size_of::<Part>()
                }
                Entry::Dropped(_) => 0,
            })
            .sum();
        self.list.capacity() * size_of::<Entry>() + beside
    }
}

impl Deltas {
    pub(super) fn last_sequence(&self) -> u64 {
        self.first_sequence + self.parts.len() as u64 - 1
    }

    /// The `count` parts from part `first` on as one event.
    pub(super) fn event(&self, first: usize, count: usize, log: &TurnLog) -> Option<AgentEvent> {
        let from = self.start_of(first)?;
        let last = self.parts.get(first.checked_add(count)?.checked_sub(1)?)?;
        let delta = self.text.get(from..last.end as usize)?.to_owned();
        let first_sequence = self.first_sequence + first as u64;
        let step = self.step;
        Some(AgentEvent {
            session_id: Arc::clone(log.session_id()),
            turn_id: Arc::clone(log.turn_id()),
            timestamp: log.began_at().saturating_add(u64::from(last.after_ms)),
            sequence: first_sequence + count as u64 - 1,
            kind: match self.kind {
                DeltaKind::Text => AgentEventKind::TextDelta {
                    step,
                    delta,
                    first_sequence,
                },
                DeltaKind::Reasoning => AgentEventKind::ReasoningDelta {
                    step,
                    delta,
                    first_sequence,
                },
            },
        })
    }

    /// How many parts from part `first` on fit into one event, at least one.
    pub(super) fn parts_that_fit(&self, first: usize) -> usize {
        let Some((mut start, unread)) = self.start_of(first).zip(self.parts.get(first..)) else {
            return 1;
        };
        let mut bytes = 0;
        let fitting = unread.iter().take_while(|part| {
            let end = part.end as usize;
            bytes += self.text.get(start..end).map_or(0, json_bytes);
            start = end;
            bytes <= PART_JSON_BYTES
        });
        fitting.count().max(1)
    }

    fn start_of(&self, part: usize) -> Option<usize> {
        match part.checked_sub(1) {
            Some(before) => Some(self.parts.get(before)?.end as usize),
            None => Some(0),
        }
    }
}

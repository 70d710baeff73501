//! The way of a reader through the log of one turn.

use super::entries::{Entries, Entry};
use super::log::TurnLog;
use crate::agent::event::AgentEvent;

/// Unread parts of a text above which a subscriber counts as lagging.
const LAG: usize = 64;

/// When neighbouring deltas of one kind are coalesced into one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coalescing {
    /// Once the subscriber is more than 64 deltas behind.
    WhenLagging,
    /// Always; for consumers that pace themselves.
    Always,
}

/// How far a reader has come in one log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// Number of the last event that it has read or leaves out.
    read: u64,
    /// The entry it is at, as long as no entry has moved.
    entry: usize,
    moves: usize,
}

impl Position {
    /// The start of a log, without the events up to number `after`.
    pub(super) fn after(after: u64) -> Self {
        Self {
            read: after,
            ..Self::default()
        }
    }

    /// The next event, if it is there.
    pub(super) fn next(
        &mut self,
        log: &TurnLog,
        entries: &Entries,
        ended: bool,
        coalescing: Coalescing,
    ) -> Option<AgentEvent> {
        if self.moves != entries.moves {
            self.moves = entries.moves;
            self.entry = entries.first_after(self.read);
        }
        loop {
            let entry = entries.list.get(self.entry)?;
            let unread = entry.last_sequence() > self.read;
            match entry {
                Entry::Event(event) if unread => {
                    self.entry += 1;
                    self.read = event.sequence;
                    return Some(event.clone());
                }
                Entry::Deltas(deltas) if unread => {
                    let read = self.read.saturating_sub(deltas.first_sequence - 1);
                    let first = usize::try_from(read).unwrap_or(usize::MAX);
                    let count = match coalescing {
                        Coalescing::WhenLagging if deltas.parts.len() - first <= LAG => 1,
                        Coalescing::WhenLagging | Coalescing::Always => {
                            deltas.parts_that_fit(first)
                        }
                    };
                    let event = deltas.event(first, count, log)?;
                    self.read = event.sequence;
                    return Some(event);
                }
                // More parts may come as long as nothing follows.
                Entry::Deltas(_) if self.entry + 1 == entries.list.len() && !ended => return None,
                Entry::Event(_) | Entry::Deltas(_) | Entry::Dropped(_) => self.entry += 1,
            }
        }
    }
}

//! What was said since memories were extracted last: limited, the oldest gives way.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use crate::agent::message::ContentBlock;
use crate::agent::storage::{SessionEvent, SessionEventKind};

/// Most that is kept, in bytes of JSON: more than the window of most models holds.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// Events that no extraction has covered yet, in order of index.
///
/// A model that always fails would let them grow for as long as the session is open.
#[derive(Default)]
pub(super) struct Fresh {
    entries: VecDeque<Entry>,
    /// Sum over the entries.
    bytes: usize,
    /// Whether the log tells already that something gave way.
    told: bool,
}

struct Entry {
    event: Arc<SessionEvent>,
    bytes: usize,
}

impl Fresh {
    /// What an earlier process left, as far as there is room.
    pub(super) fn restored<'a>(events: impl DoubleEndedIterator<Item = &'a SessionEvent>) -> Self {
        let mut this = Self::default();
        for event in events.rev() {
            let entry = Entry::new(without_image_data(&Arc::new(event.clone())));
            this.bytes = this.bytes.saturating_add(entry.bytes);
            this.entries.push_front(entry);
            if this.bytes > LIMIT_BYTES {
                break;
            }
        }
        this.give_way();
        this
    }

    /// Takes the next event of the conversation.
    pub(super) fn push(&mut self, event: &Arc<SessionEvent>) {
        let entry = Entry::new(without_image_data(event));
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.entries.push_back(entry);
        self.give_way();
    }

    /// Takes back what was taken out before and not extracted.
    pub(super) fn put_back(&mut self, mut older: Self) {
        older.entries.append(&mut self.entries);
        self.entries = older.entries;
        self.bytes = self.bytes.saturating_add(older.bytes);
        self.told |= older.told;
        self.give_way();
    }

    /// Takes a changed event in place of the one with its index, if that is here.
    pub(super) fn replace(&mut self, event: &Arc<SessionEvent>) {
        let mut entries = self.entries.iter_mut();
        if let Some(entry) = entries.find(|entry| entry.event.index == event.index) {
            let changed = Entry::new(without_image_data(event));
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            self.bytes = self.bytes.saturating_add(changed.bytes);
            *entry = changed;
            self.give_way();
        }
    }

    /// Forgets what is no part of the conversation any more.
    pub(super) fn rewind(&mut self, to: u64) {
        self.entries.retain(|entry| entry.event.index <= to);
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
    }

    /// Index of the newest event.
    pub(super) fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.event.index)
    }

    /// Whether there is anything to extract from.
    pub(super) fn has_user_message(&self) -> bool {
        self.events().any(|event| event.is_user_message())
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Arc<SessionEvent>> {
        self.entries.iter().map(|entry| &entry.event)
    }

    fn give_way(&mut self) {
        while self.bytes > LIMIT_BYTES && self.entries.len() > 1 {
            if let Some(oldest) = self.entries.pop_front() {
                self.bytes = self.bytes.saturating_sub(oldest.bytes);
            }
            if !self.told {
                self.told = true;
                tracing::warn!(
                    limit_bytes = LIMIT_BYTES,
                    "more was said than can wait for an extraction of memories; the oldest is left out"
                );
            }
        }
    }
}

impl Entry {
    fn new(event: Arc<SessionEvent>) -> Self {
        let bytes = json_size(&*event);
        Self { event, bytes }
    }
}

/// The event with empty images: an extraction only mentions them, and they would fill the room.
pub(super) fn without_image_data(event: &Arc<SessionEvent>) -> Arc<SessionEvent> {
    let SessionEventKind::UserMessage {
        content,
        skill,
        steering,
    } = &event.kind
    else {
        return Arc::clone(event);
    };
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image { .. });
    if !content.iter().any(is_image) {
        return Arc::clone(event);
    }
    let emptied = content.iter().map(|block| match block {
        ContentBlock::Image { media_type, .. } => ContentBlock::image(media_type.as_str(), ""),
        other => other.clone(),
    });
    Arc::new(SessionEvent {
        kind: SessionEventKind::UserMessage {
            content: emptied.collect(),
            skill: skill.clone(),
            steering: *steering,
        },
        turn_id: Arc::clone(&event.turn_id),
        ..**event
    })
}

/// How long a value is as JSON, without writing it out.
fn json_size(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // What cannot be written out has been counted up to there.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

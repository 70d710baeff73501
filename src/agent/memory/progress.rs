//! When memories are searched and extracted.
//!
//! Nothing here can fail a turn or keep a session from closing: what goes wrong is logged.

// Requirements: 5.7 Memory manager.

use std::borrow::Cow;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::extraction::{Extraction, Outcome};
use super::fresh::{Fresh, without_image_data};
use super::{Memory, MemoryStorage};
use crate::agent::catalog::Model;
use crate::agent::clock;
use crate::agent::core::Core;
use crate::agent::journal::guarded;
use crate::agent::message::ContentBlock;
use crate::agent::provider::Usage;
use crate::agent::storage::{SessionEvent, SessionEventKind, SessionMetadata};
use crate::agent::text;

/// Longest memory in the system prompt, in characters. Those of the agent are far shorter; one
/// that a caller stored could fill the window.
const LONGEST_SHOWN: usize = 8_000;

/// What a session remembers and has yet to remember. Only there with a memory storage.
pub(crate) struct MemoryProgress {
    storage: Arc<dyn MemoryStorage>,
    namespace: Arc<str>,
    /// The session's first user message: what memories are searched by.
    first: Option<Arc<SessionEvent>>,
    /// What was said since the last extraction, in earlier processes too.
    fresh: Fresh,
    /// Whether any of it was said since the session was opened or last extracted.
    spoken: bool,
    /// Turns since the last checkpoint.
    turns: u32,
    /// The newest checkpoint.
    running: Option<Checkpoint>,
}

/// An extraction in the background.
struct Checkpoint {
    task: AbortOnDropHandle<Outcome>,
    batch: Batch,
}

/// What an extraction covers.
struct Batch {
    /// Taken back where the extraction fails.
    events: Fresh,
    /// Index of its newest event.
    through: u64,
}

/// What came of the extractions of a session.
#[derive(Debug, Default)]
pub(crate) struct Extracted {
    /// Index of the newest event that is extracted now, if anything is.
    through: Option<u64>,
    /// What the model calls cost, also of those whose extraction failed.
    pub(crate) usage: Usage,
    /// Why something was not extracted.
    pub(crate) failure: Option<String>,
}

impl Extracted {
    /// What there is to store, if anything.
    pub(crate) fn metadata(&self) -> Option<SessionMetadata> {
        let cost = Some(self.usage).filter(|usage| *usage != Usage::default());
        match (self.through, cost) {
            (Some(through), usage) => Some(SessionMetadata::MemoryCheckpoint { through, usage }),
            (None, Some(usage)) => Some(SessionMetadata::Spent { usage }),
            (None, None) => None,
        }
    }
}

impl MemoryProgress {
    /// The progress of a new session.
    pub(crate) fn new(storage: &Arc<dyn MemoryStorage>, namespace: &str) -> Self {
        Self {
            storage: Arc::clone(storage),
            namespace: namespace.into(),
            first: None,
            fresh: Fresh::default(),
            spoken: false,
            turns: 0,
            running: None,
        }
    }

    /// The progress of a stored session: its first user message, and the events that no
    /// extraction has covered.
    pub(crate) fn restored<'a>(
        storage: &Arc<dyn MemoryStorage>,
        namespace: &str,
        first: Option<&SessionEvent>,
        fresh: impl DoubleEndedIterator<Item = &'a SessionEvent>,
    ) -> Self {
        Self {
            first: first.map(|event| without_image_data(&Arc::new(event.clone()))),
            fresh: Fresh::restored(fresh),
            ..Self::new(storage, namespace)
        }
    }

    /// Takes an event of the conversation.
    pub(crate) fn push(&mut self, event: &Arc<SessionEvent>) {
        if event.is_user_message() && self.first.is_none() {
            self.first = Some(without_image_data(event));
        }
        self.spoken |= event.is_message();
        self.fresh.push(event);
    }

    /// Takes a changed event in place of the one with its index, wherever that waits. An
    /// extraction that runs already has read the old one.
    pub(crate) fn replace(&mut self, event: &Arc<SessionEvent>) {
        if let Some(first) = &mut self.first
            && first.index == event.index
        {
            *first = without_image_data(event);
        }
        self.fresh.replace(event);
        if let Some(checkpoint) = &mut self.running {
            checkpoint.batch.events.replace(event);
        }
    }

    /// Forgets what is no part of the conversation any more.
    pub(crate) fn rewind(&mut self, to: u64) {
        self.first.take_if(|first| first.index > to);
        self.fresh.rewind(to);
        if let Some(checkpoint) = &mut self.running {
            checkpoint.batch.events.rewind(to);
        }
    }

    /// Counts a turn. A checkpoint is due every `interval` turns, unless one still runs.
    pub(crate) fn checkpoint_is_due(&mut self, interval: u32) -> bool {
        self.turns = self.turns.saturating_add(1);
        self.turns >= interval && self.running.is_none() && self.has_fresh()
    }

    /// Looks whether the checkpoint in the background has ended. Returns what came of it.
    pub(crate) fn take_finished(&mut self) -> Option<Extracted> {
        let Checkpoint { task, batch } = self
            .running
            .take_if(|checkpoint| checkpoint.task.is_finished())?;
        let mut extracted = Extracted::default();
        self.settle(batch, task.now_or_never()?, &mut extracted);
        Some(extracted)
    }

    /// Whether there is anything to extract from. A session that was only opened has
    /// nothing, whatever an earlier process left.
    fn has_fresh(&self) -> bool {
        self.spoken && self.fresh.has_user_message()
    }

    /// Starts an extraction in the background.
    pub(crate) fn checkpoint(&mut self, core: &Arc<Core>, session_id: &Arc<str>, model: &Model) {
        self.turns = 0;
        let Some((batch, extraction)) = self.take(session_id, model) else {
            return;
        };
        let core = Arc::clone(core);
        let limit = Duration::from_millis(core.config.memory_timeout_ms);
        // Owned by the session: awaited when it closes, aborted when it is dropped.
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let deadline = clock::after(Instant::now(), limit);
            extraction.run(&core, deadline).await
        }));
        self.running = Some(Checkpoint { task, batch });
    }

    /// Takes out all that was said, to extract from it.
    fn take(&mut self, session_id: &Arc<str>, model: &Model) -> Option<(Batch, Extraction)> {
        let through = self.fresh.newest()?;
        self.spoken = false;
        let events = std::mem::take(&mut self.fresh);
        let extraction = Extraction {
            storage: Arc::clone(&self.storage),
            namespace: Arc::clone(&self.namespace),
            events: events.events().cloned().collect(),
            session_id: Arc::clone(session_id),
            model: model.clone(),
        };
        Some((Batch { events, through }, extraction))
    }

    /// Adds what came of an extraction. What it could not extract goes before what was said
    /// since.
    fn settle(
        &mut self,
        batch: Batch,
        ended: Result<Outcome, JoinError>,
        extracted: &mut Extracted,
    ) {
        let outcome = ended.unwrap_or_else(|stopped| Outcome {
            usage: Usage::default(),
            failure: Some(stopped.to_string()),
        });
        extracted.usage += outcome.usage;
        if outcome.failure.is_none() {
            extracted.through = Some(batch.through);
        } else {
            self.spoken = true;
            self.fresh.put_back(batch.events);
        }
        extracted.failure = outcome.failure;
    }

    /// Extracts what is left, after a checkpoint that still runs; all within `limit`.
    pub(crate) async fn finish(
        mut self,
        core: &Arc<Core>,
        session_id: &Arc<str>,
        model: &Model,
        limit: Duration,
    ) -> Extracted {
        let deadline = clock::after(Instant::now(), limit);
        let mut extracted = Extracted::default();
        if let Some(Checkpoint { task, batch }) = self.running.take() {
            match tokio::time::timeout_at(deadline, task).await {
                Ok(ended) => self.settle(batch, ended, &mut extracted),
                Err(_) => {
                    let reason = format!("it took longer than {} ms", limit.as_millis());
                    tracing::error!(session = %session_id, "extracting memories failed: {reason}");
                    extracted.failure = Some(reason);
                    return extracted;
                }
            }
        }
        if self.has_fresh()
            && let Some((batch, extraction)) = self.take(session_id, model)
        {
            let outcome = extraction.run(core, deadline).await;
            self.settle(batch, Ok(outcome), &mut extracted);
        }
        extracted
    }

    /// The memories for this session, by its first message. At most `memory_max_items`,
    /// without doubles; none if the storage fails or is slow.
    pub(crate) async fn search(&self, core: &Core) -> Vec<Memory> {
        let query = self.first.as_deref().map(text_of).unwrap_or_default();
        let Some(items) = NonZeroUsize::new(core.config.memory_max_items as usize)
            .filter(|_| !query.trim().is_empty())
        else {
            return Vec::new();
        };
        let limit = Duration::from_millis(core.config.memory_search_timeout_ms);
        let found = guarded(limit, "searching memories failed", || {
            self.storage.search(&self.namespace, &query, items)
        })
        .await;
        let mut found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "going on without memories");
            Vec::new()
        });
        let mut ids = HashSet::new();
        let mut contents = HashSet::new();
        found.retain(|memory| {
            memory.namespace == *self.namespace
                && !memory.content.trim().is_empty()
                && ids.insert(memory.id.clone())
                && contents.insert(memory.content.trim().to_owned())
        });
        found.truncate(items.get());
        for memory in &mut found {
            if let Cow::Owned(cut) = text::excerpt(&memory.content, LONGEST_SHOWN) {
                memory.content = cut;
            }
        }
        found
    }
}

/// Text of a user message, blocks joined.
fn text_of(event: &SessionEvent) -> String {
    let SessionEventKind::UserMessage { content, .. } = &event.kind else {
        return String::new();
    };
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    texts.join("\n")
}

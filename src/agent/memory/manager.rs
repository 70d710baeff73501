//! When memories are searched and extracted (chapter 5.7).
//!
//! Nothing here can fail a turn or keep a session from closing: what goes wrong is logged.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::extract::{self, Proposal};
use super::{Memory, MemoryStorage};
use crate::agent::catalog::Model;
use crate::agent::clock::now_ms;
use crate::agent::context::estimate;
use crate::agent::context::normalize::Normalizer;
use crate::agent::context::transcript;
use crate::agent::context::{Images, ModelProfile};
use crate::agent::core::Core;
use crate::agent::journal::guarded;
use crate::agent::message::{ContentBlock, Message, UserMessage, UserOrigin};
use crate::agent::model_call::{self, Next};
use crate::agent::notes::Notes;
use crate::agent::provider::{ChatRequest, PromptBlock};
use crate::agent::storage::{SessionEvent, SessionEventKind};

/// Share of the extracting model's window that its input may take, in percent.
const INPUT_SHARE: u64 = 70;
/// Share of that input for known memories, in percent.
const KNOWN_SHARE: u64 = 30;

/// What a session remembers and has yet to remember. Only there with a memory storage.
pub(crate) struct MemoryProgress {
    storage: Arc<dyn MemoryStorage>,
    namespace: Arc<str>,
    /// The session's first user message: what memories are searched by.
    first: Option<Arc<SessionEvent>>,
    /// What was said since the last extraction, in earlier processes too.
    fresh: Vec<Arc<SessionEvent>>,
    /// Whether any of it was said since the session was opened or last extracted.
    spoken: bool,
    /// Turns since the last checkpoint.
    turns: u32,
    /// The newest checkpoint.
    running: Option<Checkpoint>,
}

/// An extraction in the background.
struct Checkpoint {
    /// Gives back what it could not extract.
    task: AbortOnDropHandle<Vec<Arc<SessionEvent>>>,
    /// Index of the newest event it covers.
    through: u64,
}

/// A batch of conversation to extract memories from.
pub(crate) struct Extraction {
    storage: Arc<dyn MemoryStorage>,
    namespace: Arc<str>,
    events: Vec<Arc<SessionEvent>>,
    session_id: Arc<str>,
    model: Model,
}

impl MemoryProgress {
    pub(crate) fn new(
        storage: &Arc<dyn MemoryStorage>,
        namespace: &str,
        first: Option<Arc<SessionEvent>>,
        fresh: Vec<Arc<SessionEvent>>,
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            namespace: namespace.into(),
            first,
            fresh,
            spoken: false,
            turns: 0,
            running: None,
        }
    }

    /// Takes an event of the conversation.
    pub(crate) fn push(&mut self, event: &Arc<SessionEvent>) {
        let is_users = matches!(event.kind, SessionEventKind::UserMessage { .. });
        if is_users && self.first.is_none() {
            self.first = Some(Arc::clone(event));
        }
        self.spoken |= event.is_message();
        self.fresh.push(Arc::clone(event));
    }

    /// Forgets what is no part of the conversation any more.
    pub(crate) fn rewind(&mut self, to: u64) {
        self.fresh.retain(|event| event.index <= to);
    }

    /// Counts a turn. Every so many it is time for a checkpoint, unless one still runs.
    pub(crate) fn checkpoint_is_due(&mut self, interval: u32) -> bool {
        self.turns += 1;
        self.turns >= interval && self.running.is_none() && self.has_fresh()
    }

    /// Looks whether the checkpoint in the background has ended. Answers the index of the
    /// newest event that is extracted now.
    pub(crate) fn take_finished(&mut self) -> Option<u64> {
        let Checkpoint { task, through } = self
            .running
            .take_if(|checkpoint| checkpoint.task.is_finished())?;
        let left = task.now_or_never()?.ok()?;
        let extracted = left.is_empty();
        self.take_back(left);
        extracted.then_some(through)
    }

    /// Whether there is anything to extract from. A session that was only opened has
    /// nothing, whatever an earlier process left.
    fn has_fresh(&self) -> bool {
        self.spoken
            && self
                .fresh
                .iter()
                .any(|event| matches!(event.kind, SessionEventKind::UserMessage { .. }))
    }

    /// Starts an extraction in the background.
    pub(crate) fn checkpoint(&mut self, core: &Arc<Core>, session_id: &Arc<str>, model: &Model) {
        self.turns = 0;
        let Some(through) = newest(&self.fresh) else {
            return;
        };
        let extraction = self.take(session_id, model);
        let core = Arc::clone(core);
        // Owned by the session: awaited when it closes, aborted when it is dropped.
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let limit = Duration::from_millis(core.config.memory_timeout_ms);
            extraction.run(&core, limit).await
        }));
        self.running = Some(Checkpoint { task, through });
    }

    /// What a checkpoint could not extract goes before what was said since.
    fn take_back(&mut self, left: Vec<Arc<SessionEvent>>) {
        self.spoken |= !left.is_empty();
        self.fresh.splice(..0, left);
    }

    fn take(&mut self, session_id: &Arc<str>, model: &Model) -> Extraction {
        self.spoken = false;
        Extraction {
            storage: Arc::clone(&self.storage),
            namespace: Arc::clone(&self.namespace),
            events: std::mem::take(&mut self.fresh),
            session_id: Arc::clone(session_id),
            model: model.clone(),
        }
    }

    /// Extracts what is left, after a checkpoint that still runs; all within `limit`. Answers
    /// the index of the newest event that is extracted now.
    pub(crate) async fn finish(
        mut self,
        core: &Arc<Core>,
        session_id: &Arc<str>,
        model: &Model,
        limit: Duration,
    ) -> Option<u64> {
        let mut extracted = None;
        let work = async {
            if let Some(Checkpoint { task, through }) = self.running.take()
                && let Ok(left) = task.await
            {
                extracted = left.is_empty().then_some(through);
                self.take_back(left);
            }
            if self.has_fresh() {
                let through = newest(&self.fresh);
                let left = self.take(session_id, model).run(core, limit).await;
                if left.is_empty() {
                    extracted = through;
                }
            }
        };
        if tokio::time::timeout(limit, work).await.is_err() {
            tracing::warn!(session = %session_id, "extracting memories took too long and was given up");
        }
        extracted
    }

    /// The memories for this session, by its first message. At most `memory_max_items`,
    /// without doubles; none if the storage fails or is slow.
    pub(crate) async fn search(&self, core: &Core) -> Vec<Memory> {
        let items = core.config.memory_max_items as usize;
        let query = self.first.as_deref().map(text_of).unwrap_or_default();
        if items == 0 || query.trim().is_empty() {
            return Vec::new();
        }
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
        found.truncate(items);
        found
    }
}

fn newest(events: &[Arc<SessionEvent>]) -> Option<u64> {
    events.last().map(|event| event.index)
}

/// Text of a user message, blocks joined.
fn text_of(event: &SessionEvent) -> String {
    let SessionEventKind::UserMessage { content, .. } = &event.kind else {
        return String::new();
    };
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    texts.join("\n")
}

impl Extraction {
    /// Asks the model and saves what it proposes. Gives back the batch if that failed.
    pub(crate) async fn run(self, core: &Core, limit: Duration) -> Vec<Arc<SessionEvent>> {
        let work = self.extract(core);
        let outcome = tokio::time::timeout(limit, work).await;
        let failure = match outcome {
            Ok(Ok(saved)) => {
                tracing::debug!(session = %self.session_id, saved, "memories extracted");
                return Vec::new();
            }
            Ok(Err(reason)) => reason,
            Err(_) => format!("it took longer than {} ms", limit.as_millis()),
        };
        tracing::error!(session = %self.session_id, "extracting memories failed: {failure}");
        self.events
    }

    async fn extract(&self, core: &Core) -> Result<usize, String> {
        let model = self.model(core);
        let limit = core.storage_limit();
        let mut known = guarded(limit, "loading memories failed", || {
            self.storage.load(&self.namespace)
        })
        .await
        .map_err(|error| error.to_string())?;
        // Whatever the storage gives, memories of elsewhere are neither shown nor changed.
        known.retain(|memory| memory.namespace == *self.namespace);
        let request = self.request(&core.notes, &model, &known);
        // Nothing cancels an extraction but its limit, which drops it.
        let cancel = CancellationToken::new();
        let answer = model_call::collect(&model.provider, request, &cancel, core.idle_limit())
            .await
            .map_err(|end| match end {
                Next::Failed(error) => error.message,
                Next::Cancelled | Next::Event(_) => "it was cancelled".to_owned(),
            })?;
        let proposals =
            extract::parse(&answer.text).ok_or("the model's answer holds no list of memories")?;
        let mut saved = 0;
        for proposal in proposals {
            let memory = self.decide(proposal, &known);
            guarded(limit, "saving a memory failed", || {
                self.storage.upsert(memory.clone())
            })
            .await
            .map_err(|error| error.to_string())?;
            saved += 1;
            // Later proposals of this answer are compared with it, too.
            known.retain(|other| other.id != memory.id);
            known.push(memory);
        }
        Ok(saved)
    }

    fn model(&self, core: &Core) -> Model {
        let Some(wanted) = &core.config.memory_model else {
            return self.model.clone();
        };
        core.catalog.find(wanted).unwrap_or_else(|error| {
            tracing::warn!(%error, "extracting memories with the session's model");
            self.model.clone()
        })
    }

    fn request(&self, notes: &Arc<Notes>, model: &Model, known: &[Memory]) -> ChatRequest {
        let system = extract::system_prompt();
        let budget = (model.window() * INPUT_SHARE / 100)
            .saturating_sub(estimate::text(&system) / estimate::QUARTERS);
        let mut left = budget * KNOWN_SHARE / 100;
        let shown: Vec<Memory> = known
            .iter()
            .take_while(|memory| {
                let cost = (estimate::text(&memory.content) + estimate::text(&memory.id))
                    / estimate::QUARTERS
                    + 8;
                let fits = cost <= left;
                left = left.saturating_sub(cost);
                fits
            })
            .cloned()
            .collect();
        let said = self.transcript(notes, budget * (100 - KNOWN_SHARE) / 100);
        let message = Message::User(UserMessage {
            content: vec![ContentBlock::text(extract::user_prompt(&shown, &said))],
            origin: UserOrigin::Input,
        });
        ChatRequest {
            model_id: Arc::clone(&model.id),
            system: [PromptBlock {
                text: system.into(),
                stable: true,
            }]
            .into(),
            messages: [message].into_iter().collect(),
            tools: Arc::default(),
            temperature: None,
            max_tokens: None,
            reasoning_effort: None,
            response_format: None,
        }
    }

    fn transcript(&self, notes: &Arc<Notes>, limit_tokens: u64) -> String {
        let view = ModelProfile {
            provider_id: Arc::clone(&self.model.provider_id),
            images: Images::Unseen,
        };
        let mut folded = Normalizer::new(notes, view, None, HashSet::new(), None);
        for event in &self.events {
            folded.push(event);
        }
        folded.close_round();
        transcript::written(
            folded.messages().iter().map(|message| &**message),
            limit_tokens,
        )
    }

    /// Which memory a proposal becomes: one of this namespace by id, else one with the same
    /// content, else a new one.
    fn decide(&self, proposal: Proposal, known: &[Memory]) -> Memory {
        let now = now_ms();
        let by_id = proposal
            .id
            .as_deref()
            .and_then(|id| known.iter().find(|memory| memory.id == id));
        let same = known
            .iter()
            .find(|memory| memory.content.trim() == proposal.content);
        match (by_id, same) {
            (_, Some(same)) => Memory {
                updated_at: now,
                ..same.clone()
            },
            (Some(updated), None) => Memory {
                content: proposal.content,
                tags: proposal.tags,
                source: self.session_id.to_string(),
                updated_at: now,
                ..updated.clone()
            },
            (None, None) => Memory {
                id: uuid::Uuid::now_v7().to_string(),
                namespace: self.namespace.to_string(),
                content: proposal.content,
                source: self.session_id.to_string(),
                tags: proposal.tags,
                created_at: now,
                updated_at: now,
            },
        }
    }
}

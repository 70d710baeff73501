//! One extraction: a model reads what was said and proposes memories, and they are saved.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::proposals::{self, Proposal};
use super::{Memory, MemoryStorage, prompt};
use crate::agent::catalog::Model;
use crate::agent::clock::now_ms;
use crate::agent::context::estimate::{self, QUARTERS};
use crate::agent::context::normalize::Normalizer;
use crate::agent::context::{Images, ModelProfile, transcript};
use crate::agent::core::Core;
use crate::agent::journal::guarded;
use crate::agent::message::{ContentBlock, Message, UserMessage, UserOrigin};
use crate::agent::notes::Notes;
use crate::agent::provider::{ChatRequest, PromptBlock, Usage};
use crate::agent::side_call::{self, Answer, Limits, NoAnswer};
use crate::agent::storage::SessionEvent;

/// Share of the extracting model's window that its input may take, in percent.
const INPUT_SHARE: u64 = 70;
/// Share of that input for known memories, in percent.
const KNOWN_SHARE: u64 = 30;
/// Kept free for what a transcript says of its own cuts, in tokens.
const NOTICES: u64 = 64;
/// Longest answer that is read, in bytes of text and reasoning.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// Longest answer that is read at once, in bytes: as nearly all are.
const SHORT_ANSWER: usize = 16 * 1024;

/// A batch of conversation to extract memories from.
pub(super) struct Extraction {
    pub(super) storage: Arc<dyn MemoryStorage>,
    pub(super) namespace: Arc<str>,
    pub(super) events: Vec<Arc<SessionEvent>>,
    pub(super) session_id: Arc<str>,
    /// The session's model.
    pub(super) model: Model,
}

/// What came of an extraction.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What the model call cost, whatever came of it.
    pub(super) usage: Usage,
    /// Why it failed.
    pub(super) failure: Option<String>,
}

impl Extraction {
    /// Asks the model and saves what it proposes.
    pub(super) async fn run(self, core: &Core, deadline: Instant) -> Outcome {
        let mut usage = Usage::default();
        let began = Instant::now();
        let extracting = self.extract(core, deadline.duration_since(began), &mut usage);
        let failure = match tokio::time::timeout_at(deadline, extracting).await {
            Ok(Ok(saved)) => {
                tracing::debug!(session = %self.session_id, saved, "memories extracted");
                None
            }
            Ok(Err(reason)) => Some(reason),
            Err(_) => {
                let limit = deadline.duration_since(began).as_millis();
                Some(format!("it took longer than {limit} ms"))
            }
        };
        if let Some(reason) = &failure {
            tracing::error!(session = %self.session_id, "extracting memories failed: {reason}");
        }
        Outcome { usage, failure }
    }

    /// Returns how many memories were saved.
    async fn extract(
        &self,
        core: &Core,
        limit: Duration,
        usage: &mut Usage,
    ) -> Result<usize, String> {
        let storage_limit = core.storage_limit();
        let mut known = guarded(storage_limit, "loading memories failed", || {
            self.storage.load(&self.namespace)
        })
        .await
        .map_err(|error| error.to_string())?;
        // Whatever the storage gives, memories of elsewhere are neither shown nor changed.
        known.retain(|memory| memory.namespace == *self.namespace);
        let answer = self.ask(core, limit, &known).await?;
        if let Some(cost) = answer.usage {
            *usage += cost;
        }
        let proposals = read(answer.text).await?;
        let mut saved = 0;
        for proposal in proposals {
            let memory = self.decide(proposal, &known);
            guarded(storage_limit, "saving a memory failed", || {
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

    async fn ask(&self, core: &Core, limit: Duration, known: &[Memory]) -> Result<Answer, String> {
        let model = self.model(core);
        let request = self.request(&core.notes, &model, known);
        let limits = Limits {
            bytes: ANSWER_LIMIT,
            total: limit,
            idle: core.idle_limit(),
        };
        // Nothing cancels an extraction but its limit, which drops it.
        let cancel = CancellationToken::new();
        side_call::collect(&model.provider, request, &cancel, limits)
            .await
            .map_err(|none| match none {
                NoAnswer::Because(reason) => reason,
                NoAnswer::Cancelled => "it was cancelled".to_owned(),
            })
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
        let system = prompt::system();
        let fixed = estimate::text(&system) + estimate::text(&prompt::user("", ""));
        let room = (model.window() * INPUT_SHARE / 100)
            .saturating_sub(NOTICES)
            .saturating_mul(QUARTERS)
            .saturating_sub(fixed);
        let known = prompt::known(known, room * KNOWN_SHARE / 100);
        let room = room.saturating_sub(estimate::text(&known));
        let said = self.transcript(notes, room / QUARTERS);
        let message = Message::User(UserMessage {
            content: vec![ContentBlock::text(prompt::user(&known, &said))],
            origin: UserOrigin::Input,
        });
        let mut request = ChatRequest::new(Arc::clone(&model.id), [message]);
        request.system = [PromptBlock {
            text: system.into(),
            stable: true,
        }]
        .into();
        request
    }

    fn transcript(&self, notes: &Arc<Notes>, limit_tokens: u64) -> String {
        let profile = ModelProfile {
            provider_id: Arc::clone(&self.model.provider_id),
            images: Images::Unseen,
        };
        let mut folded = Normalizer::new(notes, profile, None, HashSet::new(), None);
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
                source: self.session_id.to_string(),
                tags: proposal.tags,
                created_at: now,
                updated_at: now,
                ..Memory::new(
                    uuid::Uuid::now_v7().to_string(),
                    &*self.namespace,
                    proposal.content,
                )
            },
        }
    }
}

/// Reads an answer; a long one on a thread where it may take its time, so that no timer waits
/// for it.
async fn read(answer: String) -> Result<Vec<Proposal>, String> {
    let proposals = if answer.len() <= SHORT_ANSWER {
        proposals::read(&answer)
    } else {
        tokio::task::spawn_blocking(move || proposals::read(&answer))
            .await
            .map_err(|stopped| format!("the answer could not be read: {stopped}"))?
    };
    proposals.ok_or_else(|| "the model's answer holds no list of memories".to_owned())
}

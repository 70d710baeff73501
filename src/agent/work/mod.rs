//! What a session works with, who has it, and what is going on.
//!
//! Context, journal and counters of a session are one [`SessionCore`]. A turn, a compaction or
//! a close takes it by a [`Lease`] and gives it back, so nothing is locked while a model
//! streams or a tool runs, and two turns cannot run at once.

mod lease;
mod open;
mod state;

use std::collections::HashSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub(crate) use lease::Lease;
pub(crate) use open::OpenSession;
pub use state::SessionState;
pub(crate) use state::{Activity, Closing, State};

use crate::agent::catalog::Model;
use crate::agent::context::{Context, Images};
use crate::agent::error::AgentError;
use crate::agent::journal::{Journal, Written};
use crate::agent::memory::{Memory, MemoryProgress};
use crate::agent::message::ContentBlock;
use crate::agent::prompt::{self, Sections};
use crate::agent::provider::{PromptBlock, ToolSpec, Usage};
use crate::agent::storage::{SessionEvent, SessionEventKind, SessionMetadata};

/// A message of the user that is not stored yet.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) content: Vec<ContentBlock>,
    /// Name of the skill it calls.
    pub(crate) skill: Option<Arc<str>>,
}

/// The inside of a session: its context and the way into the storage.
pub(crate) struct SessionCore {
    pub(crate) context: Context,
    pub(crate) journal: Arc<Journal>,
    /// Facts that are stored with the next message.
    pub(crate) pending: Vec<SessionEventKind>,
    /// The last message, where its turn failed before it was stored.
    pub(crate) unstored: Option<NewMessage>,
    pub(crate) memory: Option<MemoryProgress>,
    /// The memories of this session; absent until the first turn searched for them.
    pub(crate) memories: Option<Vec<Memory>>,
    prompt: Option<Prompt>,
    /// Models that refused images of older messages: they are shown none in this session.
    pub(crate) blind_models: HashSet<Arc<str>>,
    /// What the session has cost.
    pub(crate) usage: Usage,
    pub(crate) message_count: u32,
    /// The model that the stored session names.
    pub(crate) stored_model: Option<Arc<str>>,
}

/// The stable part of the system prompt, and what it was built for.
struct Prompt {
    with_tools: bool,
    with_memories: bool,
    blocks: Arc<[PromptBlock]>,
}

impl SessionCore {
    pub(crate) fn new(context: Context, journal: Arc<Journal>) -> Self {
        Self {
            context,
            journal,
            pending: Vec::new(),
            unstored: None,
            memory: None,
            memories: None,
            prompt: None,
            blind_models: HashSet::new(),
            usage: Usage::default(),
            message_count: 0,
            stored_model: None,
        }
    }

    /// Takes an event that was stored or buffered.
    pub(crate) fn push(&mut self, event: &Arc<SessionEvent>) {
        if event.is_message() {
            self.message_count += 1;
        }
        self.context.push(event);
        if let Some(memory) = &mut self.memory {
            memory.push(event);
        }
    }

    /// Takes a stored user message in place of the one with its index.
    pub(crate) fn replace(&mut self, event: &Arc<SessionEvent>) {
        self.context.replace(event);
        if let Some(memory) = &mut self.memory {
            memory.replace(event);
        }
    }

    /// Stores an event and takes it. Returns an error that is worth telling. Once `cancel` has
    /// fired, a write that hangs is not waited for.
    pub(crate) async fn record(
        &mut self,
        turn_id: &Arc<str>,
        reserved: Option<u64>,
        kind: SessionEventKind,
        cancel: &CancellationToken,
    ) -> Option<AgentError> {
        let event = self.journal.event(turn_id, reserved, kind);
        let written = self.journal.write(&event, cancel).await;
        self.push(&event);
        match written {
            Written::Failed(error) => Some(error),
            Written::Stored | Written::Buffered => None,
        }
    }

    /// Notes what a call cost that no record tells of: it is stored with the next message.
    pub(crate) fn note_spent(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.pending.push(SessionEventKind::Metadata {
                metadata: SessionMetadata::Spent { usage },
            });
        }
    }

    /// Makes the head an event of the conversation that is still in the context: what came
    /// after it is no part of the conversation any more.
    pub(crate) fn rewind(&mut self, to: u64) {
        let gone = self.context.rewind(to);
        self.message_count = self.message_count.saturating_sub(gone);
        if let Some(memory) = &mut self.memory {
            memory.rewind(to);
        }
    }

    /// Makes the context ready for a model: what it can take, and what every request holds.
    /// Returns the system prompt, `dynamic` sections last, and the tools.
    pub(crate) fn prepare(
        &mut self,
        session: &OpenSession,
        model: &Model,
        dynamic: &[String],
    ) -> (Arc<[PromptBlock]>, Arc<[ToolSpec]>) {
        let mut profile = model.profile();
        if profile.images == Images::Shown && self.blind_models.contains(&model.id) {
            profile.images = Images::Refused;
        }
        self.context.set_profile(profile);
        let core = &session.core;
        let tools = if model.info.capabilities.tool_use {
            Arc::clone(core.tools.specs())
        } else {
            Arc::default()
        };
        let with_tools = core.config.tool_definitions_in_prompt && !tools.is_empty();
        let with_memories = self.memories.is_some();
        let prompt = match self.prompt.take() {
            Some(known)
                if known.with_tools == with_tools && known.with_memories == with_memories =>
            {
                known
            }
            _ => Prompt {
                with_tools,
                with_memories,
                blocks: self.stable_blocks(session, if with_tools { &tools } else { &[] }),
            },
        };
        let system = prompt::with_dynamic(&prompt.blocks, dynamic);
        self.prompt = Some(prompt);
        self.context.set_fixed(&system, &tools);
        (system, tools)
    }

    fn stable_blocks(&self, session: &OpenSession, tools: &[ToolSpec]) -> Arc<[PromptBlock]> {
        let config = &session.core.config;
        let overrides = &session.overrides;
        prompt::stable(&Sections {
            system_instructions: overrides
                .system_instructions
                .as_ref()
                .unwrap_or(&config.system_instructions),
            personality: overrides
                .personality
                .as_deref()
                .or(config.personality.as_deref()),
            tools,
            skills: &session.core.skills,
            plugins: &session.core.plugins,
            memories: self.memories.as_deref().unwrap_or_default(),
            environment: session
                .environment
                .as_deref()
                .or(config.environment.as_deref()),
        })
    }
}

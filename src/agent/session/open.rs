//! Opening a session: new, or from the storage (chapter 6.2).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::slot::SlotTicket;
use super::{Session, SessionInner};
use crate::agent::catalog::Model;
use crate::agent::clock::now_ms;
use crate::agent::config::{ResumeOptions, SessionConfig};
use crate::agent::contain::lock;
use crate::agent::context::Context;
use crate::agent::core::Core;
use crate::agent::error::AgentError;
use crate::agent::hook::SessionStart;
use crate::agent::hook::registry;
use crate::agent::journal::{Journal, guarded};
use crate::agent::memory::MemoryProgress;
use crate::agent::provider::Usage;
use crate::agent::storage::path::Path;
use crate::agent::storage::{
    EventPage, Interruption, PageRequest, SessionEvent, SessionEventKind, SessionLog,
    SessionMetadata, SessionOverrides, SessionSummary,
};
use crate::agent::stored::title_line;
use crate::agent::work::{Activity, OpenSession, SessionCore, State};

/// No record has this index or a larger one: a page could not read it exactly.
const LAST_INDEX: u64 = (1 << 53) - 1;

/// What a session is made of, new or stored.
struct Parts {
    id: Arc<str>,
    created_at: u64,
    overrides: SessionOverrides,
    environment: Option<String>,
    title: Option<String>,
    model: Model,
    work: Box<SessionCore>,
}

/// Creates a session in a slot that was taken for it. The model is found already.
pub(crate) async fn create(
    core: Arc<Core>,
    ticket: SlotTicket,
    config: SessionConfig,
    model: Model,
) -> Result<Session, AgentError> {
    let id: Arc<str> = uuid::Uuid::now_v7().to_string().into();
    // A blank title is none: the session takes the user's first words.
    let title = config.title.filter(|title| !title.trim().is_empty());
    let title = title.as_deref().map(title_line).transpose()?;
    let journal = journal(&core, &id, 0);
    let work = SessionCore::new(Context::new(&core.notes, model.profile()), journal);
    let parts = Parts {
        id,
        created_at: now_ms(),
        overrides: SessionOverrides {
            system_instructions: config.system_instructions,
            personality: config.personality,
            memory_namespace: config.memory_namespace,
        },
        environment: config.environment,
        title,
        model,
        work: Box::new(work),
    };
    open(core, ticket, parts, false).await
}

/// A stored session, as far as it was read.
pub(crate) struct Stored {
    id: Arc<str>,
    summary: Option<SessionSummary>,
    /// Of all branches, in order of index.
    events: Vec<SessionEvent>,
    path: Path,
    /// Index of the last record, readable or not.
    last_index: u64,
}

/// Reads a session. Nothing is opened yet.
///
/// # Errors
/// `SESSION_NOT_FOUND`, `STORAGE_ERROR`.
pub(crate) async fn load(core: &Core, session_id: &Arc<str>) -> Result<Stored, AgentError> {
    let missing = || AgentError::session_not_found(session_id);
    let storage = core.sessions.as_deref().ok_or_else(missing)?;
    let limit = core.storage_limit();
    let doing = "loading the session failed";
    let log = guarded(limit, doing, || storage.load(session_id))
        .await?
        .ok_or_else(missing)?;
    let summary = guarded(limit, doing, || storage.summary(session_id)).await?;
    let SessionLog {
        events,
        unreadable,
        last_index,
    } = log;
    if unreadable > 0 {
        tracing::warn!(
            session = %session_id,
            unreadable,
            "stored records could not be read and were left out"
        );
    }
    // In order, each index once, the one written last: what any storage should give.
    let by_index: BTreeMap<u64, SessionEvent> = events
        .into_iter()
        .map(|event| (event.index, event))
        .collect();
    let last_readable = by_index.last_key_value().map(|(index, _)| *index);
    let last_index = last_index.max(last_readable).ok_or_else(missing)?;
    if last_index >= LAST_INDEX {
        return Err(AgentError::storage(
            doing,
            "its last record is damaged: there is no index left behind it",
        ));
    }
    let events: Vec<SessionEvent> = by_index.into_values().collect();
    Ok(Stored {
        id: Arc::clone(session_id),
        summary,
        path: Path::of(&events),
        events,
        last_index,
    })
}

impl Stored {
    /// Looks again: what was written or deleted meanwhile counts.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `STORAGE_ERROR`.
    pub(crate) async fn refreshed(self, core: &Core) -> Result<Self, AgentError> {
        let missing = || AgentError::session_not_found(&self.id);
        let storage = core.sessions.as_deref().ok_or_else(missing)?;
        let request = PageRequest::new(self.last_index + 1, NonZeroUsize::MIN);
        let doing = "loading the session failed";
        let since = guarded(core.storage_limit(), doing, || {
            storage.load_page(&self.id, request)
        })
        .await?
        .ok_or_else(missing)?;
        if since == EventPage::default() {
            Ok(self)
        } else {
            load(core, &self.id).await
        }
    }

    /// The model the session goes on with.
    ///
    /// # Errors
    /// `MODEL_NOT_SUPPORTED`.
    pub(crate) fn model(&self, core: &Core, wanted: Option<&str>) -> Result<Model, AgentError> {
        let stored = self.stored_model();
        let id = wanted
            .or(stored.as_deref())
            .unwrap_or(&core.config.default_model);
        core.catalog.find(id)
    }

    fn stored_model(&self) -> Option<Arc<str>> {
        self.metadata().rev().find_map(|metadata| match metadata {
            SessionMetadata::Created { model_id, .. }
            | SessionMetadata::ModelChanged { model_id } => Some(Arc::clone(model_id)),
            _ => None,
        })
    }

    fn metadata(&self) -> impl DoubleEndedIterator<Item = &SessionMetadata> {
        self.events.iter().filter_map(SessionEvent::metadata)
    }

    /// The events that the conversation goes on from.
    fn visible(&self) -> impl DoubleEndedIterator<Item = &SessionEvent> {
        self.events
            .iter()
            .filter(|event| self.path.contains(event.index))
    }

    fn created(&self) -> (Option<String>, SessionOverrides) {
        self.metadata()
            .find_map(|metadata| match metadata {
                SessionMetadata::Created {
                    title, overrides, ..
                } => Some((Some(title.clone()), overrides.clone())),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// What the session has cost, on every branch.
    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for cost in self.events.iter().filter_map(SessionEvent::usage) {
            usage += cost;
        }
        usage
    }

    fn first_message(&self) -> Option<&SessionEvent> {
        self.visible().find(|event| event.is_user_message())
    }

    /// Events that no extraction of memories has seen.
    fn fresh(&self) -> impl DoubleEndedIterator<Item = &SessionEvent> {
        let seen = self
            .metadata()
            .filter_map(|metadata| match metadata {
                SessionMetadata::MemoryCheckpoint { through, .. } => Some(*through),
                _ => None,
            })
            .max();
        self.visible()
            .filter(move |event| seen.is_none_or(|seen| event.index > seen))
    }
}

/// Opens a stored session in a slot that was taken for it.
pub(crate) async fn resume(
    core: Arc<Core>,
    ticket: SlotTicket,
    options: ResumeOptions,
    stored: Stored,
    model: Model,
) -> Result<Session, AgentError> {
    let (first_title, overrides) = stored.created();
    let first = stored.events.first();
    let created_at = stored
        .summary
        .as_ref()
        .map(|summary| summary.created_at)
        .or(first.map(|event| event.timestamp))
        .unwrap_or_else(now_ms);
    let title = stored
        .summary
        .as_ref()
        .map(|summary| summary.title.clone())
        .or(first_title);
    let next_index = stored.last_index + 1;
    let messages = stored.visible().filter(|event| event.is_message());
    let message_count = u32::try_from(messages.count()).unwrap_or(u32::MAX);
    let namespace = namespace(&core, &overrides);
    let memory = core.memories.as_ref().map(|storage| {
        MemoryProgress::restored(storage, &namespace, stored.first_message(), stored.fresh())
    });
    let (usage, stored_model) = (stored.usage(), stored.stored_model());
    let journal = journal(&core, &stored.id, next_index);
    let mut work = SessionCore::new(
        Context::restore(&core.notes, model.profile(), stored.events, &stored.path),
        journal,
    );
    work.usage = usage;
    work.message_count = message_count;
    work.stored_model = stored_model;
    work.memory = memory;
    if work.context.ends_in_the_open() {
        // Told in the next request, stored with the next message.
        work.pending.push(SessionEventKind::Metadata {
            metadata: SessionMetadata::TurnInterrupted {
                interruption: Interruption::ProcessEnded,
            },
        });
    }
    let parts = Parts {
        id: stored.id,
        created_at,
        overrides,
        environment: options.environment,
        title,
        model,
        work: Box::new(work),
    };
    open(core, ticket, parts, true).await
}

async fn open(
    core: Arc<Core>,
    ticket: SlotTicket,
    mut parts: Parts,
    resumed: bool,
) -> Result<Session, AgentError> {
    let run = registry::run(
        &core.taps.session_start,
        SessionStart {
            session_id: Arc::clone(&parts.id),
            resumed,
            plugin_config: Arc::default(),
            cancel: None,
        },
        core.hook_limit_with(ticket.contended()),
        |_| false,
        |_, never| match never {},
    )
    .await;
    if let Some(stop) = run.stopped {
        return Err(AgentError::hook_aborted(
            &stop.plugin_id,
            "SessionStart",
            &stop.reason,
        ));
    }
    if parts.work.memory.is_none() {
        let namespace = namespace(&core, &parts.overrides);
        parts.work.memory = core
            .memories
            .as_ref()
            .map(|storage| MemoryProgress::new(storage, &namespace));
    }
    let context_tokens = parts.work.context.tokens();
    let open = Arc::new(OpenSession {
        core,
        id: parts.id,
        created_at: parts.created_at,
        overrides: parts.overrides,
        environment: parts.environment,
        warnings: ticket.losses().to_vec(),
        state: Mutex::new(State {
            closing: None,
            model: parts.model,
            title: parts.title,
            message_count: parts.work.message_count,
            context_tokens,
            journal: Arc::clone(&parts.work.journal),
            activity: Activity::Idle(parts.work),
        }),
        idle: Notify::new(),
    });
    {
        // Known right away: what every request holds counts, too.
        let mut state = lock(&open.state);
        let model = state.model.clone();
        if let Some(mut work) = state.take_work() {
            work.prepare(&open, &model, &[]);
            state.context_tokens = work.context.tokens();
            state.activity = Activity::Idle(work);
        }
    }
    let inner = Arc::new(SessionInner {
        open,
        slot: Arc::downgrade(ticket.slot()),
    });
    ticket.fill(&inner)?;
    Ok(Session { inner })
}

fn journal(core: &Core, session_id: &Arc<str>, next_index: u64) -> Arc<Journal> {
    Journal::new(
        session_id,
        core.sessions.clone(),
        core.storage_limit(),
        next_index,
    )
}

fn namespace(core: &Core, overrides: &SessionOverrides) -> String {
    overrides
        .memory_namespace
        .clone()
        .or_else(|| core.config.memory_namespace.clone())
        .unwrap_or_default()
}

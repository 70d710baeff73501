//! The agent: no Tauri, no input or output of its own.
//!
//! Arrows point down: builder → agent → session → turn → {context, prompt, tool, hook,
//! memory, skill, journal, event_log} → vocabulary {message, event, error, config, provider,
//! storage}.

pub(crate) mod builder;
pub(crate) mod catalog;
pub(crate) mod clock;
pub(crate) mod compaction;
pub(crate) mod config;
pub(crate) mod contain;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod event_log;
pub(crate) mod hook;
pub(crate) mod journal;
#[cfg(feature = "bindings")]
pub(crate) mod json;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod model_call;
pub(crate) mod notes;
pub(crate) mod plugin;
pub(crate) mod prompt;
pub(crate) mod provider;
pub(crate) mod retry;
pub(crate) mod session;
mod shutdown;
pub(crate) mod side_call;
pub(crate) mod skill;
pub(crate) mod storage;
pub(crate) mod stored;
pub(crate) mod text;
pub(crate) mod thoughts;
pub mod tool;
pub(crate) mod turn;
pub(crate) mod work;

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use catalog::ModelEntry;
use config::{ResumeOptions, SessionConfig};
use contain::spawned;
use core::Core;
use error::AgentError;
use event_log::{Subscription, Turn};
use session::{Session, Slot, SlotTicket};
use shutdown::Shutdown;
use skill::SkillInfo;
use storage::{ListPage, SessionSummary};
use stored::{HistoryPage, Stored};
use tool::{ToolInfo, inside};

pub use shutdown::ShutdownReport;

/// An agent: everything registered, and at most one open session. A cheap handle.
///
/// [`AgentBuilder`](crate::AgentBuilder) makes one. End it by [`shutdown`](Self::shutdown):
/// just dropped, it stores no last memories and shuts no plugin down.
///
/// It can be called from any thread, also from one without a runtime: its work is done on
/// the runtime it was built on.
#[derive(Clone)]
pub struct Agent {
    core: Arc<Core>,
    slot: Arc<Slot>,
    shutdown: Arc<Shutdown>,
}

impl Agent {
    pub(crate) fn new(core: Core) -> Self {
        Self {
            core: Arc::new(core),
            slot: Arc::default(),
            shutdown: Arc::default(),
        }
    }

    /// Creates a session.
    ///
    /// # Errors
    /// `SESSION_BUSY` while another is open or being opened, unless `replace` is set, and from
    /// inside a tool's call in the session that would be replaced; `MODEL_NOT_SUPPORTED`;
    /// `HOOK_ABORTED`; `AGENT_SHUT_DOWN`.
    pub async fn create_session(&self, config: SessionConfig) -> Result<Session, AgentError> {
        self.check_replaceable(config.replace)?;
        let this = self.clone();
        self.run(async move {
            let id = config
                .model_id
                .as_deref()
                .unwrap_or(&this.core.config.default_model);
            let model = this.core.catalog.find(id)?;
            let ticket = this.take_slot(None, config.replace).await?;
            session::create(Arc::clone(&this.core), ticket, config, model).await
        })
        .await
    }

    /// Opens a stored session again, with its model and overrides. The environment is taken
    /// anew. A turn that was running when the program ended is not run again;
    /// [`Session::retry_turn`] does that.
    ///
    /// # Errors
    /// `SESSION_BUSY` while one is open or being opened, unless `replace` is set, and from inside
    /// a tool's call in the session that would be replaced; `SESSION_NOT_FOUND`, also when no session storage is registered;
    /// `MODEL_NOT_SUPPORTED` when its model is gone and no other is named; `STORAGE_ERROR`;
    /// `HOOK_ABORTED`; `AGENT_SHUT_DOWN`. Nothing is opened then.
    pub async fn resume_session(
        &self,
        session_id: &str,
        options: ResumeOptions,
    ) -> Result<Session, AgentError> {
        self.check_replaceable(options.replace)?;
        let this = self.clone();
        let session_id: Arc<str> = session_id.into();
        self.run(async move {
            if !options.replace {
                // Refused early, before anything is read.
                this.slot.check_free()?;
            }
            // What cannot be opened closes nothing and takes nobody's place.
            let stored = session::load(&this.core, &session_id).await?;
            let model = stored.model(&this.core, options.model_id.as_deref())?;
            let ticket = this.take_slot(Some(&session_id), options.replace).await?;
            // From here on nobody else writes to it or deletes it.
            let stored = stored.refreshed(&this.core).await?;
            session::resume(Arc::clone(&this.core), ticket, options, stored, model).await
        })
        .await
    }

    /// The open session.
    #[must_use]
    pub fn current_session(&self) -> Option<Session> {
        self.slot.current().map(|inner| Session { inner })
    }

    /// A page of stored sessions, newest first; empty without a storage. `limit` is at most
    /// 1,000, which is also the default.
    ///
    /// # Errors
    /// `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn list_sessions(
        &self,
        cursor: Option<&str>,
        limit: Option<NonZeroUsize>,
    ) -> Result<ListPage, AgentError> {
        let (this, cursor) = (self.clone(), cursor.map(str::to_owned));
        self.run(async move { this.stored().list(cursor.as_deref(), limit).await })
            .await
    }

    /// The stored sessions that fit: by id, else title, else start of the id, else part of
    /// the title. A blank query fits none.
    ///
    /// # Errors
    /// `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn find_sessions(&self, query: &str) -> Result<Vec<SessionSummary>, AgentError> {
        let (this, query) = (self.clone(), query.to_owned());
        self.run(async move { this.stored().find(&query).await })
            .await
    }

    /// Changes the title of a session, open or stored. A title is one line of at most 400
    /// characters; control characters are left out.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a title that is blank or too long, `SESSION_NOT_FOUND`,
    /// `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn rename_session(&self, session_id: &str, title: &str) -> Result<(), AgentError> {
        let (this, session_id, title) = (self.clone(), session_id.to_owned(), title.to_owned());
        self.run(async move { this.stored().rename(&session_id, &title).await })
            .await
    }

    /// Deletes a stored session with everything in it.
    ///
    /// # Errors
    /// `SESSION_BUSY` while it is open or being resumed, `SESSION_NOT_FOUND`, `STORAGE_ERROR`,
    /// `AGENT_SHUT_DOWN`.
    pub async fn delete_session(&self, session_id: &str) -> Result<(), AgentError> {
        let (this, session_id) = (self.clone(), Arc::from(session_id));
        self.run(async move { this.stored().delete(&session_id).await })
            .await
    }

    /// A page of a session's events on its visible path, as they happened, also those that a
    /// compaction took out of the context. `cursor` is what the page before gave. `limit` is at
    /// most 1,000, which is also the default; a page ends earlier after 4 MiB. Without a
    /// storage there is only the open session's history.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn session_history(
        &self,
        session_id: &str,
        cursor: Option<u64>,
        limit: Option<NonZeroUsize>,
    ) -> Result<HistoryPage, AgentError> {
        let (this, session_id) = (self.clone(), session_id.to_owned());
        self.run(async move { this.stored().history(&session_id, cursor, limit).await })
            .await
    }

    /// The models that can be used right now. A provider that does not answer within half a
    /// second has those that it named before; nobody waits for it again until it has answered.
    #[must_use]
    pub fn models(&self) -> Vec<ModelEntry> {
        self.core.catalog.entries()
    }

    /// The registered tools, sorted by name.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.core.tools.infos()
    }

    /// The registered skills, in order of registration.
    #[must_use]
    pub fn skills(&self) -> Vec<SkillInfo> {
        self.core.skills.infos()
    }

    /// A further reader of a running turn or of one of the last eight, from its start. Ended
    /// turns are forgotten earlier where they take more than
    /// [`event_log_limit_bytes`](crate::AgentConfig::event_log_limit_bytes).
    #[must_use]
    pub fn turn(&self, turn_id: &str) -> Option<Turn> {
        let log = self.core.event_log.turn(turn_id)?;
        match self.slot.current() {
            Some(session) if session.open.id == *log.session_id() => session.turn(turn_id),
            Some(_) | None => Some(Turn::new(log, || false)),
        }
    }

    /// The events of all turns of all sessions, from now on until the shutdown.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.core.event_log.subscribe()
    }

    /// Ends everything: closes the session, then shuts the plugins down in reverse order,
    /// all within `shutdown_timeout_ms`. What does not fit is skipped and reported. Safe to
    /// call twice and during use; afterwards every call answers `AGENT_SHUT_DOWN`.
    ///
    /// From inside a tool's call it begins and returns at once, with a report that says so: it
    /// goes on when the tool has returned.
    pub async fn shutdown(&self) -> ShutdownReport {
        let asking = self
            .slot
            .current()
            .and_then(|session| inside::tool_of(&session.open.id));
        let shutdown = self.shutdown.begin(&self.core, &self.slot);
        match asking {
            None => shutdown.await,
            Some(tool) => ShutdownReport {
                problems: vec![format!(
                    "the tool \"{tool}\" began the shutdown from inside its own call, so its end cannot be awaited here; it goes on when the tool has returned"
                )],
            },
        }
    }

    /// # Errors
    /// `AGENT_SHUT_DOWN`.
    #[cfg(feature = "tauri")]
    pub(crate) fn check_running(&self) -> Result<(), AgentError> {
        self.core.check_running()
    }

    /// Time limit of the whole shutdown.
    #[cfg(feature = "tauri")]
    pub(crate) fn shutdown_limit(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.core.config.shutdown_timeout_ms)
    }

    /// A tool that replaced its own session would wait for its own call.
    fn check_replaceable(&self, replace: bool) -> Result<(), AgentError> {
        match self.slot.current().filter(|_| replace) {
            Some(session) => inside::refuse(&session.open.id, "replace its session"),
            None => Ok(()),
        }
    }

    fn stored(&self) -> Stored<'_> {
        Stored {
            core: &self.core,
            slot: &self.slot,
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AgentError>> + Send + 'static,
    ) -> Result<T, AgentError> {
        self.core.check_running()?;
        spawned(&self.core.runtime, work).await
    }

    /// Takes the slot for a stored session, or for a new one.
    async fn take_slot(
        &self,
        session_id: Option<&Arc<str>>,
        replace: bool,
    ) -> Result<SlotTicket, AgentError> {
        let ticket = if replace {
            self.slot.take_over(session_id).await?
        } else {
            self.slot.take(session_id).await?
        };
        // A shutdown that began meanwhile may have looked into the slot already.
        self.core.check_running()?;
        Ok(ticket)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("session", &self.current_session())
            .finish_non_exhaustive()
    }
}

//! The agent: no Tauri, no input or output of its own.
//!
//! Arrows point down: builder → agent → session → turn → {context, prompt, tool, hook,
//! memory, skill, journal, outlet} → vocabulary {message, event, error, config, provider,
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
pub(crate) mod hook;
pub(crate) mod journal;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod model_call;
pub(crate) mod outlet;
pub(crate) mod plugin;
pub(crate) mod prompt;
pub(crate) mod provider;
pub(crate) mod retry;
pub(crate) mod session;
mod shutdown;
pub(crate) mod skill;
pub(crate) mod storage;
pub mod tool;
pub(crate) mod turn;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use catalog::ModelEntry;
use config::{ResumeOptions, SessionConfig};
use contain::spawned;
use core::Core;
use error::AgentError;
use journal::guarded;
use outlet::{Subscription, Turn};
use session::{Session, Slot, SlotTicket};
use shutdown::Shutdown;
use skill::SkillInfo;
use storage::{ListPage, SessionEvent, SessionSummary};
use tool::ToolInfo;

pub use shutdown::ShutdownReport;

/// Rows of a page where the caller asks for none or for more.
const MAX_PAGE: usize = 1_000;

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

/// A page of a session's stored events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct HistoryPage {
    /// In order of index.
    pub events: Vec<SessionEvent>,
    /// Pass it as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional, type = Option<u32>))]
    pub next_cursor: Option<u64>,
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
    /// `SESSION_BUSY` while another is open or being opened, unless `replace` is set;
    /// `MODEL_NOT_SUPPORTED`; `HOOK_ABORTED`; `AGENT_SHUT_DOWN`.
    pub async fn create_session(&self, config: SessionConfig) -> Result<Session, AgentError> {
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
    /// `SESSION_BUSY` while one is open or being opened, unless `replace` is set;
    /// `SESSION_NOT_FOUND`, also when no session storage is registered;
    /// `MODEL_NOT_SUPPORTED` when its model is gone and no other is named; `STORAGE_ERROR`;
    /// `HOOK_ABORTED`; `AGENT_SHUT_DOWN`. Nothing is opened then.
    pub async fn resume_session(
        &self,
        session_id: &str,
        options: ResumeOptions,
    ) -> Result<Session, AgentError> {
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
    /// 1,000; 0 means that.
    ///
    /// # Errors
    /// `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn list_sessions(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage, AgentError> {
        let core = Arc::clone(&self.core);
        let cursor = cursor.map(str::to_owned);
        self.run(async move {
            let Some(storage) = &core.sessions else {
                return Ok(ListPage::default());
            };
            guarded(core.storage_limit(), "listing sessions failed", || {
                storage.list(cursor.as_deref(), page_limit(limit))
            })
            .await
        })
        .await
    }

    /// The stored sessions that fit: by id, else title, else start of the id, else part of
    /// the title. A blank query fits none.
    ///
    /// # Errors
    /// `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn find_sessions(&self, query: &str) -> Result<Vec<SessionSummary>, AgentError> {
        let core = Arc::clone(&self.core);
        let query = query.to_owned();
        self.run(async move {
            let Some(storage) = &core.sessions else {
                return Ok(Vec::new());
            };
            if query.trim().is_empty() {
                return Ok(Vec::new());
            }
            guarded(core.storage_limit(), "finding sessions failed", || {
                storage.find(&query)
            })
            .await
        })
        .await
    }

    /// Changes the title of a session, open or stored.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a blank title, `SESSION_NOT_FOUND`, `STORAGE_ERROR`,
    /// `AGENT_SHUT_DOWN`.
    pub async fn rename_session(&self, session_id: &str, title: &str) -> Result<(), AgentError> {
        let this = self.clone();
        let session_id = session_id.to_owned();
        let words: Vec<&str> = title.split_whitespace().collect();
        let title = words.join(" ");
        self.run(async move {
            if title.is_empty() {
                return Err(AgentError::invalid_input("the title is empty"));
            }
            let open = this
                .slot
                .current()
                .filter(|session| *session.id == *session_id);
            let stored = match &this.core.sessions {
                None => false,
                Some(storage) => {
                    guarded(
                        this.core.storage_limit(),
                        "renaming the session failed",
                        || storage.rename(&session_id, &title),
                    )
                    .await?
                }
            };
            match open {
                // Before its first message a session is in no storage yet.
                Some(session) => session.set_title(title),
                None if stored => {}
                None => return Err(AgentError::session_not_found(&session_id)),
            }
            Ok(())
        })
        .await
    }

    /// Deletes a stored session with everything in it.
    ///
    /// # Errors
    /// `SESSION_BUSY` while it is open or being resumed, `SESSION_NOT_FOUND`, `STORAGE_ERROR`,
    /// `AGENT_SHUT_DOWN`.
    pub async fn delete_session(&self, session_id: &str) -> Result<(), AgentError> {
        let this = self.clone();
        let session_id: Arc<str> = session_id.into();
        self.run(async move {
            let Some(_claim) = this.slot.claim(&session_id).await else {
                return Err(AgentError::session_busy(
                    "the session is open; close it before you delete it",
                ));
            };
            let missing = || AgentError::session_not_found(&session_id);
            let storage = this.core.sessions.as_ref().ok_or_else(missing)?;
            let existed = guarded(
                this.core.storage_limit(),
                "deleting the session failed",
                || storage.delete(&session_id),
            )
            .await?;
            if existed { Ok(()) } else { Err(missing()) }
        })
        .await
    }

    /// A page of a session's events, as they happened, also those that a compaction took out
    /// of the context: what comes after index `after`. Without a storage the open session's
    /// are answered. `limit` is at most 1,000; 0 means that.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
    pub async fn session_history(
        &self,
        session_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<HistoryPage, AgentError> {
        let this = self.clone();
        let session_id = session_id.to_owned();
        self.run(async move {
            let limit = page_limit(limit);
            let open = this
                .slot
                .current()
                .filter(|session| *session.id == *session_id);
            // One more than asked for tells whether there is another page.
            let read = match (&this.core.sessions, &open) {
                (Some(storage), _) => guarded(
                    this.core.storage_limit(),
                    "loading the history failed",
                    || storage.load_page(&session_id, after, limit + 1),
                )
                .await?
                .map(|log| log.events),
                (None, Some(session)) => Some(session.kept_events(after, limit + 1)),
                (None, None) => None,
            };
            let mut events = match (read, open) {
                (Some(events), _) => events,
                // Before its first message a session has no events.
                (None, Some(_)) => Vec::new(),
                (None, None) => return Err(AgentError::session_not_found(&session_id)),
            };
            let more = events.len() > limit;
            events.truncate(limit);
            let next_cursor = events.last().map(|event| event.index).filter(|_| more);
            Ok(HistoryPage {
                events,
                next_cursor,
            })
        })
        .await
    }

    /// The models that can be used right now.
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

    /// A further reader of a running turn or of one of the last eight, from its start.
    #[must_use]
    pub fn turn(&self, turn_id: &str) -> Option<Turn> {
        let log = self.core.outlet.turn(turn_id)?;
        match self.slot.current() {
            Some(session) if session.id == *log.session_id() => session.turn(turn_id),
            Some(_) | None => Some(Turn::new(log, || false)),
        }
    }

    /// The events of all turns of all sessions, from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.core.outlet.subscribe()
    }

    /// Ends everything: closes the session, then shuts the plugins down in reverse order,
    /// all within `shutdown_timeout_ms`. What does not fit is skipped and reported. Safe to
    /// call twice and during use; afterwards every call answers `AGENT_SHUT_DOWN`.
    pub async fn shutdown(&self) -> ShutdownReport {
        self.shutdown.run(&self.core, &self.slot).await
    }

    /// Time limit of the whole shutdown.
    #[cfg(feature = "tauri")]
    pub(crate) fn shutdown_limit(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.core.config.shutdown_timeout_ms)
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

fn page_limit(asked: usize) -> usize {
    if asked == 0 {
        MAX_PAGE
    } else {
        asked.min(MAX_PAGE)
    }
}

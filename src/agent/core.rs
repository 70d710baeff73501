//! Everything that was registered, shared by all sessions of an agent.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalog::Catalog;
use super::clock;
use super::config::AgentConfig;
use super::contain::lock;
use super::error::AgentError;
use super::event_log::EventLog;
use super::hook::registry::{HookDeadline, Taps};
use super::memory::MemoryStorage;
use super::notes::Notes;
use super::plugin::Plugin;
use super::skill::SkillSet;
use super::storage::SessionStorage;
use super::tool::set::ToolSet;

/// The registered parts and the configuration. Nothing in it changes after the build.
pub(crate) struct Core {
    pub(crate) config: AgentConfig,
    /// The words of `config.notes`, shared by all contexts.
    pub(crate) notes: Arc<Notes>,
    pub(crate) catalog: Catalog,
    pub(crate) tools: ToolSet,
    pub(crate) skills: SkillSet,
    pub(crate) taps: Taps,
    /// In order of registration.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
    pub(crate) sessions: Option<Arc<dyn SessionStorage>>,
    pub(crate) memories: Option<Arc<dyn MemoryStorage>>,
    pub(crate) event_log: Arc<EventLog>,
    /// Where all work runs, so that the agent can be called from any thread.
    pub(crate) runtime: Handle,
    /// Fires when the shutdown begins.
    pub(crate) stopping: CancellationToken,
    /// When the shutdown began.
    pub(crate) stopping_since: OnceLock<Instant>,
    /// The closes that are under way, also of sessions that were replaced.
    pub(crate) closes: TaskTracker,
    /// What a shutdown leaves out, each a sentence for the log.
    pub(crate) left_out: Mutex<Vec<String>>,
}

impl Drop for Core {
    /// The last handle of the agent is gone: subscribers must not wait for more.
    fn drop(&mut self) {
        self.event_log.close();
    }
}

impl Core {
    /// # Errors
    /// `AGENT_SHUT_DOWN`.
    pub(crate) fn check_running(&self) -> Result<(), AgentError> {
        if self.stopping.is_cancelled() {
            Err(AgentError::agent_shut_down())
        } else {
            Ok(())
        }
    }

    /// Says what the shutdown has no time for.
    pub(crate) fn leave_out(&self, session_id: &str, what: &str) {
        tracing::warn!(session = session_id, "{what}");
        lock(&self.left_out).push(format!("session {session_id}: {what}"));
    }

    /// Until when sessions are closed once a shutdown has begun. A fifth of its time is kept for
    /// plugins, if there are any.
    pub(crate) fn closing_deadline(&self) -> Instant {
        self.since_stopping(self.closing_share())
    }

    /// Until when memories are extracted once a shutdown has begun: a twentieth of its time
    /// earlier, so that what has to be left out can still be told.
    pub(crate) fn extraction_deadline(&self) -> Instant {
        self.since_stopping(self.closing_share() - 1)
    }

    /// How many twentieths of the shutdown are for closing sessions.
    fn closing_share(&self) -> u32 {
        if self.plugins.is_empty() { 20 } else { 16 }
    }

    fn since_stopping(&self, twentieths: u32) -> Instant {
        let began = *self.stopping_since.get_or_init(Instant::now);
        clock::after(began, self.shutdown_limit() / 20 * twentieths)
    }

    /// Time limit of the whole shutdown.
    pub(crate) fn shutdown_limit(&self) -> Duration {
        Duration::from_millis(self.config.shutdown_timeout_ms)
    }

    pub(crate) fn storage_limit(&self) -> Duration {
        Duration::from_millis(self.config.storage_timeout_ms)
    }

    /// How long hooks may take where nobody can cancel.
    pub(crate) fn hook_limit(&self) -> HookDeadline<'static> {
        HookDeadline {
            limit: Duration::from_millis(self.config.hook_timeout_ms),
            cancel: None,
        }
    }

    /// How long the hooks of something that can be cancelled may take.
    pub(crate) fn hook_limit_with<'a>(&self, cancel: &'a CancellationToken) -> HookDeadline<'a> {
        HookDeadline {
            limit: self.hook_limit().limit,
            cancel: Some(cancel),
        }
    }

    pub(crate) fn idle_limit(&self) -> Duration {
        Duration::from_millis(self.config.provider_idle_timeout_ms)
    }
}

//! Watching the calls of handlers.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::contain;

/// One call of a handler, for an observer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// The hook, such as `BeforeToolUse`.
    pub hook: &'static str,
    /// The plugin of the handler.
    pub plugin_id: &'a str,
    /// The name of its tap.
    pub tap: &'a str,
    /// How long the handler ran.
    pub duration: Duration,
    /// What came of it.
    pub report: HookReport<'a>,
}

/// What came of the call of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookReport<'a> {
    /// It went on unchanged.
    Continued,
    /// It changed something.
    Changed,
    /// It aborted, for this reason.
    Aborted(&'a str),
    /// It failed, panicked, took too long, or its change was refused: why.
    Faulted(&'a str),
}

/// Watches the calls of handlers.
pub(super) type Observer = Box<dyn Fn(&HookCall<'_>) + Send + Sync>;

/// What all handlers of an agent have in common.
#[derive(Clone, Default)]
pub(super) struct Common {
    /// Set once all plugins are applied: an observer sees the handlers of every plugin, also of
    /// those that were applied before its own.
    observers: Arc<OnceLock<Vec<Observer>>>,
    /// Fires once the plugins are about to be shut down: nothing of theirs runs any more.
    pub(super) retired: CancellationToken,
}

impl Common {
    /// Says who watches. Called once.
    pub(super) fn set_observers(&self, observers: Vec<Observer>) {
        // There were none before, so that none can be lost here.
        let _ = self.observers.set(observers);
    }

    /// Whether a call has to be measured at all.
    pub(super) fn is_observed(&self) -> bool {
        self.observers.get().is_some_and(|all| !all.is_empty())
    }

    /// Tells the observers of a call. They belong to plugins: once those are shut down, nobody
    /// is told.
    pub(super) fn tell(&self, call: &HookCall<'_>) {
        if self.retired.is_cancelled() {
            return;
        }
        for observer in self.observers.get().into_iter().flatten() {
            if let Err(panicked) = contain::call(|| observer(call)) {
                tracing::warn!(hook = call.hook, %panicked, "an observer of hooks failed");
            }
        }
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common")
            .field("observers", &self.observers.get().map(Vec::len))
            .field("retired", &self.retired.is_cancelled())
            .finish()
    }
}

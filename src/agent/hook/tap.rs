//! How a handler is mounted.

use std::sync::Arc;
use std::time::Duration;

/// How a handler is mounted: its name, its place among the handlers of its hook, its time
/// limit, and what a fault means.
///
/// A plain string is a tap in stage 0 with the agent's `hook_timeout_ms` that allows on fault.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use youyou_agent::{OnFault, Tap};
///
/// let quick: Tap = "log".into();
/// let strict = Tap::named("check").limit(Duration::from_secs(2)).on_fault(OnFault::Deny);
/// let asks_a_person = Tap::named("confirm").no_limit();
/// let last = Tap::named("redact").stage(100);
/// let early = Tap::named("normalize").before("check");
/// # let _ = (quick, strict, asks_a_person, last, early);
/// ```
#[derive(Debug, Clone)]
pub struct Tap {
    pub(super) name: Arc<str>,
    pub(super) limit: TapLimit,
    pub(super) on_fault: OnFault,
    pub(super) stage: i32,
    pub(super) before: Vec<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TapLimit {
    Configured,
    Own(Duration),
    None,
}

/// What happens when a handler fails, panics or exceeds its limit.
///
/// `BeforeToolUse` always denies: the tool does not run, and the model reads why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// A warning; the flow goes on unchanged. The default.
    #[default]
    Allow,
    /// AfterToolUse: the output is withheld. TurnStart: the turn fails. Elsewhere as `Allow`.
    Deny,
}

impl Tap {
    /// A tap with a name for logs and messages.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            limit: TapLimit::Configured,
            on_fault: OnFault::Allow,
            stage: 0,
            before: Vec::new(),
        }
    }

    /// A time limit of its own, instead of `hook_timeout_ms`.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = TapLimit::Own(limit);
        self
    }

    /// No time limit, for a handler that asks a person. From the moment the user cancels the turn
    /// or closes the session the agent's `hook_timeout_ms` holds for it, too; in `SessionStart`,
    /// from the moment another session is to replace the one that is being opened.
    #[must_use]
    pub fn no_limit(mut self) -> Self {
        self.limit = TapLimit::None;
        self
    }

    /// Runs the handler in this stage; without this call in stage 0. Lower stages run first;
    /// within one the order of registration holds.
    #[must_use]
    pub fn stage(mut self, stage: i32) -> Self {
        self.stage = stage;
        self
    }

    /// Runs the handler before the other taps of the same hook that have this name, whichever
    /// plugin they belong to. Can be called for several names; one that no tap has is ignored,
    /// as the other plugin may not be registered.
    ///
    /// A stage stands above it: an order that is impossible (two taps that each must run before
    /// the other, or a tap before one of a lower stage) fails the build with `INVALID_CONFIG`
    /// naming the taps.
    #[must_use]
    pub fn before(mut self, name: impl Into<Arc<str>>) -> Self {
        self.before.push(name.into());
        self
    }

    /// What a fault means; without this call [`OnFault::Allow`].
    #[must_use]
    pub fn on_fault(mut self, on_fault: OnFault) -> Self {
        self.on_fault = on_fault;
        self
    }
}

impl From<&str> for Tap {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for Tap {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

impl From<Arc<str>> for Tap {
    fn from(name: Arc<str>) -> Self {
        Self::named(name)
    }
}

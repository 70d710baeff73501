//! The seven hooks: what a handler gets and what it may answer (chapter 3.5).
//!
//! Each hook has its own type of change, so that a change of the wrong shape does not
//! compile.

pub(crate) mod registry;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use registry::HookRegistry;

use super::message::ContentBlock;

/// What a handler answers. `C` is the change that its hook allows, see the table at
/// [`HookRegistry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOutcome<C> {
    /// Go on.
    Continue,
    /// Go on with changed data. Later handlers see the change.
    ContinueWith(C),
    /// Stop here, for this reason; later handlers are not called.
    Abort(String),
}

/// Why a handler failed. A failure, a panic and a timeout are one thing: a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookError {
    /// What failed.
    pub message: String,
}

impl HookError {
    /// A failure with a message for the log.
    pub fn new(message: impl std::fmt::Display) -> Self {
        Self {
            message: message.to_string(),
        }
    }
}

/// What a handler gives back.
pub type HookResult<C> = Result<HookOutcome<C>, HookError>;

/// How a handler is mounted: its name, its time limit, and what a fault means.
///
/// A plain string is a tap with the agent's `hook_timeout_ms` that allows on fault.
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
/// # let _ = (quick, strict, asks_a_person);
/// ```
#[derive(Debug, Clone)]
pub struct Tap {
    pub(crate) name: Arc<str>,
    pub(crate) limit: TapLimit,
    pub(crate) on_fault: OnFault,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TapLimit {
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
        }
    }

    /// A time limit of its own, instead of `hook_timeout_ms`.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = TapLimit::Own(limit);
        self
    }

    /// No time limit, for a handler that asks a person. Once the user cancels the turn or
    /// closes the session, the agent's `hook_timeout_ms` holds for it, too; in `SessionStart`,
    /// where there is nothing to cancel yet, the session opens when it answers.
    #[must_use]
    pub fn no_limit(mut self) -> Self {
        self.limit = TapLimit::None;
        self
    }

    /// What a fault means; without this call [`OnFault::Allow`].
    #[must_use]
    pub fn on_fault(mut self, on_fault: OnFault) -> Self {
        self.on_fault = on_fault;
        self
    }
}

impl<S: Into<Arc<str>>> From<S> for Tap {
    fn from(name: S) -> Self {
        Self::named(name)
    }
}

/// A session was created or resumed. `Abort`: it is not opened (`HOOK_ABORTED`).
#[derive(Debug, Clone)]
pub struct SessionStart {
    /// The session.
    pub session_id: Arc<str>,
    /// Whether it was stored before.
    pub resumed: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// A session is closed. Too late to abort.
#[derive(Debug, Clone)]
pub struct SessionEnd {
    /// The session.
    pub session_id: Arc<str>,
    /// User and assistant messages in it.
    pub message_count: u32,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// A turn starts. `Abort`: it fails with `HOOK_ABORTED`, and the message is not stored.
#[derive(Debug, Clone)]
pub struct TurnStart {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// What the user sent, as the handlers before left it.
    pub user_input: Arc<[ContentBlock]>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// What a `TurnStart` handler may change.
#[derive(Debug, Clone, Default)]
pub struct TurnStartChange {
    /// Replaces the user's input; checked like the input itself.
    pub user_input: Option<Vec<ContentBlock>>,
    /// Sections added at the end of the system prompt, for this turn.
    pub prompt_sections: Vec<String>,
}

/// A turn ended: completed, failed or cancelled. Too late to abort.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// Text of the last response, as the handlers before left it. A change is reported in
    /// `TurnComplete`; what is stored stays what the model said.
    pub assistant_output: Arc<str>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// A tool is about to run. `Abort`: it does not, and the model is told why.
#[derive(Debug, Clone)]
pub struct BeforeToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments, as the handlers before left them. A change is validated again.
    pub arguments: Arc<Value>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// A tool ran. `Abort`: its output is withheld, and the model is told why.
#[derive(Debug, Clone)]
pub struct AfterToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// What the model will see, as the handlers before left it.
    pub output: Arc<str>,
    /// How long the tool ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub success: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// The context is about to be compacted. `Abort`: it is not.
#[derive(Debug, Clone)]
pub struct BeforeCompact {
    /// The session.
    pub session_id: Arc<str>,
    /// Messages in the context.
    pub message_count: u32,
    /// Estimated size of the context, in tokens.
    pub estimated_tokens: u64,
    /// Instructions for the summary that the handlers before added. A change replaces them.
    pub instructions: Arc<str>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
}

/// One of the seven hooks: ties a payload to the change its handlers may make.
///
/// Implemented by the payloads; it cannot be implemented elsewhere.
pub trait Hook: Clone + Send + Sync + sealed::Sealed + 'static {
    /// What `ContinueWith` carries.
    type Change: Send + 'static;
    /// The hook's name in logs and messages.
    const NAME: &'static str;

    #[doc(hidden)]
    fn set_config(&mut self, config: &Arc<Value>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! hooks {
    ($($hook:ident => $change:ty),* $(,)?) => {$(
        impl sealed::Sealed for $hook {}

        impl Hook for $hook {
            type Change = $change;
            const NAME: &'static str = stringify!($hook);

            fn set_config(&mut self, config: &Arc<Value>) {
                self.plugin_config = Arc::clone(config);
            }
        }
    )*};
}

hooks! {
    SessionStart => Infallible,
    SessionEnd => Infallible,
    TurnStart => TurnStartChange,
    TurnEnd => String,
    BeforeToolUse => Value,
    AfterToolUse => String,
    BeforeCompact => String,
}

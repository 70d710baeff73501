//! The seven hooks: what a handler gets and what it may return.
//!
//! Each hook has its own type of change, so that a change of the wrong shape does not
//! compile.

// Requirements: 3.5 Hook registry.

mod order;
pub(crate) mod registry;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use registry::{HookCall, HookRegistry, HookReport};

use super::error::caller_error;
use super::message::ContentBlock;

/// What a handler returns. `C` is the change that its hook allows, see the table at
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

caller_error! {
    /// Why a handler failed. A failure, a panic and a timeout are one thing: a fault.
    HookError {
        /// What failed.
        message
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
    pub(crate) stage: i32,
    pub(crate) before: Vec<Arc<str>>,
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

    /// No time limit, for a handler that asks a person. Once the user cancels the turn or
    /// closes the session, the agent's `hook_timeout_ms` holds for it, too; in `SessionStart`,
    /// where there is nothing to cancel yet, the session opens when it answers.
    #[must_use]
    pub fn no_limit(mut self) -> Self {
        self.limit = TapLimit::None;
        self
    }

    /// Runs the handler in a stage: lower ones first, 0 without this call. Within a stage the
    /// order of registration holds.
    #[must_use]
    pub fn stage(mut self, stage: i32) -> Self {
        self.stage = stage;
        self
    }

    /// Runs the handler before the taps of the same hook that have this name, whichever plugin
    /// they belong to. A name that nobody has changes nothing.
    ///
    /// An order that is impossible, together with the stages, fails the build with
    /// `INVALID_CONFIG`.
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

/// A session was created or resumed. `Abort`: it is not opened (`HOOK_ABORTED`).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionStart {
    /// The session.
    pub session_id: Arc<str>,
    /// Whether it was stored before.
    pub resumed: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A session is closed. Too late to abort.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionEnd {
    /// The session.
    pub session_id: Arc<str>,
    /// User and assistant messages in it.
    pub message_count: u32,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A turn starts. `Abort`: it fails with `HOOK_ABORTED`, and the message is not stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnStart {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// What the user sent, as the handlers before left it.
    pub user_input: Arc<[ContentBlock]>,
    /// The sections of the system prompt that the handlers before added for this turn.
    pub sections: Vec<String>,
    /// Where the message comes from.
    pub origin: TurnOrigin,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// Where the message of a `TurnStart` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnOrigin {
    /// The user sent it.
    Send,
    /// The turn of a stored message runs again.
    Retry,
    /// The user gave it to the turn that is running.
    Steer,
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
#[non_exhaustive]
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
    pub(crate) cancel: Option<CancellationToken>,
}

/// A tool is about to run. `Abort`: it does not, and the model is told why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BeforeToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The call, unique in its session.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments, as the handlers before left them. A change is validated again.
    pub arguments: Arc<Value>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A tool ran. `Abort`: its output is withheld, and the model is told why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AfterToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The call, unique in its session.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments that were used.
    pub arguments: Arc<Value>,
    /// What the model will see, as the handlers before left it.
    pub output: Arc<str>,
    /// How long the tool ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub success: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// The context is about to be compacted. `Abort`: it is not.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
    pub(crate) cancel: Option<CancellationToken>,
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
    fn set_surroundings(&mut self, config: &Arc<Value>, cancel: Option<&CancellationToken>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! hooks {
    ($($hook:ident($($field:ident: $type:ty),* $(,)?) => $change:ty),* $(,)?) => {$(
        impl $hook {
            /// The payload as the agent makes it, to test a handler with: without a config and
            /// without anyone who cancels.
            pub fn new($($field: impl Into<$type>),*) -> Self {
                Self {
                    $($field: $field.into(),)*
                    plugin_config: Arc::default(),
                    cancel: None,
                }
            }

            /// Fires when the user cancels, or the session is closed. The agent still waits for
            /// the handler; one that asks a person or a server can end early.
            #[must_use]
            pub fn cancel_requested(&self) -> CancellationToken {
                self.cancel.clone().unwrap_or_default()
            }
        }

        impl sealed::Sealed for $hook {}

        impl Hook for $hook {
            type Change = $change;
            const NAME: &'static str = stringify!($hook);

            fn set_surroundings(
                &mut self,
                config: &Arc<Value>,
                cancel: Option<&CancellationToken>,
            ) {
                self.plugin_config = Arc::clone(config);
                self.cancel = cancel.cloned();
            }
        }
    )*};
}

hooks! {
    SessionStart(session_id: Arc<str>, resumed: bool) => Infallible,
    SessionEnd(session_id: Arc<str>, message_count: u32) => Infallible,
    TurnStart(
        session_id: Arc<str>,
        turn_id: Arc<str>,
        user_input: Arc<[ContentBlock]>,
        sections: Vec<String>,
        origin: TurnOrigin
    ) => TurnStartChange,
    TurnEnd(session_id: Arc<str>, turn_id: Arc<str>, assistant_output: Arc<str>) => String,
    BeforeToolUse(
        session_id: Arc<str>,
        turn_id: Arc<str>,
        call_id: Arc<str>,
        tool_name: Arc<str>,
        arguments: Arc<Value>
    ) => Value,
    AfterToolUse(
        session_id: Arc<str>,
        turn_id: Arc<str>,
        call_id: Arc<str>,
        tool_name: Arc<str>,
        arguments: Arc<Value>,
        output: Arc<str>,
        duration_ms: u64,
        success: bool
    ) => String,
    BeforeCompact(
        session_id: Arc<str>,
        message_count: u32,
        estimated_tokens: u64,
        instructions: Arc<str>
    ) => String,
}

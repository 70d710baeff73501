//! The seven hooks: what a handler gets and what it may return.
//!
//! Each hook has its own type of change, so that a change of the wrong shape does not
//! compile.

// Requirements: 3.5 Hook registry.

mod observer;
mod order;
mod payload;
pub(crate) mod registry;
mod run;
mod tap;

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use observer::{HookCall, HookReport};
pub use payload::{
    AfterToolUse, BeforeCompact, BeforeToolUse, SessionEnd, SessionStart, TurnEnd, TurnOrigin,
    TurnStart, TurnStartChange,
};
pub use registry::HookRegistry;
pub use tap::{OnFault, Tap};

use super::error::caller_error;

/// How a hook goes on after a handler. `C` is the change that its hook allows, see the table at
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

/// What a handler returns: how the hook goes on, or why the handler failed.
pub type HookResult<C> = Result<HookOutcome<C>, HookError>;

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
    ($($hook:ident => $change:ty),* $(,)?) => {$(
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
    SessionStart => Infallible,
    SessionEnd => Infallible,
    TurnStart => TurnStartChange,
    TurnEnd => String,
    BeforeToolUse => Value,
    AfterToolUse => String,
    BeforeCompact => String,
}

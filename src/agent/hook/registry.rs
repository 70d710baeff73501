//! Who is tapped into which hook.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use super::observer::{Common, Observer};
use super::order::ordered;
use super::{
    AfterToolUse, BeforeCompact, BeforeToolUse, Hook, HookCall, HookResult, SessionEnd,
    SessionStart, Tap, TurnEnd, TurnStart,
};
use crate::agent::error::AgentError;

pub(crate) use super::run::{HookDeadline, Stop, Tapped, run};

/// Where a plugin mounts its handlers, in [`Plugin::apply`](crate::Plugin::apply).
///
/// # Order
/// Handlers of one hook run one after another: plugins in order of registration, the
/// handlers of a plugin in the order of these calls, unless [`Tap::stage`] or [`Tap::before`]
/// say otherwise.
///
/// | hook | when | `ContinueWith` | `Abort` |
/// |---|---|---|---|
/// | [`session_start`](Self::session_start) | a session is created or resumed | nothing | it is not opened: `HOOK_ABORTED` |
/// | [`turn_start`](Self::turn_start) | before the user's message is stored | [`TurnStartChange`](crate::TurnStartChange) | the turn fails with `HOOK_ABORTED` |
/// | [`before_tool_use`](Self::before_tool_use) | before each call | a `Value`: other arguments | the tool does not run, and the model reads why |
/// | [`after_tool_use`](Self::after_tool_use) | after each call that ran | a `String`: other output | the output is withheld, and the model reads why |
/// | [`before_compact`](Self::before_compact) | before the context is made smaller | a `String`: instructions for the summary | it is not made smaller |
/// | [`turn_end`](Self::turn_end) | before the last event of a turn | a `String`: the output that is reported | too late: a warning |
/// | [`session_end`](Self::session_end) | a session is closed | nothing | too late: a warning |
///
/// The handlers of calls that run at once run at once, too. What a failure, a panic or a
/// timeout of a handler means is described at [`OnFault`](crate::OnFault). [`Plugin`](crate::Plugin) has examples.
pub struct HookRegistry {
    plugin_id: Arc<str>,
    config: Arc<Value>,
    taps: Taps,
    observers: Vec<Observer>,
}

impl fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookRegistry")
            .field("taps", &self.taps)
            .field("observers", &self.observers.len())
            .finish_non_exhaustive()
    }
}

/// All mounted handlers, by hook.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    pub(crate) session_start: Vec<Tapped<SessionStart>>,
    pub(crate) session_end: Vec<Tapped<SessionEnd>>,
    pub(crate) turn_start: Vec<Tapped<TurnStart>>,
    pub(crate) turn_end: Vec<Tapped<TurnEnd>>,
    pub(crate) before_tool_use: Vec<Tapped<BeforeToolUse>>,
    pub(crate) after_tool_use: Vec<Tapped<AfterToolUse>>,
    pub(crate) before_compact: Vec<Tapped<BeforeCompact>>,
    common: Common,
}

impl Taps {
    /// Calls no handler and no observer from now on, and drops handlers under way.
    pub(crate) fn retire(&self) {
        self.common.retired.cancel();
    }
}

macro_rules! tap_methods {
    ($($(#[$doc:meta])* $method:ident: $hook:ty),* $(,)?) => {$(
        $(#[$doc])*
        pub fn $method<F, Fut>(&mut self, tap: impl Into<Tap>, handler: F)
        where
            F: Fn($hook) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = HookResult<<$hook as Hook>::Change>> + Send + 'static,
        {
            self.taps.$method.push(Tapped {
                plugin_id: Arc::clone(&self.plugin_id),
                config: Arc::clone(&self.config),
                tap: tap.into(),
                handler: Box::new(move |payload| Box::pin(handler(payload))),
                common: self.taps.common.clone(),
            });
        }
    )*};
}

impl HookRegistry {
    pub(crate) fn new() -> Self {
        Self {
            plugin_id: "".into(),
            config: Arc::default(),
            taps: Taps::default(),
            observers: Vec::new(),
        }
    }

    /// Says whose handlers come next.
    pub(crate) fn enter(&mut self, plugin_id: &str, config: &Arc<Value>) {
        self.plugin_id = plugin_id.into();
        self.config = Arc::clone(config);
    }

    /// Everything that was mounted, each hook in the order its handlers run.
    ///
    /// # Errors
    /// `INVALID_CONFIG` naming the taps that cannot be put in order.
    pub(crate) fn into_taps(self) -> Result<Taps, AgentError> {
        let taps = self.taps;
        taps.common.set_observers(self.observers);
        Ok(Taps {
            session_start: ordered(taps.session_start)?,
            session_end: ordered(taps.session_end)?,
            turn_start: ordered(taps.turn_start)?,
            turn_end: ordered(taps.turn_end)?,
            before_tool_use: ordered(taps.before_tool_use)?,
            after_tool_use: ordered(taps.after_tool_use)?,
            before_compact: ordered(taps.before_compact)?,
            common: taps.common,
        })
    }

    /// Watches the handlers of every hook and every plugin: `observer` is called after each call
    /// of a handler, with the handler's names, its duration and what came of it. It changes
    /// nothing. A call that was dropped before it ended, by a shutdown, is not seen.
    ///
    /// An observer runs in the turn it watches, without a time limit: it has to be quick, such
    /// as a counter or a channel that never blocks. One that panics is logged, and the turn goes
    /// on. After a shutdown none is called.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use youyou_agent::{HookRegistry, HookReport};
    ///
    /// fn watch(hooks: &mut HookRegistry) {
    ///     hooks.observe(|call| {
    ///         if call.duration > Duration::from_millis(100) {
    ///             println!("{} of {} is slow in {}", call.tap, call.plugin_id, call.hook);
    ///         }
    ///         if let HookReport::Faulted(fault) = call.report {
    ///             println!("{} of {}: {fault}", call.tap, call.plugin_id);
    ///         }
    ///     });
    /// }
    /// # let _ = watch;
    /// ```
    pub fn observe(&mut self, observer: impl Fn(&HookCall<'_>) + Send + Sync + 'static) {
        self.observers.push(Box::new(observer));
    }

    tap_methods! {
        /// A session is created or resumed. Nothing can be changed; `Abort` refuses it.
        session_start: SessionStart,
        /// A session is closed. `Abort` is too late.
        session_end: SessionEnd,
        /// A turn starts. Input and dynamic prompt sections can be changed; `Abort` fails it.
        turn_start: TurnStart,
        /// A turn ended. The reported output can be changed; `Abort` is too late.
        turn_end: TurnEnd,
        /// A tool is about to run. Arguments can be changed; `Abort`, a fault, and arguments
        /// that break the schema keep it from running.
        before_tool_use: BeforeToolUse,
        /// A tool ran. What the model sees can be changed; `Abort` withholds it.
        after_tool_use: AfterToolUse,
        /// The context is about to be compacted. Instructions can be added; `Abort` stops it.
        before_compact: BeforeCompact,
    }
}

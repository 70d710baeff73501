//! Who is tapped into which hook, and how a hook runs: limits, faults, observers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::order::ordered;
use super::{
    AfterToolUse, BeforeCompact, BeforeToolUse, Hook, HookOutcome, HookResult, OnFault, SessionEnd,
    SessionStart, Tap, TapLimit, TurnEnd, TurnStart,
};
use crate::agent::contain;
use crate::agent::error::AgentError;

type Handler<H> = Box<
    dyn Fn(H) -> Pin<Box<dyn Future<Output = HookResult<<H as Hook>::Change>> + Send>>
        + Send
        + Sync,
>;

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
/// timeout of a handler means is told at [`OnFault`]. [`Plugin`](crate::Plugin) has examples.
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
#[derive(Default)]
pub(crate) struct Taps {
    pub(crate) session_start: Vec<Tapped<SessionStart>>,
    pub(crate) session_end: Vec<Tapped<SessionEnd>>,
    pub(crate) turn_start: Vec<Tapped<TurnStart>>,
    pub(crate) turn_end: Vec<Tapped<TurnEnd>>,
    pub(crate) before_tool_use: Vec<Tapped<BeforeToolUse>>,
    pub(crate) after_tool_use: Vec<Tapped<AfterToolUse>>,
    pub(crate) before_compact: Vec<Tapped<BeforeCompact>>,
    /// Fires once the plugins are about to be shut down: no handler runs any more.
    retired: CancellationToken,
    /// Who watches the calls of handlers; set once all plugins are applied.
    observers: Arc<OnceLock<Vec<Observer>>>,
}

/// Watches the calls of handlers.
type Observer = Box<dyn Fn(&HookCall<'_>) + Send + Sync>;

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
    /// It failed, panicked or took too long.
    Faulted(&'a str),
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps")
            .field("session_start", &self.session_start)
            .field("session_end", &self.session_end)
            .field("turn_start", &self.turn_start)
            .field("turn_end", &self.turn_end)
            .field("before_tool_use", &self.before_tool_use)
            .field("after_tool_use", &self.after_tool_use)
            .field("before_compact", &self.before_compact)
            .finish_non_exhaustive()
    }
}

impl Taps {
    /// Calls no handler from now on, and drops those under way.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }
}

/// How long the handlers of a hook may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookDeadline<'a> {
    /// For a tap that has no limit of its own.
    pub(crate) limit: Duration,
    /// The user's cancel or close: from then on a tap without any limit has this one, too.
    pub(crate) cancel: Option<&'a CancellationToken>,
}

impl HookDeadline<'_> {
    /// Ends when a handler without a limit has had its time.
    async fn after_cancel(self) {
        match self.cancel {
            Some(cancel) => {
                cancel.cancelled().await;
                tokio::time::sleep(self.limit).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// One mounted handler.
pub(crate) struct Tapped<H: Hook> {
    plugin_id: Arc<str>,
    config: Arc<Value>,
    pub(super) tap: Tap,
    handler: Handler<H>,
    retired: CancellationToken,
    observers: Arc<OnceLock<Vec<Observer>>>,
}

impl<H: Hook> fmt::Debug for Tapped<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plugin_id, self.tap.name)
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
                retired: self.taps.retired.clone(),
                observers: Arc::clone(&self.taps.observers),
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
        let Self {
            mut taps,
            observers,
            ..
        } = self;
        taps.session_start = ordered(taps.session_start)?;
        taps.session_end = ordered(taps.session_end)?;
        taps.turn_start = ordered(taps.turn_start)?;
        taps.turn_end = ordered(taps.turn_end)?;
        taps.before_tool_use = ordered(taps.before_tool_use)?;
        taps.after_tool_use = ordered(taps.after_tool_use)?;
        taps.before_compact = ordered(taps.before_compact)?;
        // Nobody set it before: this is called once.
        let _ = taps.observers.set(observers);
        Ok(taps)
    }

    /// Watches every call of every handler of every hook, also those of other plugins: with its
    /// name, its duration and what came of it. An observer changes nothing; one that panics is
    /// logged and passed over. It runs where the handler ran, so it must be quick.
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

/// What became of a hook.
#[derive(Debug)]
pub(crate) struct HookRun<H> {
    /// The payload as the handlers left it.
    pub(crate) payload: H,
    /// Who stopped it.
    pub(crate) stopped: Option<Stop>,
    /// Faults that were passed over.
    pub(crate) warnings: Vec<String>,
}

/// A handler that stopped a hook: by `Abort`, or by a fault that denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) plugin_id: Arc<str>,
    pub(crate) reason: String,
}

/// Runs the handlers of one hook in order.
///
/// `change` applies a change to the payload; refusing it is a fault of the handler.
pub(crate) async fn run<H: Hook>(
    taps: &[Tapped<H>],
    mut payload: H,
    deadline: HookDeadline<'_>,
    faults_deny: impl Fn(OnFault) -> bool,
    mut change: impl FnMut(&mut H, H::Change) -> Result<(), String>,
) -> HookRun<H> {
    let mut warnings = Vec::new();
    for tapped in taps {
        let began = tapped.is_observed().then(Instant::now);
        let outcome = tapped.call(payload.clone(), deadline).await;
        if let Some(began) = began {
            tapped.tell_observers(began.elapsed(), &outcome);
        }
        let fault = match outcome {
            Ok(HookOutcome::Continue) => continue,
            Ok(HookOutcome::ContinueWith(changed)) => match change(&mut payload, changed) {
                Ok(()) => continue,
                Err(refused) => format!("its change was refused: {refused}"),
            },
            Ok(HookOutcome::Abort(reason)) => {
                return HookRun {
                    payload,
                    stopped: Some(tapped.stop(reason)),
                    warnings,
                };
            }
            Err(fault) => fault,
        };
        let named = format!(
            "the handler \"{}\" of the plugin \"{}\" failed in {}: {fault}",
            tapped.tap.name,
            tapped.plugin_id,
            H::NAME
        );
        tracing::warn!(plugin = %tapped.plugin_id, tap = %tapped.tap.name, hook = H::NAME, "{fault}");
        if faults_deny(tapped.tap.on_fault) {
            return HookRun {
                payload,
                stopped: Some(tapped.stop(named)),
                warnings,
            };
        }
        warnings.push(named);
    }
    HookRun {
        payload,
        stopped: None,
        warnings,
    }
}

impl<H: Hook> Tapped<H> {
    async fn call(
        &self,
        mut payload: H,
        deadline: HookDeadline<'_>,
    ) -> Result<HookOutcome<H::Change>, String> {
        payload.set_surroundings(&self.config, deadline.cancel);
        let limit = match self.tap.limit {
            TapLimit::Configured => Some(deadline.limit),
            TapLimit::Own(own) => Some(own),
            TapLimit::None => None,
        };
        let call = || (self.handler)(payload);
        let answer = async {
            match limit {
                Some(limit) => contain::limited(limit, call)
                    .await
                    .map_err(|failure| failure.to_string()),
                None => tokio::select! {
                    biased;
                    answer = contain::future(call) => {
                        answer.map_err(|panicked| panicked.to_string())
                    }
                    () = deadline.after_cancel() => {
                        Err("it did not return in time after the turn was cancelled or the session closed".to_owned())
                    }
                },
            }
        };
        let span = tracing::info_span!(
            "hook",
            hook = H::NAME,
            plugin = %self.plugin_id,
            tap = %self.tap.name,
        );
        // A fault, so that a handler that guards a tool still guards it.
        let retired = || Err("its plugin was shut down".to_owned());
        let answered = async {
            if self.retired.is_cancelled() {
                return retired();
            }
            tokio::select! {
                biased;
                answered = answer => answered,
                () = self.retired.cancelled() => retired(),
            }
        };
        answered
            .instrument(span)
            .await?
            .map_err(|error| error.message)
    }

    fn is_observed(&self) -> bool {
        self.observers.get().is_some_and(|all| !all.is_empty())
    }

    fn tell_observers(&self, duration: Duration, outcome: &Result<HookOutcome<H::Change>, String>) {
        let call = HookCall {
            hook: H::NAME,
            plugin_id: &self.plugin_id,
            tap: &self.tap.name,
            duration,
            report: match outcome {
                Ok(HookOutcome::Continue) => HookReport::Continued,
                Ok(HookOutcome::ContinueWith(_)) => HookReport::Changed,
                Ok(HookOutcome::Abort(reason)) => HookReport::Aborted(reason),
                Err(fault) => HookReport::Faulted(fault),
            },
        };
        for observer in self.observers.get().into_iter().flatten() {
            if let Err(panicked) = contain::call(|| observer(&call)) {
                tracing::warn!(hook = H::NAME, %panicked, "an observer of hooks failed");
            }
        }
    }

    fn stop(&self, reason: String) -> Stop {
        Stop {
            plugin_id: Arc::clone(&self.plugin_id),
            reason,
        }
    }
}

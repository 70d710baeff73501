//! Who is tapped into which hook, and how a hook runs: order, limits, faults.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    AfterToolUse, BeforeCompact, BeforeToolUse, Hook, HookOutcome, HookResult, OnFault, SessionEnd,
    SessionStart, Tap, TapLimit, TurnEnd, TurnStart,
};
use crate::agent::contain;

type Handler<H> = Box<
    dyn Fn(H) -> Pin<Box<dyn Future<Output = HookResult<<H as Hook>::Change>> + Send>>
        + Send
        + Sync,
>;

/// Where a plugin mounts its handlers, in [`Plugin::apply`](crate::Plugin::apply).
///
/// # Order
/// Handlers of one hook run one after another: plugins in order of registration, the
/// handlers of a plugin in the order of these calls.
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
#[derive(Debug)]
pub struct HookRegistry {
    plugin_id: Arc<str>,
    config: Arc<Value>,
    taps: Taps,
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
    /// Fires once the plugins are about to be shut down: no handler runs any more.
    retired: CancellationToken,
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
    tap: Tap,
    handler: Handler<H>,
    retired: CancellationToken,
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
        }
    }

    /// Says whose handlers come next.
    pub(crate) fn enter(&mut self, plugin_id: &str, config: &Arc<Value>) {
        self.plugin_id = plugin_id.into();
        self.config = Arc::clone(config);
    }

    pub(crate) fn into_taps(self) -> Taps {
        self.taps
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
        let outcome = tapped.call(payload.clone(), deadline).await;
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
        payload.set_config(&self.config);
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
                        Err("it did not answer in time after the end was asked for".to_owned())
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

    fn stop(&self, reason: String) -> Stop {
        Stop {
            plugin_id: Arc::clone(&self.plugin_id),
            reason,
        }
    }
}

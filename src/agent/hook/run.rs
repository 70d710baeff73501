//! How a hook runs: its handlers one after another, with their limits, faults and observers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::observer::Common;
use super::tap::TapLimit;
use super::{Hook, HookCall, HookOutcome, HookReport, HookResult, OnFault, Tap};
use crate::agent::contain;

pub(super) type Handler<H> = Box<
    dyn Fn(H) -> Pin<Box<dyn Future<Output = HookResult<<H as Hook>::Change>> + Send>>
        + Send
        + Sync,
>;

/// One mounted handler.
pub(crate) struct Tapped<H: Hook> {
    pub(super) plugin_id: Arc<str>,
    pub(super) config: Arc<Value>,
    pub(super) tap: Tap,
    pub(super) handler: Handler<H>,
    pub(super) common: Common,
}

impl<H: Hook> fmt::Debug for Tapped<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plugin_id, self.tap.name)
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
    let mut stopped = None;
    for tapped in taps {
        let began = tapped.common.is_observed().then(Instant::now);
        let outcome = tapped.call(payload.clone(), deadline).await;
        let duration = began.map(|began| began.elapsed());
        let outcome = outcome.and_then(|outcome| match outcome {
            HookOutcome::Continue => Ok(HookOutcome::Continue),
            HookOutcome::ContinueWith(changed) => change(&mut payload, changed)
                .map(HookOutcome::ContinueWith)
                .map_err(|refused| format!("its change was refused: {refused}")),
            HookOutcome::Abort(reason) => Ok(HookOutcome::Abort(reason)),
        });
        if let Some(duration) = duration {
            tapped.report(duration, &outcome);
        }
        match outcome {
            Ok(HookOutcome::Continue | HookOutcome::ContinueWith(())) => {}
            Ok(HookOutcome::Abort(reason)) => {
                stopped = Some(tapped.stop(reason));
                break;
            }
            Err(fault) => {
                let named = tapped.named(&fault);
                if faults_deny(tapped.tap.on_fault) {
                    stopped = Some(tapped.stop(named));
                    break;
                }
                warnings.push(named);
            }
        }
    }
    HookRun {
        payload,
        stopped,
        warnings,
    }
}

impl<H: Hook> Tapped<H> {
    /// Calls the handler: contained, and within its limit.
    ///
    /// # Errors
    /// The text of a fault.
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
        let call = || {
            let answer = (self.handler)(payload);
            // The rest of an error is the plugin's own: it is dropped in here, where a panic is
            // contained.
            async move { answer.await.map_err(|error| error.message) }
        };
        let answer = async {
            match limit {
                Some(limit) => contain::limited(limit, call)
                    .await
                    .unwrap_or_else(|failure| Err(failure.to_string())),
                None => tokio::select! {
                    biased;
                    answer = contain::future(call) => {
                        answer.unwrap_or_else(|panicked| Err(panicked.to_string()))
                    }
                    () = deadline.after_cancel() => Err(LATE.to_owned()),
                },
            }
        };
        // A fault, so that a handler that guards a tool still guards it.
        let retired = || Err("its plugin was shut down".to_owned());
        let answered = async {
            if self.common.retired.is_cancelled() {
                return retired();
            }
            tokio::select! {
                biased;
                answered = answer => answered,
                () = self.common.retired.cancelled() => retired(),
            }
        };
        let span = tracing::info_span!(
            "hook",
            hook = H::NAME,
            plugin = %self.plugin_id,
            tap = %self.tap.name,
        );
        answered.instrument(span).await
    }

    /// Tells the observers what came of a call.
    fn report(&self, duration: Duration, outcome: &Result<HookOutcome<()>, String>) {
        self.common.tell(&HookCall {
            hook: H::NAME,
            plugin_id: &self.plugin_id,
            tap: &self.tap.name,
            duration,
            report: match outcome {
                Ok(HookOutcome::Continue) => HookReport::Continued,
                Ok(HookOutcome::ContinueWith(())) => HookReport::Changed,
                Ok(HookOutcome::Abort(reason)) => HookReport::Aborted(reason),
                Err(fault) => HookReport::Faulted(fault),
            },
        });
    }

    /// Logs a fault and says for people whose it is.
    fn named(&self, fault: &str) -> String {
        tracing::warn!(plugin = %self.plugin_id, tap = %self.tap.name, hook = H::NAME, "{fault}");
        format!(
            "the handler \"{}\" of the plugin \"{}\" failed in {}: {fault}",
            self.tap.name,
            self.plugin_id,
            H::NAME
        )
    }

    fn stop(&self, reason: String) -> Stop {
        Stop {
            plugin_id: Arc::clone(&self.plugin_id),
            reason,
        }
    }
}

/// The fault of a handler without a limit that was given one.
const LATE: &str = "it did not return in time after the turn was cancelled or the session closed";

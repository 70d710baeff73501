//! The end of an agent: bounded, in order, once.

// Requirements: 6.3 Shutdown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::clock;
use super::contain::lock;
use super::core::Core;
use super::plugin::shut_down;
use super::session::Slot;

/// What a shutdown could not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Each a sentence for the log; empty means that everything was done.
    pub problems: Vec<String>,
}

/// The one shutdown there is, once it began.
#[derive(Default)]
pub(crate) struct Shutdown(Mutex<Option<watch::Receiver<Option<ShutdownReport>>>>);

impl Shutdown {
    /// Begins the shutdown, unless that was done. The future waits for its end.
    pub(crate) fn begin(
        &self,
        core: &Arc<Core>,
        slot: &Arc<Slot>,
    ) -> impl Future<Output = ShutdownReport> + use<> {
        let mut done = {
            let mut begun = lock(&self.0);
            match &*begun {
                Some(done) => done.clone(),
                None => {
                    let (sender, done) = watch::channel(None);
                    *begun = Some(done.clone());
                    core.stopping_since.get_or_init(Instant::now);
                    core.stopping.cancel();
                    let (core, slot) = (Arc::clone(core), Arc::clone(slot));
                    // Owned by its limit; whoever shuts down awaits it through the channel.
                    core.runtime.clone().spawn(async move {
                        let report = shut_down_now(&core, &slot).await;
                        sender.send_replace(Some(report));
                    });
                    done
                }
            }
        };
        async move {
            match done.wait_for(Option::is_some).await {
                Ok(report) => report.clone().unwrap_or_default(),
                Err(_) => ShutdownReport {
                    problems: vec!["the shutdown was cut off with its runtime".to_owned()],
                },
            }
        }
    }
}

async fn shut_down_now(core: &Arc<Core>, slot: &Arc<Slot>) -> ShutdownReport {
    let closing_deadline = core.closing_deadline();
    let deadline = clock::after(Instant::now(), core.shutdown_limit());
    let mut problems = Vec::new();
    // A close knows that a shutdown has begun and gives each of its steps a share of this.
    let ending = async {
        let closed = match slot.settle().await {
            Some(session) => session.close().await,
            None => Ok(()),
        };
        core.closes.close();
        core.closes.wait().await;
        closed.err()
    };
    match tokio::time::timeout_at(closing_deadline, ending).await {
        Ok(None) => {}
        Ok(Some(error)) => problems.push(error.to_string()),
        Err(_) => problems
            .push("closing the session was cut off; what was stored by then is kept".to_owned()),
    }
    problems.append(&mut lock(&core.left_out));
    slot.seal();
    core.event_log.close();
    core.taps.retire();
    let limit = Duration::from_millis(core.config.plugin_timeout_ms);
    problems.extend(shut_down(&core.plugins, limit, Some(deadline)).await);
    ShutdownReport { problems }
}

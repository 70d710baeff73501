//! What is said and how fast: the page chooses, the plain channel and the model both follow.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::Stream;
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// What the page asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Script {
    /// Deltas of 20 bytes.
    pub(crate) deltas: usize,
    /// Time between ticks in microseconds; 0: as fast as can be.
    #[serde(default)]
    tick_us: u64,
    /// Deltas per tick.
    #[serde(default)]
    per_tick: usize,
    /// Bytes of one big event in the middle; 0: none.
    #[serde(default)]
    pub(crate) big_bytes: usize,
    /// Whether the answer never ends, so that it can be cancelled.
    #[serde(default)]
    pub(crate) hangs: bool,
}

impl Script {
    /// The deltas number `from` to `to`, at their pace.
    pub(crate) fn deltas(&self, from: usize, to: usize) -> impl Stream<Item = String> + use<> {
        let state = State {
            at: from,
            to,
            per_tick: self.per_tick.max(1),
            left: 0,
            ticks: (self.tick_us > 0).then(|| {
                let mut ticks = interval(Duration::from_micros(self.tick_us));
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                ticks
            }),
        };
        futures_util::stream::unfold(state, |mut state| async move {
            if state.at == state.to {
                return None;
            }
            state.wait().await;
            state.at += 1;
            Some((stamp(), state))
        })
    }
}

struct State {
    at: usize,
    to: usize,
    per_tick: usize,
    /// Deltas left in this tick.
    left: usize,
    ticks: Option<Interval>,
}

impl State {
    async fn wait(&mut self) {
        match &mut self.ticks {
            None => tokio::task::yield_now().await,
            Some(ticks) => {
                if self.left == 0 {
                    ticks.tick().await;
                    self.left = self.per_tick;
                }
                self.left -= 1;
            }
        }
    }
}

/// A delta of 20 bytes that says when it was made, in microseconds: the page tells its age.
fn stamp() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{:016} ab,", now.as_micros())
}

//! The order in which tools were called, began and ended.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::ToolInput;

/// What was asked of tools, in order. Copies are the same log.
#[derive(Clone, Default)]
pub struct CallLog(Arc<watch::Sender<Entries>>);

#[derive(Default)]
struct Entries {
    inputs: Vec<ToolInput>,
    moments: Vec<(Arc<str>, Moment)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Started,
    Ended,
    /// The call was dropped, or it panicked.
    Stopped,
}

impl CallLog {
    /// A log without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The inputs, in order of their starts.
    #[must_use]
    pub fn inputs(&self) -> Vec<ToolInput> {
        self.0.borrow().inputs.clone()
    }

    /// Starts and ends in order, as `c1 started`, `c1 ended`; `c1 stopped` where the call
    /// was dropped before its end or panicked.
    #[must_use]
    pub fn order(&self) -> Vec<String> {
        let entries = self.0.borrow();
        let line = |(call_id, moment): &(Arc<str>, Moment)| {
            let what = match moment {
                Moment::Started => "started",
                Moment::Ended => "ended",
                Moment::Stopped => "stopped",
            };
            format!("{call_id} {what}")
        };
        entries.moments.iter().map(line).collect()
    }

    /// Waits until at least `count` calls have started.
    pub async fn started(&self, count: usize) {
        self.reached(Moment::Started, count).await;
    }

    /// Waits until at least `count` calls have ended.
    pub async fn ended(&self, count: usize) {
        self.reached(Moment::Ended, count).await;
    }

    /// Waits until at least `count` calls were dropped or panicked.
    pub async fn stopped(&self, count: usize) {
        self.reached(Moment::Stopped, count).await;
    }

    async fn reached(&self, wanted: Moment, count: usize) {
        let mut entries = self.0.subscribe();
        let enough = |entries: &Entries| {
            let fits = |(_, moment): &&(Arc<str>, Moment)| *moment == wanted;
            entries.moments.iter().filter(fits).count() >= count
        };
        // The sender lives in `self`, so waiting cannot fail.
        let _ = entries.wait_for(enough).await;
    }

    pub(super) fn start(&self, input: &ToolInput) -> Running {
        self.0.send_modify(|entries| {
            entries.inputs.push(input.clone());
            entries
                .moments
                .push((Arc::clone(&input.call_id), Moment::Started));
        });
        Running {
            log: self.clone(),
            call_id: Arc::clone(&input.call_id),
            moment: Moment::Stopped,
        }
    }
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallLog").field(&self.order()).finish()
    }
}

/// A call that has started; says how it stopped when it is dropped.
pub(super) struct Running {
    log: CallLog,
    call_id: Arc<str>,
    moment: Moment,
}

impl Running {
    pub(super) fn end(mut self) {
        self.moment = Moment::Ended;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let entry = (Arc::clone(&self.call_id), self.moment);
        self.log
            .0
            .send_modify(|entries| entries.moments.push(entry));
    }
}

//! What a scripted provider was asked, and what became of its answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::ScriptedProvider;
use crate::ChatRequest;
use crate::agent::contain::lock;

/// What the calls of one provider have been; written as they happen.
#[derive(Default)]
pub(super) struct Record {
    pub(super) requests: Vec<Arc<ChatRequest>>,
    pub(super) tokens: Vec<CancellationToken>,
    pub(super) violations: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Calls of `chat`.
    pub(super) requests: usize,
    /// Streams that do not exist any more.
    pub(super) closed: usize,
    /// Those of them that had not given their end.
    pub(super) dropped: usize,
}

impl ScriptedProvider {
    /// What was asked, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<ChatRequest>> {
        lock(&self.0.record).requests.clone()
    }

    /// The request that came last.
    #[must_use]
    pub fn last_request(&self) -> Option<Arc<ChatRequest>> {
        lock(&self.0.record).requests.last().cloned()
    }

    /// How many requests came, recorded or not.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.0.counts.borrow().requests
    }

    /// How many answers were dropped before their end.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.counts.borrow().dropped
    }

    /// How many answers are being given right now.
    #[must_use]
    pub fn streams_open(&self) -> usize {
        let counts = *self.0.counts.borrow();
        counts.requests - counts.closed
    }

    /// How many of the recorded requests had their cancel token fired.
    #[must_use]
    pub fn cancelled(&self) -> usize {
        let record = lock(&self.0.record);
        let fired = |token: &&CancellationToken| token.is_cancelled();
        record.tokens.iter().filter(fired).count()
    }

    /// What was wrong with the requests so far, each with the number of its request
    /// from 1.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        lock(&self.0.record).violations.clone()
    }

    /// Waits until at least `count` requests have come.
    pub async fn asked(&self, count: usize) {
        self.reached(|counts| counts.requests >= count).await;
    }

    /// Waits until at least `count` answers were dropped before their end.
    pub async fn lost(&self, count: usize) {
        self.reached(|counts| counts.dropped >= count).await;
    }

    async fn reached(&self, condition: impl Fn(&Counts) -> bool) {
        let mut counts = self.0.counts.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = counts.wait_for(condition).await;
    }

    /// Counts and records the request; gives its number from 1.
    pub(super) fn take_down(
        &self,
        request: &Arc<ChatRequest>,
        cancel: &CancellationToken,
    ) -> usize {
        if self.0.recording.load(Ordering::Relaxed) {
            let mut record = lock(&self.0.record);
            record.requests.push(Arc::clone(request));
            record.tokens.push(cancel.clone());
        }
        let mut number = 0;
        self.0.counts.send_modify(|counts| {
            counts.requests += 1;
            number = counts.requests;
        });
        number
    }
}

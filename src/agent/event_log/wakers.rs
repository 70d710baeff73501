//! Tasks that wait for something to be written.

use std::task::{Context, Waker};

/// A set of wakers; one costs no allocation, which is the usual number.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    /// Adds the current task, once.
    pub(super) fn add(&mut self, context: &Context<'_>) {
        let waker = context.waker();
        if self
            .first
            .iter()
            .chain(&self.more)
            .any(|known| known.will_wake(waker))
        {
            return;
        }
        if self.first.is_none() {
            self.first = Some(waker.clone());
        } else {
            self.more.push(waker.clone());
        }
    }

    /// Takes all wakers out, to be woken once the lock around the set is released.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    pub(crate) fn wake(self) {
        for waker in self.first.into_iter().chain(self.more) {
            waker.wake();
        }
    }
}

//! What is shared by the handle of an open session, by what runs in it and by its close.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::SessionCore;
use super::state::{Activity, State};
use crate::agent::contain::lock;
use crate::agent::core::Core;
use crate::agent::storage::SessionOverrides;

/// An open session, as everything below its handle sees it.
pub(crate) struct OpenSession {
    pub(crate) core: Arc<Core>,
    pub(crate) id: Arc<str>,
    /// Milliseconds since the Unix epoch.
    pub(crate) created_at: u64,
    pub(crate) overrides: SessionOverrides,
    /// Frozen for the session's life in this process.
    pub(crate) environment: Option<String>,
    /// What went wrong while it was opened, for the user.
    pub(crate) warnings: Vec<String>,
    /// Written by send, by the end of a turn or compaction, and by close.
    pub(crate) state: Mutex<State>,
    /// Told whenever the session becomes idle.
    pub(crate) idle: Notify,
}

impl OpenSession {
    /// The point of no return of a turn: from here on a cancel comes too late. Returns false
    /// if one came before.
    pub(crate) fn begin_finishing(&self) -> bool {
        lock(&self.state).begin_finishing()
    }

    pub(crate) fn title(&self) -> Option<String> {
        lock(&self.state).title.clone()
    }

    /// Gives the session the title it is stored with, unless it has one. Returns the title it
    /// has.
    pub(crate) fn set_first_title(&self, title: &str) -> String {
        let mut state = lock(&self.state);
        state.title.get_or_insert_with(|| title.to_owned()).clone()
    }

    pub(crate) fn rename(&self, title: &str) {
        lock(&self.state).title = Some(title.to_owned());
    }

    /// Takes the work back from whoever used it: the session is idle again. `publish` tells
    /// the world, under the lock: nobody finds the session idle before the turn's last event
    /// is there, and nobody who has read that event finds the session busy.
    pub(super) fn give_back<T>(&self, work: Box<SessionCore>, publish: impl FnOnce() -> T) -> T {
        let mut state = lock(&self.state);
        state.message_count = work.message_count;
        state.context_tokens = work.context.tokens();
        // What a shutdown gave up comes back too late.
        if !matches!(state.activity, Activity::Closed) {
            state.activity = Activity::Idle(work);
        }
        let told = publish();
        drop(state);
        self.idle.notify_waiters();
        told
    }
}

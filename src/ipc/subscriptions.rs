//! Who watches: the open subscriptions of all pages.
//!
//! Whether a page is alive is told by Tauri's window-destroyed and page-load events, never
//! by the outcome of a send.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use tauri::ipc::Channel;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::forward::{Ended, forward};
use super::message::{ChannelMessage, RunningTurn};
use super::page::Page;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEvent;

/// Most subscriptions of one page. A page needs a few; one that reaches this forgets to
/// detach.
const MAX_PER_PAGE: usize = 1_024;

/// All open subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// Written when a subscription opens or ends and when a page or window goes away.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The id given last.
    last_id: u32,
    open: HashMap<u32, Open>,
    /// The turn that `watchers` is about.
    watched_turn: String,
    /// Windows that have watched that turn and still exist.
    watchers: HashSet<String>,
}

#[derive(Debug)]
struct Open {
    page: Page,
    /// Number of the newest message that arrived in the page.
    acks: watch::Sender<Option<u64>>,
    /// Ends the forwarder.
    stop: CancellationToken,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl State {
    fn windows(&self) -> HashSet<String> {
        self.open
            .values()
            .map(|open| open.page.window.clone())
            .collect()
    }

    /// Begins to count watchers anew if `turn` is another turn than before. Windows that
    /// are attached to the session watch every turn of it.
    fn watch(&mut self, turn: &str) {
        if self.watched_turn != turn {
            turn.clone_into(&mut self.watched_turn);
            self.watchers = self.windows();
        }
    }
}

impl Subscriptions {
    /// Looks whether a page may subscribe once more.
    ///
    /// # Errors
    /// `INVALID_INPUT` if the page has 1,024 open subscriptions.
    pub(super) fn check_room(&self, page: &Page) -> Result<(), AgentError> {
        let state = lock(&self.state);
        let of_page = state.open.values().filter(|open| open.page == *page);
        if of_page.count() >= MAX_PER_PAGE {
            return Err(AgentError::invalid_input(format!(
                "this page has {MAX_PER_PAGE} open subscriptions; detach those it does not need"
            )));
        }
        Ok(())
    }

    /// Forwards events into a page's channel from now on, and gives the subscription's id.
    /// `running` is the turn that runs and is among them, if one does.
    pub(super) fn open(
        self: &Arc<Self>,
        page: Page,
        running: Option<RunningTurn>,
        events: impl Stream<Item = AgentEvent> + Send + Unpin + 'static,
        channel: Channel<ChannelMessage>,
    ) -> u32 {
        let (acks, acknowledged) = watch::channel(None);
        let stop = CancellationToken::new();
        let id = {
            let mut state = lock(&self.state);
            if let Some(turn) = &running {
                state.watch(&turn.turn_id);
                state.watchers.insert(page.window.clone());
            }
            state.last_id = state.last_id.wrapping_add(1);
            let id = state.last_id;
            let stop = stop.clone();
            state.open.insert(id, Open { page, acks, stop });
            id
        };
        let subscriptions = Arc::clone(self);
        tauri::async_runtime::spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                ended = forward(events, channel, acknowledged, running) => {
                    match ended {
                        Ended::Complete => {}
                        Ended::Broken => tracing::debug!(id, "the channel of a page is broken"),
                        Ended::Silent => tracing::warn!(
                            id,
                            "a page acknowledged nothing for 30 s; it has to attach again"
                        ),
                    }
                    subscriptions.remove(|open, _| open == id);
                }
            }
        });
        id
    }

    /// Takes an acknowledgement; false if that page has no such subscription.
    pub(super) fn acknowledge(&self, page: &Page, id: u32, sequence: u64) -> bool {
        let state = lock(&self.state);
        let Some(open) = state.open.get(&id).filter(|open| open.page == *page) else {
            return false;
        };
        open.acks.send_modify(|newest| {
            *newest = Some(newest.map_or(sequence, |newest| newest.max(sequence)));
        });
        true
    }

    /// Ends one subscription of a page.
    pub(super) fn close(&self, page: &Page, id: u32) {
        self.remove(|open, from| open == id && from == page);
    }

    /// Ends what the webview's page had: a new one is being loaded.
    pub(super) fn page_loads(&self, webview: &str) {
        self.remove(|_, page| page.webview == webview);
    }

    /// Ends what the pages of the window had. Returns whether it was the last window that
    /// watched the running turn.
    pub(super) fn window_destroyed(&self, window: &str, running: Option<&str>) -> bool {
        let was_last = running.is_some_and(|turn| {
            let mut state = lock(&self.state);
            state.watch(turn);
            state.watchers.remove(window) && state.watchers.is_empty()
        });
        self.remove(|_, page| page.window == window);
        was_last
    }

    /// Ends all.
    pub(super) fn close_all(&self) {
        self.remove(|_, _| true);
    }

    /// How many are open.
    #[cfg(feature = "__ipc-test")]
    pub(super) fn count(&self) -> usize {
        lock(&self.state).open.len()
    }

    fn remove(&self, which: impl Fn(u32, &Page) -> bool) {
        lock(&self.state)
            .open
            .retain(|id, open| !which(*id, &open.page));
    }
}

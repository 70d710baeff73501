//! Writing a session down: in order, nothing twice, nothing lost while the storage is down.
//!
//! Every event gets its index here. While a write fails, later events are buffered without
//! waiting, and one background task writes what is missing as soon as the storage answers.

// Requirements: 3.6 SessionStorage, storage down; 6.2 Session, cancel.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::now_ms;
use super::contain::{self, lock};
use super::error::AgentError;
use super::storage::{
    EventPage, PageRequest, SessionEvent, SessionEventKind, SessionStorage, StorageError,
};

/// First and longest pause between two probes of a storage that is down.
const PROBE_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PROBE_PAUSE: Duration = Duration::from_secs(15);
/// How long a write may still take once the user has cancelled. A turn has to end within a
/// second then, and only its first slow write is waited for.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// The way of a session's events into the storage.
pub(crate) struct Journal {
    session_id: Arc<str>,
    storage: Option<Arc<dyn SessionStorage>>,
    limit: Duration,
    /// Index of the first event that is written since the session was opened.
    first_own: u64,
    state: Mutex<State>,
    /// Held while a batch is being written, so that batches never overtake each other.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Ends the probe when the session is closed.
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    next_index: u64,
    /// What could not be written yet, in order. Not empty means: the storage is down.
    backlog: VecDeque<Arc<SessionEvent>>,
    probing: bool,
    /// The failure of a snapshot that hung, for the write that waited for it.
    hung_snapshot: Option<AgentError>,
    /// Another process wrote to the session: nothing more is written.
    conflict: Option<AgentError>,
    /// Everything, where there is no storage to read it from.
    kept: Vec<Arc<SessionEvent>>,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is stored, or kept where there is no storage.
    Stored,
    /// It failed, the first since the storage was up: worth telling. The event is buffered.
    Failed(AgentError),
    /// The storage was down already; the event is buffered.
    Buffered,
}

impl Journal {
    pub(crate) fn new(
        session_id: &Arc<str>,
        storage: Option<Arc<dyn SessionStorage>>,
        limit: Duration,
        next_index: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            session_id: Arc::clone(session_id),
            storage,
            limit,
            first_own: next_index,
            state: Mutex::new(State {
                next_index,
                ..State::default()
            }),
            writing: Arc::default(),
            closed: CancellationToken::new(),
        })
    }

    /// Whether anything is stored at all.
    pub(crate) fn is_stored(&self) -> bool {
        self.storage.is_some()
    }

    /// The events of a session without storage, in order of index.
    pub(crate) fn kept(&self) -> Vec<Arc<SessionEvent>> {
        lock(&self.state).kept.clone()
    }

    /// Whether the session was never written.
    pub(crate) fn is_unwritten(&self) -> bool {
        lock(&self.state).next_index == 0
    }

    /// Whether an event was written since the session was opened here, so that no storage
    /// refuses to replace it.
    pub(crate) fn wrote(&self, event: &SessionEvent) -> bool {
        event.index >= self.first_own
    }

    /// Takes the next index.
    pub(crate) fn reserve(&self) -> u64 {
        let mut state = lock(&self.state);
        let index = state.next_index;
        state.next_index += 1;
        index
    }

    /// An event with the next index, or with one reserved before.
    pub(crate) fn event(
        &self,
        turn_id: &Arc<str>,
        reserved: Option<u64>,
        kind: SessionEventKind,
    ) -> Arc<SessionEvent> {
        Arc::new(SessionEvent {
            index: reserved.unwrap_or_else(|| self.reserve()),
            timestamp: now_ms(),
            turn_id: Arc::clone(turn_id),
            kind,
        })
    }

    /// Writes what a turn begins with, or what is asked for between turns: all or nothing. With
    /// it goes an event that is stored already and has changed. Returns the new events.
    ///
    /// # Errors
    /// `STORAGE_ERROR`; nothing is kept, and the same can be written again.
    pub(crate) async fn write_first(
        self: &Arc<Self>,
        turn_id: &Arc<str>,
        kinds: Vec<SessionEventKind>,
        rewritten: Option<Arc<SessionEvent>>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Arc<SessionEvent>>, AgentError> {
        until_cancelled(cancel, self.write_first_now(turn_id, kinds, rewritten))
            .await
            .unwrap_or_else(|| Err(hung()))
    }

    async fn write_first_now(
        self: &Arc<Self>,
        turn_id: &Arc<str>,
        kinds: Vec<SessionEventKind>,
        rewritten: Option<Arc<SessionEvent>>,
    ) -> Result<Vec<Arc<SessionEvent>>, AgentError> {
        let writing = self.writing.lock().await;
        if self.closed.is_cancelled() {
            let reason = "the session is closed";
            return Err(AgentError::storage(STORING, reason));
        }
        self.write_backlog().await?;
        let next_index = lock(&self.state).next_index;
        let new = (next_index..)
            .zip(kinds)
            .map(|(index, kind)| SessionEvent::new(index, now_ms(), Arc::clone(turn_id), kind));
        let changed = rewritten.as_deref().cloned();
        let batch: Vec<SessionEvent> = changed.into_iter().chain(new).collect();
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.append(&batch).await?;
        drop(writing);
        let new = batch.into_iter().skip(usize::from(rewritten.is_some()));
        let events: Vec<Arc<SessionEvent>> = new.map(Arc::new).collect();
        let mut state = lock(&self.state);
        state.next_index += events.len() as u64;
        if self.storage.is_none() {
            if let Some(changed) = rewritten {
                let mut kept = state.kept.iter_mut();
                if let Some(known) = kept.find(|event| event.index == changed.index) {
                    *known = changed;
                }
            }
            state.kept.extend(events.iter().cloned());
        }
        Ok(events)
    }

    /// Writes an event, or buffers it while the storage is down. Once `cancel` has fired, a
    /// write that hangs counts as the storage being down.
    pub(crate) async fn write(
        self: &Arc<Self>,
        event: &Arc<SessionEvent>,
        cancel: &CancellationToken,
    ) -> Written {
        if self.storage.is_none() {
            lock(&self.state).kept.push(Arc::clone(event));
            return Written::Stored;
        }
        if self.buffer_if_down(event) {
            return Written::Buffered;
        }
        let writing = async {
            let _writing = self.writing.lock().await;
            let waited_for = {
                let mut state = lock(&self.state);
                if !state.backlog.is_empty() {
                    // It went down while this write waited for its turn.
                    return Ok(false);
                }
                state.hung_snapshot.take()
            };
            // What has hung for the whole limit once does not get it again.
            match waited_for {
                Some(failure) => Err(failure),
                None => self
                    .append(std::slice::from_ref(&**event))
                    .await
                    .map(|()| true),
            }
        };
        let written = until_cancelled(cancel, writing).await;
        match written.unwrap_or_else(|| Err(hung())) {
            Ok(true) => Written::Stored,
            Ok(false) => self.buffer(event, None),
            Err(error) => self.buffer(event, Some(error)),
        }
    }

    fn buffer_if_down(&self, event: &Arc<SessionEvent>) -> bool {
        let mut state = lock(&self.state);
        // Nobody waited for it.
        state.hung_snapshot = None;
        let down = !state.backlog.is_empty();
        if down {
            state.backlog.push_back(Arc::clone(event));
        }
        down
    }

    /// Keeps an event for later. The failure is worth telling if the storage went down with it.
    fn buffer(self: &Arc<Self>, event: &Arc<SessionEvent>, failure: Option<AgentError>) -> Written {
        let mut state = lock(&self.state);
        let went_down = state.backlog.is_empty();
        state.backlog.push_back(Arc::clone(event));
        self.start_probe(&mut state);
        match failure.filter(|_| went_down) {
            Some(error) => Written::Failed(error),
            None => Written::Buffered,
        }
    }

    /// Stores the text so far of a message that is still streaming, in the background, unless
    /// another write is under way. That it failed is told by the next real write.
    pub(crate) fn snapshot(self: &Arc<Self>, event: Arc<SessionEvent>) {
        if !lock(&self.state).backlog.is_empty() {
            return;
        }
        let Ok(writing) = Arc::clone(&self.writing).try_lock_owned() else {
            return;
        };
        let this = Arc::clone(self);
        // Owned by the lock it holds: every later write waits for it, for at most the limit.
        tokio::spawn(async move {
            let began = Instant::now();
            if let Err(error) = this.append(std::slice::from_ref(&*event)).await {
                tracing::debug!(session = %this.session_id, %error, "a snapshot was not stored");
                let hung = began.elapsed() >= this.limit;
                lock(&this.state).hung_snapshot = hung.then_some(error);
            }
            drop(writing);
        });
    }

    /// Writes everything that is missing, for the last time: nothing is written after it,
    /// so that a session that is deleted next stays deleted.
    ///
    /// # Errors
    /// `STORAGE_ERROR` saying what is lost.
    pub(crate) async fn finish(&self) -> Result<(), AgentError> {
        let _writing = self.writing.lock().await;
        let written = self.write_backlog().await;
        self.close();
        written.map_err(|error| {
            let missing = lock(&self.state).backlog.len();
            AgentError::storage(
                &format!("{missing} events of the session could not be stored and are lost"),
                &error.message,
            )
        })
    }

    /// Adds an event to a session that was closed, unless it is gone or went on since then.
    /// The caller sees to it that nobody opens or deletes it meanwhile.
    ///
    /// # Errors
    /// `STORAGE_ERROR`.
    pub(crate) async fn append_to_closed(&self, kind: SessionEventKind) -> Result<(), AgentError> {
        let Some(storage) = self.storage.as_deref() else {
            return Ok(());
        };
        let event = self.event(&"".into(), None, kind);
        let since = guarded(self.limit, "loading the session failed", || {
            storage.load_page(
                &self.session_id,
                PageRequest::new(event.index, NonZeroUsize::MIN),
            )
        })
        .await?;
        if since.is_some_and(|page| page == EventPage::default()) {
            self.append(std::slice::from_ref(&*event)).await?;
        }
        Ok(())
    }

    /// Ends the background work; called once nothing is written any more.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// Called with `writing` held.
    async fn write_backlog(&self) -> Result<(), AgentError> {
        loop {
            let missing: Vec<Arc<SessionEvent>> =
                lock(&self.state).backlog.iter().cloned().collect();
            if missing.is_empty() {
                return Ok(());
            }
            // Those that gave up waiting together may be out of order.
            let mut batch: Vec<SessionEvent> = missing
                .iter()
                .map(|event| SessionEvent::clone(event))
                .collect();
            batch.sort_by_key(|event| event.index);
            self.append(&batch).await?;
            lock(&self.state).backlog.drain(..batch.len());
        }
    }

    fn start_probe(self: &Arc<Self>, state: &mut State) {
        if state.probing || state.conflict.is_some() {
            return;
        }
        state.probing = true;
        let this = Arc::clone(self);
        // Owned by `closed`: it ends with the session, or once nothing is missing.
        tokio::spawn(async move {
            let mut pause = PROBE_PAUSE;
            loop {
                tokio::select! {
                    () = this.closed.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                let writing = this.writing.lock().await;
                if this.closed.is_cancelled() {
                    return;
                }
                let written = this.write_backlog().await;
                drop(writing);
                let mut state = lock(&this.state);
                let all_written = written.is_ok() && state.backlog.is_empty();
                if all_written || state.conflict.is_some() {
                    state.probing = false;
                    return;
                }
                drop(state);
                pause = (pause * 2).min(LONGEST_PROBE_PAUSE);
            }
        });
    }

    async fn append(&self, batch: &[SessionEvent]) -> Result<(), AgentError> {
        let Some(storage) = self.storage.as_deref() else {
            return Ok(());
        };
        if let Some(conflict) = &lock(&self.state).conflict {
            return Err(conflict.clone());
        }
        let append = || storage.append(&self.session_id, batch);
        let written = guarded(self.limit, STORING, append).await;
        // A refusal to replace what was there when the session was opened says nothing about who
        // writes now.
        if let Err(error) = &written
            && error.is_storage_conflict()
            && batch.first().is_none_or(|event| self.wrote(event))
        {
            lock(&self.state).conflict = Some(error.clone());
        }
        written
    }
}

/// What the journal was doing when a write failed.
const STORING: &str = "storing the session failed";

fn hung() -> AgentError {
    AgentError::storage(
        STORING,
        "the storage did not answer when the turn was cancelled",
    )
}

/// Waits for a write; once the user has cancelled, no longer than the grace.
async fn until_cancelled<T>(
    cancel: &CancellationToken,
    write: impl Future<Output = T>,
) -> Option<T> {
    let mut write = pin!(write);
    // Most writes are done at once, and cost neither a timer nor room for one.
    let first = poll_fn(|context| Poll::Ready(write.as_mut().poll(context)));
    if let Poll::Ready(written) = first.await {
        return Some(written);
    }
    let hangs = Box::pin(async {
        cancel.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    });
    tokio::select! {
        biased;
        written = write => Some(written),
        () = hangs => None,
    }
}

/// Calls a storage: contained, and for a limited time.
///
/// # Errors
/// `STORAGE_ERROR`, beginning with what was being done.
pub(crate) async fn guarded<T, F>(
    limit: Duration,
    doing: &str,
    make: impl FnOnce() -> F,
) -> Result<T, AgentError>
where
    F: Future<Output = Result<T, StorageError>>,
{
    match contain::limited(limit, make).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(AgentError::from_storage(doing, error)),
        Err(failure) => Err(AgentError::storage(doing, &failure.to_string())),
    }
}

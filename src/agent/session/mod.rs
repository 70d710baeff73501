//! A session: one context, at most one thing going on in it (chapter 6.2).
//!
//! What a turn works with is handed to it and comes back when it ends, so nothing here is
//! locked for longer than a look.

mod close;
mod compact;
mod open;
mod slot;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::catalog::Model;
use super::compaction::CompactionOutcome;
use super::config::SendOptions;
use super::contain::{self, lock};
use super::error::AgentError;
use super::event_log::{Subscription, Turn};
use super::message::{ContentBlock, UserInput};
use super::storage::path::Path;
use super::storage::{EventPage, PageRequest, SessionEvent};
use super::turn::{self, TurnInput, TurnRequest};
use super::work::{Activity, Lease, NewMessage, OpenSession, SessionCore, SessionState};

pub(crate) use open::{create, load, resume};
pub(crate) use slot::{Slot, SlotTicket};

/// An open session. A cheap handle: clones mean the same session.
///
/// It stays open until it is closed, also when all handles are dropped:
/// [`Agent::current_session`](crate::Agent::current_session) gives a new one.
/// The start page of this crate has an example of its life.
///
/// # Order
/// At most one turn or compaction runs at a time; what does not fit is `SESSION_BUSY`.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
}

pub(crate) struct SessionInner {
    pub(crate) open: Arc<OpenSession>,
    /// Weak: the slot holds the session.
    slot: Weak<Slot>,
}

/// What can be known of an open session at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session.
    pub session_id: String,
    /// Its title; absent before the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub title: Option<String>,
    /// The model of the next turn, or of the running one.
    pub model_id: String,
    /// What is going on.
    pub state: SessionState,
    /// The running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub turn_id: Option<String>,
    /// Number of the newest event of the agent.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub last_sequence: u64,
    /// Estimated size of the context at the last change, in tokens.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub context_tokens: u64,
    /// The model's window, in tokens.
    pub context_window: u32,
    /// User and assistant messages.
    pub message_count: u32,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub created_at: u64,
    /// What went wrong while it was opened, for the user: what the session that it replaced
    /// could not store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Session {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.open.id
    }

    /// What can be known of the session right now.
    #[must_use]
    pub fn info(&self) -> SessionInfo {
        self.inner.info()
    }

    /// Sends a message and starts a turn: a text, or a [`UserInput`] with images and files.
    /// Answers at once; everything that happens later is told by the turn's events.
    ///
    /// # Errors
    /// Refused without any trace: `SESSION_BUSY` while a turn or a compaction runs,
    /// `INVALID_INPUT`, `CONTENT_NOT_SUPPORTED` for an image on a model without vision,
    /// `SKILL_NOT_FOUND`, `MODEL_NOT_SUPPORTED`, `SESSION_NOT_FOUND` once it is closed,
    /// `AGENT_SHUT_DOWN`.
    pub fn send(&self, input: impl Into<UserInput>) -> Result<Turn, AgentError> {
        self.send_with(input, SendOptions::default())
    }

    /// Like [`send`](Self::send), with a model or parameters for the turn.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with(
        &self,
        input: impl Into<UserInput>,
        options: SendOptions,
    ) -> Result<Turn, AgentError> {
        self.inner.send(input.into(), options)
    }

    /// Runs the last message again after a failed, cancelled or interrupted turn, without
    /// storing it twice. The model keeps what was said of the first answer. It runs on the
    /// session's model, without the parameters that [`send_with`](Self::send_with) got.
    ///
    /// A message whose turn failed before it was stored (a `TurnStart` handler aborted, or the
    /// storage refused it) is kept until the next one or the close: it runs like a new one.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the last turn was answered or there is none; `SESSION_BUSY`,
    /// `MODEL_NOT_SUPPORTED`, `SESSION_NOT_FOUND`, `AGENT_SHUT_DOWN` as for `send`.
    pub fn retry_turn(&self) -> Result<Turn, AgentError> {
        self.inner.retry()
    }

    /// Cancels the running turn, or a running compaction. With an id only that turn is
    /// meant. Answers whether something was running; a late cancel changes nothing.
    ///
    /// The model stops at once; tools that run are awaited, at most for their timeout.
    #[must_use = "a stale cancel changes nothing and says so"]
    pub fn cancel(&self, turn_id: Option<&str>) -> bool {
        self.inner.cancel(turn_id)
    }

    /// Makes the context smaller now: as a compaction that triggers itself, whatever the
    /// size.
    ///
    /// # Errors
    /// `SESSION_BUSY` while a turn runs; `MODEL_NOT_SUPPORTED`; `REQUEST_CANCELLED`;
    /// `HOOK_ABORTED`; `STORAGE_ERROR`; `SESSION_NOT_FOUND`; `AGENT_SHUT_DOWN`. After an error
    /// the context is what it was; a write that timed out may be found by a later resume.
    pub async fn compact(&self) -> Result<CompactionOutcome, AgentError> {
        self.compact_until(CancellationToken::new()).await
    }

    /// As [`compact`](Self::compact), until the token fires.
    pub(crate) async fn compact_until(
        &self,
        cancel: CancellationToken,
    ) -> Result<CompactionOutcome, AgentError> {
        let inner = Arc::clone(&self.inner);
        contain::spawned(&self.inner.open.core.runtime, async move {
            inner.compact(cancel).await
        })
        .await
    }

    /// Closes the session: cancels a running turn, runs the `SessionEnd` hooks, writes what
    /// is missing, frees the slot, and extracts memories within their limit. Safe to call
    /// more than once.
    ///
    /// # Errors
    /// `STORAGE_ERROR` saying what could not be stored; the session is closed all the same.
    /// `SESSION_BUSY` from inside a tool's call in this session, which the close would wait for:
    /// nothing is closed then.
    pub async fn close(&self) -> Result<(), AgentError> {
        self.inner.close().await
    }

    /// The events of this session's turns: what comes after event `after` as far as it is
    /// kept (the last eight turns, within `event_log_limit_bytes`), else from the start of the
    /// running turn, then live until the session is closed. A number that no event has yet means
    /// from now on.
    #[must_use]
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        let subscription = self
            .inner
            .open
            .core
            .event_log
            .subscribe_session(&self.inner.open.id, after);
        if self.inner.is_closed() {
            subscription.past_only()
        } else {
            subscription
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl SessionInner {
    fn send(self: &Arc<Self>, input: UserInput, options: SendOptions) -> Result<Turn, AgentError> {
        self.open.core.check_running()?;
        // Looked at first: checking an image is work for nothing while a turn runs.
        lock(&self.open.state).check_idle()?;
        options.check()?;
        let mut content = input.checked()?;
        let skill = self.open.core.skills.resolve(&mut content)?;
        let model = self.model_for(options.model_id.as_deref())?;
        let has_image = content
            .iter()
            .any(|block| matches!(block, ContentBlock::Image { .. }));
        if has_image && !model.info.capabilities.vision {
            return Err(AgentError::content_not_supported(&model.id, "images"));
        }
        self.start(
            model,
            TurnInput::New(NewMessage { content, skill }),
            options,
            |_| Ok(()),
        )
    }

    fn retry(self: &Arc<Self>) -> Result<Turn, AgentError> {
        self.open.core.check_running()?;
        lock(&self.open.state).check_idle()?;
        let model = self.model_for(None)?;
        self.start(model, TurnInput::Again, SendOptions::default(), |work| {
            if work.unstored.is_some() || work.context.is_unanswered() {
                Ok(())
            } else {
                Err(AgentError::invalid_input(
                    "there is no failed or cancelled turn to run again; send a message",
                ))
            }
        })
    }

    /// The model a turn runs on, as its provider offers it now.
    fn model_for(&self, wanted: Option<&str>) -> Result<Model, AgentError> {
        match wanted {
            Some(wanted) => self.open.core.catalog.find(wanted),
            None => {
                let current = Arc::clone(&lock(&self.open.state).model.id);
                self.open.core.catalog.find(&current)
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        model: Model,
        input: TurnInput,
        options: SendOptions,
        check: impl FnOnce(&SessionCore) -> Result<(), AgentError>,
    ) -> Result<Turn, AgentError> {
        let turn_id: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        let cancel = CancellationToken::new();
        let work = {
            let mut state = lock(&self.open.state);
            let work = state.take_idle()?;
            if let Err(refused) = check(&work) {
                state.activity = Activity::Idle(work);
                return Err(refused);
            }
            state.model = model.clone();
            state.activity = Activity::turn(&turn_id, &cancel);
            work
        };
        let log = self.open.core.event_log.begin_turn(&self.open.id, &turn_id);
        let lease = Lease::of_turn(&self.open, work, &log);
        let request = TurnRequest {
            model,
            cancel,
            input,
            options,
        };
        let task = self
            .open
            .core
            .runtime
            .spawn(turn::run(lease, Arc::clone(&log), request));
        lock(&self.open.state).set_task(&turn_id, task.abort_handle());
        Ok(self.handle(log))
    }

    fn handle(self: &Arc<Self>, log: Arc<super::event_log::TurnLog>) -> Turn {
        let session = Arc::downgrade(self);
        let turn_id = Arc::clone(log.turn_id());
        Turn::new(log, move || {
            session
                .upgrade()
                .is_some_and(|session| session.cancel(Some(&turn_id)))
        })
    }

    /// A further reader of a running or recent turn.
    pub(crate) fn turn(self: &Arc<Self>, turn_id: &str) -> Option<Turn> {
        let log = self.open.core.event_log.turn(turn_id)?;
        Some(self.handle(log))
    }

    pub(crate) fn cancel(&self, turn_id: Option<&str>) -> bool {
        let meant = lock(&self.open.state).cancel(turn_id);
        meant.is_some_and(|(token, in_time)| {
            token.cancel();
            in_time
        })
    }

    fn is_closed(&self) -> bool {
        matches!(lock(&self.open.state).activity, Activity::Closed)
    }

    fn info(&self) -> SessionInfo {
        let state = lock(&self.open.state);
        SessionInfo {
            session_id: self.open.id.to_string(),
            title: state.title.clone(),
            model_id: state.model.id.to_string(),
            state: state.activity.public(),
            turn_id: state.activity.turn_id().map(|id| id.to_string()),
            last_sequence: self.open.core.event_log.last_sequence(),
            context_tokens: state.context_tokens,
            context_window: state.model.info.context_window,
            message_count: state.message_count,
            created_at: self.open.created_at,
            warnings: self.open.warnings.clone(),
        }
    }

    /// A page of the visible path of a session that is kept in memory only.
    pub(crate) fn kept_page(&self, request: &PageRequest) -> EventPage {
        let journal = Arc::clone(&lock(&self.open.state).journal);
        let events = journal.kept();
        let path = Path::of(events.iter().map(|event| &**event));
        let records = events
            .iter()
            .filter(|event| path.contains(event.index))
            .map(|event| Ok((event.index, 0, Some(SessionEvent::clone(event)))));
        EventPage::collect(request, records).unwrap_or_else(|never: Infallible| match never {})
    }
}

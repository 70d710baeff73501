//! Requests that a page may repeat: a reload can invoke a command again that has not
//! answered yet.

use std::collections::VecDeque;
use std::future::Future;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::OnceCell;

use super::page::Page;
use crate::agent::contain::lock;
use crate::agent::error::AgentError;

/// How many answers are remembered.
const REMEMBERED: usize = 64;

/// Longest id of a request, in characters.
const ID_CHARACTERS: usize = 128;

/// A request as its page names it: an id, and a fingerprint of what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    page: Page,
    id: String,
    content: u64,
}

impl Named {
    /// Names a request if the page gave it an id.
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id of more than 128 characters.
    pub(super) fn new(
        page: &Page,
        id: Option<String>,
        content: &impl Serialize,
    ) -> Result<Option<Self>, AgentError> {
        let Some(id) = id else { return Ok(None) };
        check_id(&id)?;
        Ok(Some(Self {
            page: page.clone(),
            id,
            content: fingerprint(content)?,
        }))
    }
}

/// The answers to the newest requests of one kind, and the requests that are under way. An
/// id belongs to the page that sent it: another page's request with the same id is another
/// request.
#[derive(Debug)]
pub(super) struct Requests<T> {
    /// Oldest first. Written when a call begins or ends, by a cancel, and when a window goes
    /// away.
    known: Mutex<VecDeque<Known<T>>>,
}

#[derive(Debug)]
struct Known<T> {
    page: Page,
    id: String,
    /// Fingerprint of what is asked; unknown while only a cancel has come.
    content: Option<u64>,
    /// Calls that wait for the answer.
    calls: usize,
    request: Arc<Request<T>>,
}

#[derive(Debug)]
struct Request<T> {
    /// Set once by the first call that succeeds; later calls wait for it.
    answer: OnceCell<T>,
    /// Set by a cancel, also when it overtakes its request.
    cancelled: AtomicBool,
}

/// What a cancel by request id found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cancelled<T> {
    /// The request was answered with this.
    Answered(T),
    /// The request is under way or has not arrived: it is cancelled as soon as it starts.
    Ahead,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
        }
    }
}

impl<T: Clone> Requests<T> {
    /// Runs `start` for the first call of this request and returns the same answer to all
    /// others, also while the first is under way. A failure is not remembered: nothing was
    /// started. `cancel` is called if the request was cancelled before it had an answer.
    ///
    /// # Errors
    /// `INVALID_INPUT` if the page has used the id for something else; those of `start`.
    pub(super) async fn once<F>(
        &self,
        named: Option<Named>,
        start: impl FnOnce() -> F,
        cancel: impl FnOnce(&T),
    ) -> Result<T, AgentError>
    where
        F: Future<Output = Result<T, AgentError>>,
    {
        let Some(named) = named else {
            return start().await;
        };
        let call = self.enter(named)?;
        let answer = call.request.answer.get_or_try_init(start).await?.clone();
        // A cancel sets the flag before it looks for the answer, so one of the two sees
        // the other.
        if call.request.cancelled.swap(false, Ordering::SeqCst) {
            cancel(&answer);
        }
        Ok(answer)
    }

    /// Cancels a request of a page by its id.
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id of more than 128 characters.
    pub(super) fn cancel(&self, page: &Page, id: String) -> Result<Cancelled<T>, AgentError> {
        check_id(&id)?;
        let request = self.with(page, id, |known| Arc::clone(&known.request));
        request.cancelled.store(true, Ordering::SeqCst);
        Ok(match request.answer.get() {
            Some(answer) => {
                request.cancelled.store(false, Ordering::SeqCst);
                Cancelled::Answered(answer.clone())
            }
            None => Cancelled::Ahead,
        })
    }

    /// Forgets what the pages of a window asked: none of them can repeat it.
    pub(super) fn forget_window(&self, window: &str) {
        lock(&self.known).retain(|known| known.page.window != window);
    }

    fn enter(&self, named: Named) -> Result<Call<'_, T>, AgentError> {
        let Named { page, id, content } = named;
        self.with(&page, id, |known| {
            if *known.content.get_or_insert(content) != content {
                return Err(AgentError::invalid_input(
                    "this page has used the requestId for another request; each request needs \
                     an id of its own",
                ));
            }
            known.calls += 1;
            Ok(Call {
                requests: self,
                request: Arc::clone(&known.request),
            })
        })
    }

    /// Looks at a request, which is added if it is new.
    fn with<R>(&self, page: &Page, id: String, look: impl FnOnce(&mut Known<T>) -> R) -> R {
        let mut all = lock(&self.known);
        let is_this = |known: &&mut Known<T>| known.page == *page && known.id == id;
        if let Some(known) = all.iter_mut().find(is_this) {
            return look(known);
        }
        make_room(&mut all);
        let mut known = Known {
            page: page.clone(),
            id,
            content: None,
            calls: 0,
            request: Arc::new(Request {
                answer: OnceCell::new(),
                cancelled: AtomicBool::new(false),
            }),
        };
        let seen = look(&mut known);
        all.push_back(known);
        seen
    }
}

/// Forgets the oldest cancel that no request has followed, else the oldest answer. What is
/// under way stays.
fn make_room<T>(all: &mut VecDeque<Known<T>>) {
    if all.len() < REMEMBERED {
        return;
    }
    let idle = |known: &Known<T>| known.calls == 0;
    let oldest = all
        .iter()
        .position(|known| idle(known) && !known.is_answered())
        .or_else(|| all.iter().position(idle));
    if let Some(oldest) = oldest {
        all.remove(oldest);
    }
}

/// A call that waits for the answer of its request.
struct Call<'a, T> {
    requests: &'a Requests<T>,
    request: Arc<Request<T>>,
}

impl<T> Drop for Call<'_, T> {
    /// A request without an answer is forgotten with its last call, so that refusals take no
    /// room from what was started.
    fn drop(&mut self) {
        let mut all = lock(&self.requests.known);
        let is_this = |known: &Known<T>| Arc::ptr_eq(&known.request, &self.request);
        if let Some(known) = all.iter_mut().find(|known| is_this(known)) {
            known.calls -= 1;
        }
        all.retain(|known| !is_this(known) || known.calls > 0 || known.is_answered());
    }
}

impl<T> Known<T> {
    fn is_answered(&self) -> bool {
        self.request.answer.initialized()
    }
}

fn check_id(id: &str) -> Result<(), AgentError> {
    if id.chars().nth(ID_CHARACTERS).is_some() {
        return Err(AgentError::invalid_input(format!(
            "the requestId is too long; it may have at most {ID_CHARACTERS} characters"
        )));
    }
    Ok(())
}

/// Hashes what is written to it.
#[derive(Default)]
struct HashWriter(DefaultHasher);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stands for the content of a request, which may be as large as its images.
fn fingerprint(content: &impl Serialize) -> Result<u64, AgentError> {
    let mut hash = HashWriter::default();
    serde_json::to_writer(&mut hash, content)
        .map_err(|error| AgentError::internal(format!("a request cannot be hashed: {error}")))?;
    Ok(hash.0.finish())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests;

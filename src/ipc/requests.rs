//! Requests that a page may repeat: a reload can invoke a command again that has not
//! answered yet.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use crate::agent::contain::lock;
use crate::agent::error::AgentError;

/// How many requests are remembered.
const REMEMBERED: usize = 64;

/// The answers to the newest requests of one kind.
#[derive(Debug)]
pub(super) struct Requests<T> {
    /// Oldest first. Written when a request or its cancel comes in.
    newest: Mutex<VecDeque<(String, Arc<Request<T>>)>>,
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
            newest: Mutex::default(),
        }
    }
}

impl<T: Clone> Requests<T> {
    /// Runs `start` for the first call with this id and answers the same to all others,
    /// also while the first is under way. A failure is not remembered: nothing was started.
    /// `cancel` is called if the request was cancelled before it had an answer.
    pub(super) async fn once<F>(
        &self,
        id: Option<String>,
        start: impl FnOnce() -> F,
        cancel: impl FnOnce(&T),
    ) -> Result<T, AgentError>
    where
        F: Future<Output = Result<T, AgentError>>,
    {
        let Some(id) = id else {
            return start().await;
        };
        let request = self.request(id);
        let answer = request.answer.get_or_try_init(start).await?.clone();
        // A cancel sets the flag before it looks for the answer, so one of the two sees
        // the other.
        if request.cancelled.swap(false, Ordering::SeqCst) {
            cancel(&answer);
        }
        Ok(answer)
    }

    /// Cancels a request by its id.
    pub(super) fn cancel(&self, id: String) -> Cancelled<T> {
        let request = self.request(id);
        request.cancelled.store(true, Ordering::SeqCst);
        match request.answer.get() {
            Some(answer) => {
                request.cancelled.store(false, Ordering::SeqCst);
                Cancelled::Answered(answer.clone())
            }
            None => Cancelled::Ahead,
        }
    }

    fn request(&self, id: String) -> Arc<Request<T>> {
        let mut newest = lock(&self.newest);
        if let Some((_, request)) = newest.iter().find(|(known, _)| *known == id) {
            return Arc::clone(request);
        }
        if newest.len() == REMEMBERED {
            newest.pop_front();
        }
        let request = Arc::new(Request {
            answer: OnceCell::new(),
            cancelled: AtomicBool::new(false),
        });
        newest.push_back((id, Arc::clone(&request)));
        request
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    async fn numbered(requests: &Requests<u32>, id: &str, number: u32) -> u32 {
        requests
            .once(Some(id.into()), || async { Ok(number) }, |_| {})
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_repeated_request_gets_the_first_answer() {
        let requests = Requests::default();
        assert_eq!(numbered(&requests, "a", 1).await, 1);
        assert_eq!(numbered(&requests, "b", 2).await, 2);
        assert_eq!(numbered(&requests, "a", 3).await, 1);
    }

    #[tokio::test]
    async fn a_repeat_waits_for_the_first_call_that_is_under_way() {
        let requests = Requests::default();
        let (open, gate) = tokio::sync::oneshot::channel::<()>();
        let first = requests.once(
            Some("a".into()),
            || async {
                gate.await.unwrap();
                Ok(1)
            },
            |_| {},
        );
        let second = numbered(&requests, "a", 2);
        let open = async {
            tokio::task::yield_now().await;
            open.send(()).unwrap();
        };
        let (first, second, ()) = tokio::join!(first, second, open);
        assert_eq!((first, second), (Ok(1), 1));
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let requests = Requests::default();
        let busy = AgentError::internal("no");
        let failed: Result<u32, _> = requests
            .once(Some("a".into()), || async { Err(busy.clone()) }, |_| {})
            .await;
        assert_eq!(failed, Err(busy));
        assert_eq!(numbered(&requests, "a", 2).await, 2);
    }

    #[tokio::test]
    async fn only_the_newest_64_are_remembered() {
        let requests = Requests::default();
        for number in 0..=64 {
            assert_eq!(
                numbered(&requests, &number.to_string(), number).await,
                number
            );
        }
        assert_eq!(numbered(&requests, "1", 1_000).await, 1);
        assert_eq!(numbered(&requests, "0", 1_000).await, 1_000);
    }

    #[tokio::test]
    async fn a_cancel_that_overtakes_its_request_takes_effect_once() {
        let requests = Requests::default();
        assert_eq!(requests.cancel("a".into()), Cancelled::Ahead);
        let mut cancelled = Vec::new();
        for _ in 0..2 {
            let answer = requests
                .once(
                    Some("a".into()),
                    || async { Ok(7) },
                    |turn| cancelled.push(*turn),
                )
                .await;
            assert_eq!(answer, Ok(7));
        }
        assert_eq!(cancelled, [7]);
        assert_eq!(requests.cancel("a".into()), Cancelled::Answered(7));
    }
}

//! The one place where a caller's panic is caught: in futures, streams and plain calls.
//!
//! Providers, tools, hooks, plugins and storages are foreign code. Whatever of theirs is
//! called goes through here, so that a panic becomes a text and never takes a turn, a lock
//! or the process with it.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::runtime::Handle;

use super::error::AgentError;

/// A caught panic, with the text it carried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {0}")]
pub(crate) struct Panicked(String);

impl Panicked {
    /// Takes the text out of a panic's payload and drops the rest, which is foreign code, too.
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let this = Self::read(&*payload);
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // A payload that panics when it is dropped gave another one: no end is promised
            // there, so that one is never dropped.
            std::mem::forget(second);
        }
        this
    }

    fn read(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_else(|| "with a payload that is no text".to_owned()))
    }
}

/// Why a contained call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Panicked(#[from] Panicked),
    #[error("it did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Calls foreign code that returns at once.
pub(crate) fn call<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panicked::from_payload)
}

/// Awaits foreign code. The future may panic when it is made, hence the closure, and when it
/// is dropped, finished or not.
pub(crate) async fn future<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, Panicked> {
    let held = pin!(Some(call(make)?));
    let mut held = Held(held);
    poll_fn(|context| match held.0.as_mut().as_pin_mut() {
        Some(future) => match call(|| future.poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panicked) => Poll::Ready(Err(panicked)),
        },
        // Not before `held` is dropped.
        None => Poll::Pending,
    })
    .await
}

/// A foreign future whose end is contained, too.
struct Held<'a, F>(Pin<&'a mut Option<F>>);

impl<F> Drop for Held<'_, F> {
    fn drop(&mut self) {
        if let Err(panicked) = call(|| self.0.set(None)) {
            tracing::warn!("dropping a future failed: {panicked}");
        }
    }
}

/// Awaits foreign code for a limited time, which runs from its first pause: code that returns
/// at once, as most hook handlers do, costs no timer.
pub(crate) async fn limited<F: Future>(
    limit: Duration,
    make: impl FnOnce() -> F,
) -> Result<F::Output, Failure> {
    let mut answer = pin!(future(make));
    let first = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context)));
    if let Poll::Ready(result) = first.await {
        return Ok(result?);
    }
    match tokio::time::timeout(limit, answer).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Failure::TimedOut(limit)),
    }
}

/// Polls a foreign stream. After a panic it must not be polled again.
pub(crate) fn poll_next<S: Stream + ?Sized>(
    stream: Pin<&mut S>,
    context: &mut Context<'_>,
) -> Result<Poll<Option<S::Item>>, Panicked> {
    call(|| stream.poll_next(context))
}

/// Runs work of the agent in a task on its own runtime and awaits it, from any thread. The
/// work goes on when the caller stops waiting, so that nothing is left half done.
pub(crate) async fn spawned<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T, AgentError>> + Send + 'static,
) -> Result<T, AgentError> {
    match runtime.spawn(work).await {
        Ok(answer) => answer,
        Err(stopped) => Err(match stopped.try_into_panic() {
            Ok(payload) => {
                let panicked = Panicked::from_payload(payload);
                AgentError::internal(format!("the agent failed: {panicked}"))
            }
            Err(_) => AgentError::agent_shut_down(),
        }),
    }
}

/// Locks a mutex of the agent. No foreign code runs under one, so a poisoned lock can only
/// come from a fault of our own, and the data behind it is still the best there is.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[expect(clippy::panic, reason = "panics are what is tested")]
mod tests {
    use super::*;

    /// A payload that panics again when it is dropped, with a payload that does so, too, this
    /// many times.
    struct Bomb(u8);

    impl Drop for Bomb {
        fn drop(&mut self) {
            match self.0.checked_sub(1) {
                Some(left) => std::panic::panic_any(Bomb(left)),
                None => std::panic::panic_any("the payload panics, too"),
            }
        }
    }

    fn explode<T>() -> T {
        std::panic::panic_any(Bomb(3))
    }

    fn without_text() -> Panicked {
        Panicked("with a payload that is no text".to_owned())
    }

    #[test]
    fn a_panic_whose_payload_panics_ends_in_a_text() {
        // C24
        assert_eq!(call(explode::<()>), Err(without_text()));
        let text = || -> () { std::panic::panic_any("broken".to_owned()) };
        assert_eq!(call(text), Err(Panicked("broken".to_owned())));
    }

    #[tokio::test]
    async fn a_future_that_panics_so_when_it_is_made_polled_or_dropped_is_contained() {
        // C24
        let made = future(explode::<std::future::Ready<()>>).await;
        assert_eq!(made, Err(without_text()));
        let polled = future(|| poll_fn(|_| explode::<Poll<()>>())).await;
        assert_eq!(polled, Err(without_text()));
        let dropped = future(|| async {
            let _armed = Bomb(3);
            std::future::pending::<()>().await;
        });
        let late = tokio::time::timeout(Duration::ZERO, dropped).await;
        assert!(late.is_err());
    }

    #[tokio::test]
    async fn work_that_panics_so_in_its_task_is_an_internal_error() {
        // C24
        let runtime = Handle::current();
        let failed = spawned(&runtime, async { explode::<Result<(), AgentError>>() }).await;
        let error = AgentError::internal(format!("the agent failed: {}", without_text()));
        assert_eq!(failed, Err(error));
    }
}

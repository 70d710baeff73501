//! Waiting for a future from a thread that must not block on one.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The time is over; the future was dropped.
    Late,
    /// The future panicked.
    Never,
}

/// Runs a future on Tauri's runtime and blocks this thread until it is done. It works
/// inside a Tokio context as well, where `block_on` panics.
pub(super) fn wait_for<F>(limit: Duration, future: F) -> Result<F::Output, Unanswered>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, receiver) = sync_channel(1);
    let task = tauri::async_runtime::spawn(async move {
        // Nobody listens after the limit, and then the answer does not matter.
        let _ = sender.send(future.await);
    });
    receiver.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            task.abort();
            Unanswered::Late
        }
        RecvTimeoutError::Disconnected => Unanswered::Never,
    })
}

#[cfg(test)]
#[expect(clippy::panic, reason = "one test is about a panic")]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn it_waits_inside_a_tokio_context() {
        assert_eq!(wait_for(LONG, async { 7 }), Ok(7));
    }

    #[test]
    fn a_future_that_takes_too_long_is_dropped() {
        let never = std::future::pending::<()>();
        assert_eq!(
            wait_for(Duration::from_millis(1), never),
            Err(Unanswered::Late)
        );
    }

    #[test]
    fn a_panic_is_told_at_once() {
        let panics = async { panic!("on purpose") };
        assert_eq!(wait_for::<_>(LONG, panics), Err::<(), _>(Unanswered::Never));
    }
}

//! A connection, used from async code.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use youyou_agent::StorageError;

use crate::failure::Failure;

/// How many calls may wait for the connection; more of them wait for a place in the queue.
pub(crate) const QUEUE: usize = 64;

/// A piece of work for the thread that owns the connection.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle of a connection, cheap to clone.
///
/// The connection is owned by one thread that works off a queue: SQLite lets only one write at
/// a time anyway, and reads of sessions are short. A mutex and a pool of threads would do the
/// work in whatever order the threads wake, and a write whose caller gave up could then
/// overwrite a newer one.
///
/// The thread ends, and the connection is closed, when the last handle is gone and all is done.
#[derive(Debug, Clone)]
pub(crate) struct Worker(mpsc::Sender<Job>);

impl Worker {
    pub(crate) fn start(name: &str, connection: Connection) -> Result<Self, Failure> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work_off(queue, connection))
            .map_err(|error| Failure::new(format_args!("no thread can be started: {error}")))?;
        Ok(Self(jobs))
    }

    /// Runs `work` with the connection, after everything that was called before.
    ///
    /// # Order
    /// Calls take their place in the queue when they are first polled. One that is dropped
    /// later is worked off all the same, in its place; one that is dropped while the queue is
    /// full never happens.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StorageError> {
        let interrupted = || StorageError::new("the storage was interrupted; try again");
        let (answer, done) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody waits any more if the caller gave up.
            let _ = answer.send(work(connection));
        });
        self.0.send(job).await.map_err(|_| interrupted())?;
        Ok(done.await.map_err(|_| interrupted())??)
    }
}

fn work_off(mut queue: mpsc::Receiver<Job>, mut connection: Connection) {
    while let Some(job) = queue.blocking_recv() {
        // A panic rolls its transaction back, so the connection is sound. The caller learns of
        // it because its answer is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut connection)));
    }
}

#[cfg(test)]
#[expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
mod tests;

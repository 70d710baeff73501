//! Work on the database that is done even if its caller gives up, in order where order counts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use youyou_agent::StorageError;

use crate::failure::Failure;

/// How much of the work is done at a time where order counts. Sessions are spread over lanes
/// by their ids, so that memory is fixed and few of them wait for another one.
const LANES: usize = 32;
/// How many calls may wait in a lane; more of them wait for a place in it.
const QUEUE: usize = 64;
/// The longest that a call may take.
const LIMIT: Duration = Duration::from_secs(30);

type Job = BoxFuture<'static, ()>;

/// A handle of the pool, cheap to clone.
///
/// Work goes on when its caller gives up; only its own limit cuts it.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    pool: PgPool,
    lanes: Vec<mpsc::Sender<Job>>,
}

impl Lanes {
    pub(crate) fn new(pool: PgPool) -> Self {
        let lanes = (0..LANES)
            .map(|_| {
                let (jobs, queue) = mpsc::channel(QUEUE);
                tokio::spawn(work_off(queue));
                jobs
            })
            .collect();
        Self { pool, lanes }
    }

    #[cfg(test)]
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Does work about one session, after all that was called before about the same session.
    ///
    /// # Order
    /// Calls take their place when they are first polled. One that is dropped later is done all
    /// the same, in its place; one that is dropped while its lane is full never happens.
    pub(crate) async fn in_order<T, W>(
        &self,
        session_id: &str,
        work: impl FnOnce(PgPool) -> W,
    ) -> Result<T, StorageError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (job, done) = self.job(work);
        let mut hasher = DefaultHasher::new();
        session_id.hash(&mut hasher);
        let place = hasher.finish() % LANES as u64;
        let lane = usize::try_from(place)
            .ok()
            .and_then(|place| self.lanes.get(place))
            .ok_or_else(Failure::interrupted)?;
        lane.send(job).await.map_err(|_| Failure::interrupted())?;
        Ok(done.await.map_err(|_| Failure::interrupted())??)
    }

    /// Does work beside all other.
    pub(crate) async fn aside<T, W>(
        &self,
        work: impl FnOnce(PgPool) -> W,
    ) -> Result<T, StorageError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (job, done) = self.job(work);
        tokio::spawn(job);
        Ok(done.await.map_err(|_| Failure::interrupted())??)
    }

    fn job<T, W>(
        &self,
        work: impl FnOnce(PgPool) -> W,
    ) -> (Job, oneshot::Receiver<Result<T, Failure>>)
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (answer, done) = oneshot::channel();
        let work = work(self.pool.clone());
        let job = Box::pin(async move {
            let outcome = tokio::time::timeout(LIMIT, work).await;
            let slow = |_| Failure::new("the database did not answer within 30 seconds");
            // Nobody waits any more if the caller gave up.
            let _ = answer.send(outcome.map_err(slow).flatten());
        });
        (job, done)
    }
}

async fn work_off(mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = queue.recv().await {
        // In a task of its own: one that panics takes no lane with it, and its caller learns of
        // it because the answer is dropped.
        let _ = tokio::spawn(job).await;
    }
}

//! The time of day, in the unit that events and storages use, and moments to come.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Milliseconds since the Unix epoch; 0 on a clock before it.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

/// The moment `limit` after another. One that lies beyond what a clock can count is moved
/// closer, which nobody lives to see.
pub(crate) fn after(start: Instant, limit: Duration) -> Instant {
    const THIRTY_YEARS: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    start.checked_add(limit.min(THIRTY_YEARS)).unwrap_or(start)
}

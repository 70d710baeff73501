//! Paused time, moved by hand.

use std::time::Duration;

/// Lets everything happen that can happen without time passing.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Lets everything happen that can happen now, and then this much time pass.
pub(crate) async fn pass(duration: Duration) {
    settle().await;
    tokio::time::advance(duration).await;
    settle().await;
}

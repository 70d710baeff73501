//! What is tried again, when, and how long to wait.

// Requirements: 5.1 Turn loop, automatic retry.

use std::time::Duration;

use super::config::AgentConfig;
use super::provider::{ProviderError, ProviderErrorKind};

/// Decides about a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Try again after this long.
    After(Duration),
    /// Give up.
    No,
    /// The server asks for a longer wait than is allowed.
    TooLong { retry_after_ms: u64 },
}

/// Whether the failed attempt number `attempt` (from 1) is followed by another.
pub(crate) fn decide(error: &ProviderError, attempt: u32, config: &AgentConfig) -> Retry {
    let asked = match &error.kind {
        ProviderErrorKind::RateLimited { retry_after_ms } => *retry_after_ms,
        ProviderErrorKind::Overloaded | ProviderErrorKind::Network | ProviderErrorKind::Timeout => {
            None
        }
        ProviderErrorKind::ContextLengthExceeded
        | ProviderErrorKind::Auth
        | ProviderErrorKind::Quota
        | ProviderErrorKind::InvalidRequest
        | ProviderErrorKind::UnsupportedContent
        | ProviderErrorKind::Other => return Retry::No,
    };
    if let Some(retry_after_ms) = asked.filter(|ms| *ms > config.retry_max_delay_ms) {
        return Retry::TooLong { retry_after_ms };
    }
    if attempt > config.max_retries {
        return Retry::No;
    }
    Retry::After(match asked {
        Some(ms) => Duration::from_millis(ms),
        None => Duration::from_millis(jittered(backoff(attempt, config))),
    })
}

fn backoff(attempt: u32, config: &AgentConfig) -> u64 {
    let doublings = attempt.saturating_sub(1).min(32);
    config
        .retry_base_ms
        .saturating_mul(1 << doublings)
        .min(config.retry_max_delay_ms)
}

/// Within 10 % around the delay, so that clients do not come back all at once.
fn jittered(delay_ms: u64) -> u64 {
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    let spread = u128::from(delay_ms / 5) * u128::from(random) / 255;
    let spread = u64::try_from(spread).unwrap_or(u64::MAX);
    (delay_ms - delay_ms / 10).saturating_add(spread)
}

//! How a model call fails.

use serde::{Deserialize, Serialize};

/// A failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure it is: the agent decides by this alone, never by the message.
    pub kind: ProviderErrorKind,
    /// For the user: what failed and what to do.
    pub message: String,
}

impl ProviderError {
    /// A failure of this kind, with a message for the user.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The kinds of failure the agent tells apart.
///
/// `RateLimited`, `Overloaded`, `Network` and `Timeout` are tried again by themselves, up to
/// `max_retries` times and only while nothing of the answer was shown. Whatever is left fails
/// the turn with `PROVIDER_ERROR`, but for an overflow that cannot be mended (`COMPACT_ERROR`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The request does not fit the model's window. The only kind that makes the agent compact
    /// the context and ask again.
    ContextLengthExceeded,
    /// Too many requests.
    RateLimited {
        /// Milliseconds the server asked to wait, if it did. More than `retry_max_delay_ms`
        /// fails at once.
        retry_after_ms: Option<u64>,
    },
    /// The server is overloaded.
    Overloaded,
    /// The connection failed or the stream broke off.
    Network,
    /// The server did not answer in time.
    Timeout,
    /// The key is missing or wrong.
    Auth,
    /// The account has no credit left.
    Quota,
    /// The server refuses the request as malformed. The images of the newest message are
    /// placeholders from then on, as they may be the cause; so with the next two kinds.
    InvalidRequest,
    /// The model cannot take a content block of the request.
    UnsupportedContent,
    /// Anything else. Not tried again by itself; the user may.
    Other,
}

impl ProviderErrorKind {
    /// Whether the same request may succeed later (the `retryable` field of the error):
    /// `RateLimited`, `Overloaded`, `Network`, `Timeout` and `Other`.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded
            | Self::Network
            | Self::Timeout
            | Self::Other => true,
            Self::ContextLengthExceeded
            | Self::Auth
            | Self::Quota
            | Self::InvalidRequest
            | Self::UnsupportedContent => false,
        }
    }
}

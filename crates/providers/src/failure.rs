//! What a failed model call means: status, headers and body of a server become one of the
//! kinds that the agent acts on, and a text for a person.

use youyou_agent::{ProviderError, ProviderErrorKind as Kind};

use crate::wire::Target;

/// Reads an error that came inside of an answer: an error object in a stream, or a JSON body in
/// place of one. Takes the text as it came, wrapped or not; it need not even be JSON.
pub(crate) fn told(target: &Target, body: &str) -> ProviderError {
    ProviderError::new(Kind::Other, format!("{}: {body}", target.service))
}

/// The data ended, or a frame was torn, before the answer was complete.
pub(crate) fn broke_off(target: &Target) -> ProviderError {
    ProviderError::new(
        Kind::Network,
        format!(
            "the connection to {} ended before the answer was complete; try again",
            target.service
        ),
    )
}

/// The server ended the answer with a finish reason that tells of a failure.
pub(crate) fn ended_with(target: &Target, reason: &str) -> ProviderError {
    ProviderError::new(
        Kind::Overloaded,
        format!(
            "{} broke the answer off ({reason}); try again",
            target.service
        ),
    )
}

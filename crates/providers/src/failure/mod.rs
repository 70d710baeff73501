//! What a failed model call means: status, headers and body of a server become one of the
//! kinds that the agent acts on, and a text for a person.
//!
//! The kind is decided by the server's code, then by the status, then by known words: three
//! tables (`table`). The words for the person are in `words`.

mod facts;
mod table;
mod wait;
mod words;

use std::error::Error as _;

use reqwest::header::HeaderMap;
use youyou_agent::{ProviderError, ProviderErrorKind as Kind};

use crate::http::Fault;
use crate::wire::Target;
use facts::Facts;
use table::Meaning;

/// Reads an error that came inside of an answer: an error object in a stream, or a JSON body in
/// place of one. Takes the text as it came, wrapped or not; it need not even be JSON.
pub(crate) fn told(target: &Target, body: &str) -> ProviderError {
    let facts = Facts::of(body);
    let meaning = facts.meaning().unwrap_or(Meaning::Unknown);
    made(target, meaning, &facts, None, None)
}

/// Reads the answer of a server that refused the request.
pub(crate) fn status(
    target: &Target,
    status: u16,
    headers: &HeaderMap,
    body: &str,
) -> ProviderError {
    let facts = Facts::of(body);
    let meaning = table::by_status(status, &facts, &target.model);
    made(
        target,
        meaning,
        &facts,
        Some(status),
        wait::asked_by(headers),
    )
}

/// A page for people in place of an answer: the address is not that of a model server.
pub(crate) fn page(target: &Target) -> ProviderError {
    words::error(target, Meaning::Address, Kind::InvalidRequest, "", None)
}

/// The data ended, or a frame was torn, before the answer was complete.
pub(crate) fn broke_off(target: &Target) -> ProviderError {
    words::plain(target, Kind::Network, words::BROKE_OFF)
}

/// The data ended before the answer was complete, and something came that is no known part of
/// one: it is shown where it has words.
pub(crate) fn odd(target: &Target, frame: &str) -> ProviderError {
    let facts = Facts::of(frame);
    if facts.said().is_empty() {
        return broke_off(target);
    }
    let kind = facts
        .meaning()
        .map_or(Kind::Network, |meaning| meaning.kind(facts.wait()));
    words::error(
        target,
        facts.meaning().unwrap_or(Meaning::Broken),
        kind,
        facts.said(),
        None,
    )
}

/// The server sent nothing for too long.
pub(crate) fn silent(target: &Target) -> ProviderError {
    words::plain(target, Kind::Timeout, words::SILENT)
}

/// The server sent more in one piece than can be an answer.
pub(crate) fn flooded(target: &Target) -> ProviderError {
    words::plain(target, Kind::Other, words::FLOODED)
}

/// The server ended the answer with a finish reason that tells of a failure.
pub(crate) fn ended_with(target: &Target, reason: &str) -> ProviderError {
    let said = facts::first_words(reason);
    words::error(target, Meaning::Overloaded, Kind::Overloaded, &said, None)
}

/// The provider has no key.
pub(crate) fn no_key(target: &Target) -> ProviderError {
    words::plain(target, Kind::Auth, words::NO_KEY)
}

/// The key cannot be sent: it has a line end or another letter that no key has.
pub(crate) fn broken_key(target: &Target) -> ProviderError {
    words::plain(target, Kind::Auth, words::BROKEN_KEY)
}

/// The address cannot be one.
pub(crate) fn bad_address(target: &Target) -> ProviderError {
    words::error(target, Meaning::Address, Kind::InvalidRequest, "", None)
}

/// A server that tells no models has none named.
pub(crate) fn no_models(target: &Target) -> ProviderError {
    words::plain(target, Kind::InvalidRequest, words::NO_MODELS)
}

/// A server of this computer does not run.
pub(crate) fn not_running(target: &Target) -> ProviderError {
    words::error(target, Meaning::Unreachable, Kind::Network, "", None)
}

/// What this server has no way for.
pub(crate) fn unsupported(target: &Target, what: &str) -> ProviderError {
    words::plain(target, Kind::UnsupportedContent, &format!("cannot {what}"))
}

/// There is no answer.
pub(crate) fn of_http(target: &Target, fault: &Fault) -> ProviderError {
    match fault {
        Fault::Client(why) => words::plain(target, Kind::Other, &format!("cannot be asked: {why}")),
        Fault::Request(error) => transport(target, error),
    }
}

/// The request did not get through, or its answer did not.
pub(crate) fn transport(target: &Target, error: &reqwest::Error) -> ProviderError {
    let cause = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let said = cause
        .map(|cause| facts::first_words(&cause.to_string()))
        .unwrap_or_default();
    let (meaning, kind) = if error.is_builder() {
        (Meaning::Address, Kind::InvalidRequest)
    } else if error.is_timeout() {
        (Meaning::Timeout, Kind::Timeout)
    } else if error.is_connect() {
        (Meaning::Unreachable, Kind::Network)
    } else {
        (Meaning::Broken, Kind::Network)
    };
    words::error(target, meaning, kind, &said, None)
}

fn made(
    target: &Target,
    meaning: Meaning,
    facts: &Facts,
    status: Option<u16>,
    wait: Option<u64>,
) -> ProviderError {
    let kind = meaning.kind(wait.or(facts.wait()));
    words::error(target, meaning, kind, facts.said(), status)
}

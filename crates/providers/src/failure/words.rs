//! The words of failures, in one table.

use youyou_agent::{ProviderError, ProviderErrorKind as Kind};

use super::table::Meaning;
use crate::wire::Target;

pub(super) const BROKE_OFF: &str = "ended the connection before the answer was complete; try again";
pub(super) const SILENT: &str = "sent nothing for too long; try again";
pub(super) const FLOODED: &str = "sent more in one piece than an answer can be";
pub(super) const NO_KEY: &str = "needs an API key; enter one in the settings";
pub(super) const BROKEN_KEY: &str = "cannot take this API key: there is a line end or another letter in it that no key has; enter it again";

pub(super) const NO_MODELS: &str = "does not tell which models it has; name one in the settings";

/// What happened, and what to do, with the server's own words between them. `{model}` and
/// `{address}` stand for those of the request.
fn phrases(meaning: Meaning) -> (&'static str, &'static str) {
    match meaning {
        Meaning::Overflow => (
            "cannot take so long a conversation with the model {model}",
            "",
        ),
        Meaning::TooLarge => (
            "refused the request because it is too large",
            "; send fewer or smaller images and files",
        ),
        Meaning::RateLimited => ("asks to slow down", "; wait a moment and try again"),
        Meaning::Overloaded => ("is overloaded or out of order", "; try again"),
        Meaning::Timeout => ("did not answer in time", "; try again"),
        Meaning::Auth => ("refused the API key", "; check it in the settings"),
        Meaning::Quota => ("says that the account has no credit left", ""),
        Meaning::Model => ("does not know the model {model}", "; choose another one"),
        Meaning::Address => (
            "is not at this address: there is no model server at {address}",
            "; check the address",
        ),
        Meaning::Filter => ("refused the request by its content filter", ""),
        Meaning::Content => ("cannot take this content with the model {model}", ""),
        Meaning::Request => ("refused the request for the model {model}", ""),
        Meaning::Unreachable => (
            "cannot be reached at {address}",
            "; check the address and the connection",
        ),
        Meaning::Broken => ("broke the connection", "; try again"),
        Meaning::Unknown => ("reported an error", ""),
    }
}

/// A failure in words: who, what, the server's own words, what to do.
pub(super) fn error(
    target: &Target,
    meaning: Meaning,
    kind: Kind,
    said: &str,
    status: Option<u16>,
) -> ProviderError {
    let (what, hint) = phrases(meaning);
    let what = what
        .replace("{model}", &target.model)
        .replace("{address}", &target.address);
    let said = match (said, status) {
        ("", Some(status)) => format!(" (status {status})"),
        ("", None) => String::new(),
        // An empty hint follows words that may end as they like; a hint goes on with them.
        (said, _) if hint.is_empty() => format!(": {said}"),
        (said, _) => format!(": {}", said.trim_end_matches(['.', ' '])),
    };
    ProviderError::new(kind, format!("{} {what}{said}{hint}", target.service))
}

/// A failure of which the server said nothing.
pub(super) fn plain(target: &Target, kind: Kind, what: &str) -> ProviderError {
    ProviderError::new(kind, format!("{} {what}", target.service))
}

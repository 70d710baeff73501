//! Where keys come from. They are asked for at each request and kept nowhere.

use std::fmt;
use std::sync::Arc;

use youyou_agent::ProviderError;

use crate::vendor;

/// The key of a server. It is in no `Debug` output, log or error.
///
/// # Examples
/// ```
/// use youyou_agent_providers::Key;
///
/// let key = Key::new("  \"sk-secret-secret\"\n");
/// assert_eq!(key, Key::new("sk-secret-secret"));
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Arc<str>);

impl Key {
    /// Takes a key as a person pastes it or a file holds it: blanks, line ends and a pair of
    /// quotes around it are dropped.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(bare(text.as_ref()).into())
    }

    /// Whether nothing is left of it. Such a key counts as none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for a request.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it can be sent: visible characters only. A line end in the middle is a key that
    /// was pasted in two pieces.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// A text without what surrounds it when it is pasted: blanks, line ends, one pair of quotes.
pub(crate) fn bare(text: &str) -> &str {
    // A byte order mark is no white space, and editors put it in front.
    let edge = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
    let text = text.trim_matches(edge);
    for quote in ['"', '\'', '`'] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.trim_matches(edge);
        }
    }
    text
}

/// Where the keys of servers come from: [`Environment`], a closure, the system's keyring
/// (feature `keyring`).
///
/// A key is asked for at each request, on a thread that may block, so that a key entered in a
/// settings dialog works at once.
///
/// # Examples
/// ```
/// use youyou_agent_providers::{Key, KeySource};
///
/// let keys = |provider: &str| (provider == "openai").then(|| "sk-1".to_owned());
/// assert_eq!(keys.key("openai"), Some(Key::new("sk-1")));
/// assert_eq!(keys.key("anthropic"), None);
/// ```
pub trait KeySource: Send + Sync + 'static {
    /// The key of a provider, by the provider's id (`openai`, `anthropic`, or the id that an
    /// [`Endpoint`](crate::Endpoint) was given).
    fn key(&self, provider: &str) -> Option<Key>;

    /// Whether [`key`](Self::key) returns at once. One that may wait (a keyring that asks the
    /// user to unlock it) is asked in the background only; until then its models are offered.
    fn is_instant(&self) -> bool {
        true
    }
}

impl<F> KeySource for F
where
    F: Fn(&str) -> Option<String> + Send + Sync + 'static,
{
    fn key(&self, provider: &str) -> Option<Key> {
        self(provider).map(Key::new).filter(|key| !key.is_empty())
    }
}

/// Keys in environment variables: the vendor's own (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`), and
/// for a provider that is no known vendor its id in capitals with `_API_KEY` behind it
/// (`MY_SERVER_API_KEY` for `my-server`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment;

impl KeySource for Environment {
    fn key(&self, provider: &str) -> Option<Key> {
        let own = || {
            let name: String = provider
                .chars()
                .map(|letter| {
                    if letter.is_ascii_alphanumeric() {
                        letter.to_ascii_uppercase()
                    } else {
                        '_'
                    }
                })
                .collect();
            variable(&format!("{name}_API_KEY"))
        };
        let known = vendor::find(provider).map(|vendor| vendor.key_variables);
        let text = match known {
            Some(names) => names.iter().find_map(|name| variable(name)),
            None => own(),
        };
        text.map(Key::new)
    }
}

/// An environment variable that holds something.
pub(crate) fn variable(name: &str) -> Option<String> {
    let text = std::env::var(name).ok()?;
    let text = bare(&text);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Keys in the system's keyring: Keychain of macOS, Credential Manager of Windows, Secret
/// Service of Linux. The entry's user is the provider's id.
#[cfg(feature = "keyring")]
#[derive(Debug, Clone)]
pub struct Keyring {
    service: Arc<str>,
}

#[cfg(feature = "keyring")]
impl Keyring {
    /// Reads the entries of `service`, by custom the app's identifier.
    pub fn new(service: impl Into<Arc<str>>) -> Self {
        Self {
            service: service.into(),
        }
    }

    /// Stores a key, in place of the one before.
    ///
    /// # Errors
    /// What the keyring says: it is locked, or there is none on this system.
    pub fn store(&self, provider: &str, key: &Key) -> Result<(), String> {
        let entry =
            keyring::Entry::new(&self.service, provider).map_err(|error| error.to_string())?;
        entry
            .set_password(key.reveal())
            .map_err(|error| error.to_string())
    }

    /// Deletes a key; it is no fault if there is none.
    ///
    /// # Errors
    /// What the keyring says: it is locked, or there is none on this system.
    pub fn delete(&self, provider: &str) -> Result<(), String> {
        let entry =
            keyring::Entry::new(&self.service, provider).map_err(|error| error.to_string())?;
        match entry.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(feature = "keyring")]
impl KeySource for Keyring {
    fn key(&self, provider: &str) -> Option<Key> {
        let entry = keyring::Entry::new(&self.service, provider).ok()?;
        match entry.get_password() {
            Ok(text) => Some(Key::new(text)).filter(|key| !key.is_empty()),
            Err(keyring::Error::NoEntry) => None,
            Err(error) => {
                tracing::warn!(provider, %error, "the keyring cannot be read");
                None
            }
        }
    }

    fn is_instant(&self) -> bool {
        false
    }
}

/// Texts without keys.
#[derive(Clone, Default)]
pub(crate) struct Scrubber(Option<Key>);

/// So many characters in a row of a key give it away, and fewer are in other words too.
const TELLING: usize = 8;

impl Scrubber {
    pub(crate) fn new(key: Option<Key>) -> Self {
        Self(key)
    }

    pub(crate) fn error(&self, mut error: ProviderError) -> ProviderError {
        error.message = self.scrub(error.message);
        error
    }

    /// The text with the word replaced that begins like the key: servers quote what they
    /// refuse, whole or cut.
    pub(crate) fn scrub(&self, text: String) -> String {
        let start = self.0.as_ref().and_then(|key| key.reveal().get(..TELLING));
        let Some(start) = start.filter(|start| text.contains(start)) else {
            return text;
        };
        let mut clean = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, found)) = rest.split_once(start) {
            clean.push_str(before);
            clean.push_str("[key]");
            let end = found
                .find(|letter: char| !is_of_key(letter))
                .unwrap_or(found.len());
            rest = found.get(end..).unwrap_or_default();
        }
        clean.push_str(rest);
        clean
    }
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, '-' | '_' | '.' | '*' | '+' | '/' | '=' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_an_inner_line_end_is_told_and_not_sent() {
        for sound in [
            "sk-test\n",
            "\"sk-test\"",
            " 'sk-test' ",
            "\u{feff}sk-test\r\n",
            "\"sk-test\n\"",
        ] {
            let key = Key::new(sound);
            assert_eq!(
                (key.reveal(), key.is_sound()),
                ("sk-test", true),
                "{sound:?}"
            );
        }
        for broken in ["sk-\ntest", "sk-te st", "sk-tëst", "sk-\u{200b}test"] {
            assert!(!Key::new(broken).is_sound(), "{broken:?}");
        }
    }

    #[test]
    fn a_text_that_quotes_the_key_loses_it_whole_or_cut() {
        let scrubber = Scrubber::new(Some(Key::new("sk-proj-0123456789abcdef")));
        let texts = [
            "Incorrect API key provided: sk-proj-0123456789abcdef. See",
            "wrong key 'sk-proj-0123***cdef', wrong sk-proj-0123456789abcdef!",
            "nothing here",
        ];
        let clean = texts.map(|text| scrubber.scrub(text.to_owned()));
        assert_eq!(
            clean,
            [
                "Incorrect API key provided: [key] See",
                "wrong key '[key]', wrong [key]!",
                "nothing here"
            ]
        );
    }
}

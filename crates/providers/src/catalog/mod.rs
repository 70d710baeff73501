//! What models there are: what a server lists, and what is known where it tells names only.

mod known;
mod listing;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use youyou_agent::{Capabilities, ModelInfo};

use crate::endpoint::Endpoint;
pub(crate) use known::{family, max_output};
pub(crate) use listing::{read, tokens};

/// How a server tells which models it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// `GET models` in OpenAI's form, with the fields that gateways add.
    OpenAi,
    /// `GET models` in Anthropic's form.
    Anthropic,
    /// `GET models` in Gemini's form.
    Gemini,
    /// The catalog of GitHub Models, which has an address of its own.
    GitHub,
    /// `/api/tags`, `/api/show`, `/api/ps`.
    Ollama,
    /// `/api/v0/models`.
    LmStudio,
    /// `models` and `/props`.
    LlamaCpp,
    /// It does not tell: models are named by the app.
    None,
}

impl Listing {
    /// Where the list is, behind the base address.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "models?limit=1000",
            Self::Gemini => "models?pageSize=1000",
            _ => "models",
        }
    }
}

/// How long a list holds.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3600);
/// The same for a server of this computer: they come and go.
pub(crate) const NEAR_LIFETIME: Duration = Duration::from_secs(10);
/// After a failure the server is asked again so soon.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// What was found out about a server.
#[derive(Debug, Default)]
pub(crate) struct State(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    listed: Option<Vec<ModelInfo>>,
    /// `None` until a source that may wait was asked.
    has_key: Option<bool>,
    /// When the next look is due; `None` before the first.
    due: Option<Instant>,
}

impl State {
    fn with<T>(&self, look: impl FnOnce(&mut Found) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a look is due. Whoever is told so has to look: the next one is told no.
    pub(crate) fn take_due(&self, lifetime: Duration) -> bool {
        let now = Instant::now();
        self.with(|found| {
            let is_due = found.due.is_none_or(|due| due <= now);
            if is_due {
                found.due = now.checked_add(lifetime);
            }
            is_due
        })
    }

    /// Keeps what a look found; the old list stays where there is no new one.
    pub(crate) fn keep(&self, listed: Option<Vec<ModelInfo>>, lifetime: Duration) {
        let soon = if listed.is_some() {
            lifetime
        } else {
            lifetime.min(AFTER_FAILURE)
        };
        self.with(|found| {
            found.due = Instant::now().checked_add(soon);
            if listed.is_some() {
                found.listed = listed;
            }
        });
    }

    /// The server is gone, or its key is: it has nothing.
    pub(crate) fn forget(&self) {
        self.with(|found| {
            found.listed = None;
        });
    }

    pub(crate) fn listed(&self) -> Option<Vec<ModelInfo>> {
        self.with(|found| found.listed.clone())
    }

    pub(crate) fn capabilities(&self, model_id: &str) -> Option<Capabilities> {
        self.with(|found| {
            let mut models = found.listed.iter().flatten();
            models
                .find(|model| model.id == model_id)
                .map(|model| model.capabilities)
        })
    }

    pub(crate) fn has_key(&self) -> Option<bool> {
        self.with(|found| found.has_key)
    }

    pub(crate) fn set_has_key(&self, has_key: bool) {
        self.with(|found| {
            // A key that was just entered: the list is asked for at once.
            if has_key && found.has_key == Some(false) {
                found.due = None;
            }
            found.has_key = Some(has_key);
        });
    }
}

/// The models offered before the vendor was asked.
pub(crate) fn well_known(endpoint: &Endpoint) -> Vec<ModelInfo> {
    let names = endpoint.vendor.well_known.iter();
    names.map(|name| model(endpoint, name)).collect()
}

/// A model of which nothing but the name is told.
pub(crate) fn model(endpoint: &Endpoint, name: &str) -> ModelInfo {
    let (window, can) = known::traits(name);
    ModelInfo::new(endpoint.model_id(name), name, window, can)
}

/// Whether a vendor's model is one to chat with. The user's own server has what it lists.
fn is_offered(endpoint: &Endpoint, name: &str) -> bool {
    let families = endpoint.vendor.families;
    let is_of_family = families.is_empty()
        || families
            .iter()
            .any(|family| name.to_lowercase().starts_with(&family.to_lowercase()));
    !endpoint.is_known_vendor || is_of_family && !known::is_of_another_kind(name)
}

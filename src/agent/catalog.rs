//! Which model belongs to which provider, asked anew whenever it matters (chapter 3.1).

mod offers;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::contain::{self, lock};
use super::context::{Images, ModelProfile};
use super::error::AgentError;
use super::provider::{ModelInfo, ModelProvider};
use offers::{Asker, Offer, Request};

/// A model as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ModelEntry {
    /// The model.
    #[serde(flatten)]
    pub model: ModelInfo,
    /// Its provider.
    pub provider_id: String,
}

/// How long a provider may take to say which models it has. After that what it said before
/// counts, and nobody waits for it again until it has answered.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// The registered providers.
pub(crate) struct Catalog {
    providers: Vec<Provider>,
    /// What was seen of them last. Written when one of them offers something else.
    seen: Mutex<Seen>,
}

struct Provider {
    id: Arc<str>,
    provider: Arc<dyn ModelProvider>,
    asker: Asker,
}

#[derive(Default)]
struct Seen {
    /// In order of the providers.
    offers: Vec<Arc<Offer>>,
    /// Models that are ignored because an earlier provider has them, too: model and provider.
    clashes: HashSet<(String, Arc<str>)>,
}

/// A model with the provider that offers it.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) id: Arc<str>,
    pub(crate) provider_id: Arc<str>,
    pub(crate) provider: Arc<dyn ModelProvider>,
    pub(crate) info: Arc<ModelInfo>,
}

impl Model {
    pub(crate) fn profile(&self) -> ModelProfile {
        ModelProfile {
            provider_id: Arc::clone(&self.provider_id),
            images: if self.info.capabilities.vision {
                Images::Shown
            } else {
                Images::Unseen
            },
        }
    }

    pub(crate) fn window(&self) -> u64 {
        u64::from(self.info.context_window)
    }
}

impl Catalog {
    /// Asks all providers for the first time. Those that do not answer in time have no models
    /// until they do.
    ///
    /// # Errors
    /// `NO_MODEL_PROVIDER`; `NAME_CONFLICT` for provider and model ids; `INVALID_CONFIG` for ids
    /// that are blank and for a context window of 0.
    pub(crate) fn new(
        providers: Vec<Arc<dyn ModelProvider>>,
        runtime: &Handle,
    ) -> Result<Self, AgentError> {
        if providers.is_empty() {
            return Err(AgentError::no_model_provider());
        }
        let mut known: Vec<Provider> = Vec::with_capacity(providers.len());
        for provider in providers {
            let id: Arc<str> = contain::call(|| provider.id().into()).map_err(|panicked| {
                AgentError::invalid_config("provider", &format!("its id failed: {panicked}"))
            })?;
            if id.trim().is_empty() {
                let reason = format!("the id {id:?} of a model provider is blank");
                return Err(AgentError::invalid_config("provider", &reason));
            }
            if known.iter().any(|other| other.id == id) {
                return Err(AgentError::name_conflict("model provider", &id));
            }
            let asker = Asker::start(&id, &provider, runtime).map_err(|error| {
                AgentError::internal(format!("no thread can be started: {error}"))
            })?;
            known.push(Provider {
                id,
                provider,
                asker,
            });
        }
        let seen = Seen {
            offers: known.iter().map(|_| Arc::default()).collect(),
            clashes: HashSet::new(),
        };
        let this = Self {
            providers: known,
            seen: Mutex::new(seen),
        };
        let offers = this.ask_all();
        this.check(&offers)?;
        for (at, offer) in offers.iter().enumerate() {
            this.see(at, offer);
        }
        Ok(this)
    }

    fn check(&self, offers: &[Arc<Offer>]) -> Result<(), AgentError> {
        let mut ids = HashSet::new();
        for (provider, offer) in self.providers.iter().zip(offers) {
            for model in &offer.models {
                if let Some(flaw) = flaw_of(model) {
                    let reason = format!("a model of the provider \"{}\" {flaw}", provider.id);
                    return Err(AgentError::invalid_config("model", &reason));
                }
                if !ids.insert(&model.id) {
                    return Err(AgentError::name_conflict("model", &model.id));
                }
            }
        }
        Ok(())
    }

    fn ask_all(&self) -> Vec<Arc<Offer>> {
        let deadline = Instant::now() + ANSWER_LIMIT;
        let requests = request(&self.providers);
        let answers = self.providers.iter().zip(requests);
        answers
            .map(|(provider, request)| provider.asker.wait(request, deadline))
            .collect()
    }

    /// All models that can be used; of two with one id the one registered first. It takes half a
    /// second at most, as does [`find`](Self::find).
    pub(crate) fn entries(&self) -> Vec<ModelEntry> {
        let mut ids = HashSet::new();
        let mut entries = Vec::new();
        for (at, offer) in self.ask_all().iter().enumerate() {
            self.see(at, offer);
            let Some(provider) = self.providers.get(at) else {
                continue;
            };
            for model in usable(offer) {
                if ids.insert(model.id.clone()) {
                    entries.push(ModelEntry {
                        model: ModelInfo::clone(model),
                        provider_id: provider.id.to_string(),
                    });
                }
            }
        }
        entries
    }

    /// Finds a model by its id. Where a provider had it when it was seen last, those registered
    /// after that one are asked only if it is gone: each costs a thread switch.
    ///
    /// # Errors
    /// `MODEL_NOT_SUPPORTED`.
    pub(crate) fn find(&self, id: &str) -> Result<Model, AgentError> {
        let deadline = Instant::now() + ANSWER_LIMIT;
        let likely = self.seen_at(id).map_or(self.providers.len(), |at| at + 1);
        let found = self
            .find_among(0..likely, id, deadline)
            .or_else(|| self.find_among(likely..self.providers.len(), id, deadline));
        found.ok_or_else(|| {
            let error = AgentError::model_not_supported(id, &self.seen_ids());
            self.naming_the_silent(error)
        })
    }

    fn find_among(&self, range: Range<usize>, id: &str, deadline: Instant) -> Option<Model> {
        let providers = self.providers.get(range.clone())?;
        let requests = request(providers);
        for (at, (provider, request)) in range.zip(providers.iter().zip(requests)) {
            let offer = provider.asker.wait(request, deadline);
            self.see(at, &offer);
            if let Some(info) = usable(&offer).find(|model| model.id == id) {
                return Some(Model {
                    id: id.into(),
                    provider_id: Arc::clone(&provider.id),
                    provider: Arc::clone(&provider.provider),
                    info: Arc::clone(info),
                });
            }
        }
        None
    }

    /// Index of the first provider that had the model when it was seen last.
    fn seen_at(&self, id: &str) -> Option<usize> {
        let seen = lock(&self.seen);
        let mut offers = seen.offers.iter();
        offers.position(|offer| usable(offer).any(|model| model.id == id))
    }

    /// The ids of the models that were seen last.
    pub(crate) fn seen_ids(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        let mut known = HashSet::new();
        let models = seen.offers.iter().flat_map(|offer| usable(offer));
        models
            .filter(|model| known.insert(&model.id))
            .map(|model| model.id.clone())
            .collect()
    }

    /// Adds to an error about a missing model which providers do not answer.
    pub(crate) fn naming_the_silent(&self, mut error: AgentError) -> AgentError {
        for provider in &self.providers {
            if provider.asker.is_late() {
                let silent = format!(
                    "; the provider \"{}\" does not answer which models it has",
                    provider.id
                );
                error.message.push_str(&silent);
            }
        }
        error
    }

    /// Tells what is wrong with an offer, when it comes up.
    fn see(&self, at: usize, offer: &Arc<Offer>) {
        let mut seen = lock(&self.seen);
        let Some(known) = seen.offers.get_mut(at) else {
            return;
        };
        if Arc::ptr_eq(known, offer) {
            return;
        }
        *known = Arc::clone(offer);
        if let Some(provider) = self.providers.get(at) {
            if let Some(panicked) = &offer.panicked {
                tracing::warn!(provider = %provider.id, %panicked, "listing models failed");
            }
            for flaw in offer.models.iter().filter_map(|model| flaw_of(model)) {
                tracing::warn!(provider = %provider.id, "a model is left out: it {flaw}");
            }
        }
        let clashes = self.clashes(&seen.offers);
        for (model, provider) in clashes.difference(&seen.clashes) {
            tracing::warn!(
                %model,
                ignored = %provider,
                "two providers offer the same model id; the one registered first counts"
            );
        }
        seen.clashes = clashes;
    }

    fn clashes(&self, offers: &[Arc<Offer>]) -> HashSet<(String, Arc<str>)> {
        let mut ids = HashSet::new();
        let mut clashes = HashSet::new();
        for (provider, offer) in self.providers.iter().zip(offers) {
            for model in usable(offer) {
                if !ids.insert(&model.id) {
                    clashes.insert((model.id.clone(), Arc::clone(&provider.id)));
                }
            }
        }
        clashes
    }
}

/// Begins to ask providers, all at once.
fn request(providers: &[Provider]) -> Vec<Request> {
    let askers = providers.iter().map(|provider| &provider.asker);
    askers.map(Asker::request).collect()
}

fn usable(offer: &Offer) -> impl Iterator<Item = &Arc<ModelInfo>> {
    let models = offer.models.iter();
    models.filter(|model| flaw_of(model).is_none())
}

/// Why a model cannot be used.
fn flaw_of(model: &ModelInfo) -> Option<String> {
    if model.id.trim().is_empty() {
        Some(format!("has the id {:?}, which is blank", model.id))
    } else if model.context_window == 0 {
        Some(format!("(\"{}\") has a context window of 0", model.id))
    } else {
        None
    }
}

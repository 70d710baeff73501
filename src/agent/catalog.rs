//! Which model belongs to which provider, asked anew whenever it matters (chapter 3.1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contain;
use super::context::{Images, ModelProfile};
use super::error::AgentError;
use super::provider::{ModelInfo, ModelProvider};

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

/// The registered providers.
pub(crate) struct Catalog {
    providers: Vec<Provider>,
}

struct Provider {
    id: Arc<str>,
    provider: Arc<dyn ModelProvider>,
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
    /// # Errors
    /// `NO_MODEL_PROVIDER`, and `NAME_CONFLICT` for provider and model ids.
    pub(crate) fn new(providers: Vec<Arc<dyn ModelProvider>>) -> Result<Self, AgentError> {
        if providers.is_empty() {
            return Err(AgentError::no_model_provider());
        }
        let mut known: Vec<Provider> = Vec::with_capacity(providers.len());
        for provider in providers {
            let id: Arc<str> = contain::call(|| provider.id().into()).map_err(|panicked| {
                AgentError::invalid_config("provider", &format!("its id failed: {panicked}"))
            })?;
            if known.iter().any(|other| other.id == id) {
                return Err(AgentError::name_conflict("model provider", &id));
            }
            known.push(Provider { id, provider });
        }
        let this = Self { providers: known };
        let mut ids = std::collections::HashSet::new();
        for (_, model) in this.offered() {
            if !ids.insert(model.id.clone()) {
                return Err(AgentError::name_conflict("model", &model.id));
            }
        }
        Ok(this)
    }

    /// Every model of every provider, clashes included.
    fn offered(&self) -> impl Iterator<Item = (&Provider, ModelInfo)> {
        self.providers.iter().flat_map(|provider| {
            let models = contain::call(|| provider.provider.models()).unwrap_or_else(|panicked| {
                tracing::warn!(provider = %provider.id, %panicked, "listing models failed");
                Vec::new()
            });
            models.into_iter().map(move |model| (provider, model))
        })
    }

    /// All models; of two with one id the one registered first.
    pub(crate) fn entries(&self) -> Vec<ModelEntry> {
        let mut entries: Vec<ModelEntry> = Vec::new();
        for (provider, model) in self.offered() {
            match entries.iter().find(|entry| entry.model.id == model.id) {
                Some(first) => tracing::warn!(
                    model = %model.id,
                    kept = %first.provider_id,
                    ignored = %provider.id,
                    "two providers offer the same model id"
                ),
                None => entries.push(ModelEntry {
                    model,
                    provider_id: provider.id.to_string(),
                }),
            }
        }
        entries
    }

    /// Finds a model by its id.
    ///
    /// # Errors
    /// `MODEL_NOT_SUPPORTED`.
    pub(crate) fn find(&self, id: &str) -> Result<Model, AgentError> {
        let found = self.offered().find(|(_, model)| model.id == id);
        match found {
            Some((provider, info)) => Ok(Model {
                id: id.into(),
                provider_id: Arc::clone(&provider.id),
                provider: Arc::clone(&provider.provider),
                info: Arc::new(info),
            }),
            None => Err(AgentError::model_not_supported(id, &self.ids())),
        }
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.entries()
            .into_iter()
            .map(|entry| entry.model.id)
            .collect()
    }
}

//! The vendors that are reached with a key: OpenAI, Anthropic, Gemini, DeepSeek, OpenRouter.
//!
//! The crate `genai` speaks their protocols. What it cannot do, and what becomes of it here:
//! - It tells parallel calls apart by their index alone. Calls that a server gives the same
//!   index are taken apart again where each has an id of its own (`calls`); without ids they
//!   stay one call, whose arguments the agent refuses and shows to the model. A call without
//!   an index is not seen at all, which is reported as an error.
//! - Where a server ends lines with CR LF, a packet that ends between the two cuts an event in
//!   half. For Anthropic's named events that is noticed, and is an error instead of a gap; for
//!   all others it does no harm.
//! - An answer of status 200 that is no stream of events, such as an error page, cannot be
//!   told from a connection that ended early: its text is lost, and it is tried again.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    Capabilities, ChatRequest, ChatStream, ModelInfo, ModelProvider, ProviderError,
    ProviderErrorKind,
};

use super::catalog::Vendor;
use super::{Line, Service, catalog, failure};
use crate::settings::Settings;

/// The models of one vendor. There are none as long as there is no key.
pub struct GenaiProvider {
    vendor: &'static Vendor,
    service: Service,
    settings: Arc<Settings>,
    line: Line,
    /// What the vendor itself lists, once it was asked. Written by [`discover`](Self::discover).
    listed: Mutex<Option<Vec<ModelInfo>>>,
}

impl GenaiProvider {
    /// The provider of a vendor. Keys are looked up in `settings` at every use.
    #[must_use]
    pub fn new(vendor: &'static Vendor, settings: Arc<Settings>, line: Line) -> Self {
        let endpoint = settings
            .endpoint(vendor.id)
            .unwrap_or_else(|| vendor.endpoint.to_owned());
        Self {
            vendor,
            service: Service {
                name: vendor.name.to_owned(),
                adapter: vendor.adapter,
                endpoint,
            },
            settings,
            line,
            listed: Mutex::new(None),
        }
    }

    /// The vendor's id.
    #[must_use]
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    /// Asks the vendor which models it has. Until it answers, or if it does not, a short list
    /// of well-known ones is offered.
    pub async fn discover(&self) {
        let Some(key) = self.settings.key(self.vendor.id) else {
            *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return;
        };
        match self.service.model_names(&self.line, key.reveal()).await {
            Ok(names) => {
                let models = catalog::chat_models(self.vendor, &names);
                if !models.is_empty() {
                    *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(models);
                }
            }
            Err(error) => {
                tracing::warn!(provider = self.vendor.id, kind = ?error.kind, "models could not be listed")
            }
        }
    }

    fn capabilities(&self, model_id: &str) -> Capabilities {
        let models = self.models();
        let known = models.iter().find(|model| model.id == model_id);
        known.map(|model| model.capabilities).unwrap_or_default()
    }
}

#[async_trait]
impl ModelProvider for GenaiProvider {
    fn id(&self) -> &str {
        self.vendor.id
    }

    fn models(&self) -> Vec<ModelInfo> {
        if self.settings.key(self.vendor.id).is_none() {
            return Vec::new();
        }
        let listed = self
            .listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        listed.unwrap_or_else(|| catalog::well_known(self.vendor))
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let key = self.settings.key(self.vendor.id).ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::Auth,
                failure::missing_key(self.vendor.name),
            )
        })?;
        let model = catalog::wire_name(self.vendor, &request.model_id);
        let can = self.capabilities(&request.model_id);
        self.service
            .chat(&self.line, key.reveal(), model, can, &request, cancel)
            .await
    }
}

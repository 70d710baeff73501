//! One model server as a provider of the agent.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    Capabilities, ChatRequest, ChatStream, ModelInfo, ModelProvider, ProviderError,
    ProviderErrorKind,
};

use crate::answer::Answer;
use crate::catalog::{self, Listing};
use crate::endpoint::Endpoint;
use crate::http::{self, Http};
use crate::keys::{Key, KeySource, Scrubber};
use crate::line::{self, Asker, Line, PATIENCE};
use crate::wire::Target;
use crate::{failure, local};

/// The same for a server of this computer.
const NEAR_PATIENCE: Duration = Duration::from_secs(2);
/// How long a source of keys may think: a keyring asks its user to unlock it.
const KEY_PATIENCE: Duration = Duration::from_secs(60);

/// A server and what is known of it.
pub(crate) struct Server {
    endpoint: Endpoint,
    keys: Arc<dyn KeySource>,
    http: Http,
    /// `None` where the address cannot be one.
    base: Option<Url>,
    /// Looks go here, since `models` may be called from any thread.
    runtime: OnceLock<Handle>,
}

impl Server {
    pub(crate) fn new(endpoint: Endpoint, keys: Arc<dyn KeySource>, http: Http) -> Self {
        let server = Self {
            base: http::base(&endpoint.address, endpoint.vendor.protocol),
            keys: endpoint.keys.clone().unwrap_or(keys),
            endpoint,
            http,
            runtime: OnceLock::new(),
        };
        server.note_runtime();
        server
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.endpoint.id
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn note_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(handle) = Handle::try_current()
        {
            // Another thread may have been first, with a handle as good as this one.
            let _ = self.runtime.set(handle);
        }
    }

    pub(crate) fn target(&self, name: &str, reasoning: bool) -> Target {
        let address = self.base.as_ref().map_or_else(
            // What a person wrote may hold a password, but it is no URL.
            || crate::keys::bare(&self.endpoint.address).into(),
            |base| http::shown(base).into(),
        );
        Target {
            provider: self.endpoint.id.clone(),
            vendor: if self.endpoint.is_known_vendor {
                self.endpoint.vendor.id.into()
            } else {
                self.endpoint.id.clone()
            },
            service: self.endpoint.name.clone(),
            address,
            model: name.into(),
            family: catalog::family(name).into(),
            reasoning,
            max_output: catalog::max_output(name),
            quirks: self.endpoint.vendor.quirks,
        }
    }

    fn capabilities(&self, model_id: &str) -> Capabilities {
        let named = self
            .endpoint
            .models
            .iter()
            .find(|model| model.id == model_id);
        let listed = || self.endpoint.state.capabilities(model_id);
        let known =
            || catalog::model(&self.endpoint, self.endpoint.wire_name(model_id)).capabilities;
        named
            .map(|model| model.capabilities)
            .or_else(listed)
            .unwrap_or_else(known)
    }

    /// The key, if there is one.
    ///
    /// # Errors
    /// `Auth`: there must be one, or it cannot be sent.
    async fn key(&self, target: &Target) -> Result<Option<Key>, ProviderError> {
        if self.endpoint.vendor.needs_no_key && self.endpoint.keys.is_none() {
            return Ok(None);
        }
        let (keys, id) = (self.keys.clone(), self.endpoint.id.clone());
        // A keyring may wait for its user, a closure may read a file.
        let asked = tokio::task::spawn_blocking(move || keys.key(&id));
        let key = match tokio::time::timeout(KEY_PATIENCE, asked).await {
            Ok(Ok(key)) => key.filter(|key| !key.is_empty()),
            // It panicked or it waits for ever: there is no key.
            Ok(Err(_)) | Err(_) => None,
        };
        self.endpoint.state.set_has_key(key.is_some());
        match key {
            Some(key) if key.is_sound() => Ok(Some(key)),
            Some(_) => Err(failure::broken_key(target)),
            None if self.endpoint.is_known_vendor => Err(failure::no_key(target)),
            None => Ok(None),
        }
    }

    fn http(&self, target: &Target) -> Result<(&Http, &Url), ProviderError> {
        let base = self
            .base
            .as_ref()
            .ok_or_else(|| failure::bad_address(target))?;
        Ok((&self.http, base))
    }

    fn headers(
        &self,
        target: &Target,
        key: Option<&Key>,
        wire: &[(&'static str, String)],
    ) -> Result<HeaderMap, ProviderError> {
        let made = http::headers(self.endpoint.vendor.auth, key, &self.endpoint.headers, wire);
        made.ok_or_else(|| failure::broken_key(target))
    }

    pub(crate) async fn begin(
        &self,
        request: &ChatRequest,
    ) -> Result<Answer, (Scrubber, ProviderError)> {
        let can = self.capabilities(&request.model_id);
        let target = self.target(self.endpoint.wire_name(&request.model_id), can.reasoning);
        let unscrubbed = |error| (Scrubber::default(), error);
        let key = self.key(&target).await.map_err(unscrubbed)?;
        let scrubber = Scrubber::new(key.clone());
        let begun = async {
            let protocol = self.endpoint.vendor.protocol;
            let outgoing = protocol.request(request, &target)?;
            let (http, base) = self.http(&target)?;
            let line = Line {
                http: http.clone(),
                url: http::join(base, &outgoing.path),
                headers: self.headers(&target, key.as_ref(), &outgoing.headers)?,
            };
            let response = line.send(&target, outgoing.body.clone()).await?;
            let decoder = protocol.decoder(&target);
            Ok(Answer::new(
                target,
                decoder,
                scrubber.clone(),
                line,
                outgoing.body,
                response,
            ))
        };
        begun.await.map_err(|error| (scrubber, error))
    }

    /// Asks the server what it has and keeps the answer.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the key, or has no list.
    pub(crate) async fn look(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let found = self.list().await;
        let lifetime = self.endpoint.lifetime();
        let gone = match &found {
            Ok(_) => false,
            Err(error) => {
                self.endpoint.vendor.needs_no_key || error.kind == ProviderErrorKind::Auth
            }
        };
        self.endpoint
            .state
            .keep(found.as_ref().ok().cloned(), lifetime);
        if gone {
            self.endpoint.state.forget();
        }
        found
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let target = self.target("", false);
        let key = self.key(&target).await?;
        let limit = if self.endpoint.vendor.needs_no_key {
            NEAR_PATIENCE
        } else {
            PATIENCE
        };
        let listed = async {
            let (http, base) = self.http(&target)?;
            let headers = self.headers(
                &target,
                key.as_ref(),
                &self.endpoint.vendor.protocol.list_headers(),
            )?;
            match self.endpoint.vendor.listing {
                Listing::Ollama | Listing::LmStudio | Listing::LlamaCpp => {
                    let ask = Asker {
                        http,
                        base,
                        headers,
                        limit,
                    };
                    let found =
                        tokio::time::timeout(PATIENCE, local::models(&self.endpoint, &ask)).await;
                    let found = found.map_err(|_| failure::silent(&target))?;
                    return found.ok_or_else(|| failure::not_running(&target));
                }
                _ => {}
            }
            let url = match self.endpoint.vendor.listing {
                Listing::GitHub => http::join(&root(base), "catalog/models"),
                listing => http::join(base, listing.path()),
            };
            let body = line::get(http, &target, url, headers, limit).await?;
            catalog::read(&self.endpoint, &body).ok_or_else(|| failure::page(&target))
        };
        listed
            .await
            .map_err(|error| Scrubber::new(key).error(error))
    }

    /// Asks about the key where the list of models is public.
    ///
    /// # Errors
    /// The server refuses the key or cannot be reached.
    pub(crate) async fn prove_key(&self) -> Result<(), ProviderError> {
        let Some(path) = self.endpoint.vendor.check_path else {
            return Ok(());
        };
        let target = self.target("", false);
        let key = self.key(&target).await?;
        let proven = async {
            let (http, base) = self.http(&target)?;
            let headers = self.headers(&target, key.as_ref(), &[])?;
            line::get(http, &target, http::join(base, path), headers, PATIENCE).await
        };
        proven
            .await
            .map(drop)
            .map_err(|error| Scrubber::new(key).error(error))
    }

    /// Whether models can be offered: those of a vendor without a key cannot be used.
    fn is_open(&self) -> bool {
        let state = &self.endpoint.state;
        if self.endpoint.vendor.needs_no_key || !self.endpoint.is_known_vendor {
            return true;
        }
        if !self.keys.is_instant() {
            return state.has_key().unwrap_or(true);
        }
        let has_key = self
            .keys
            .key(&self.endpoint.id)
            .is_some_and(|key| !key.is_empty());
        state.set_has_key(has_key);
        has_key
    }
}

/// The address of a server without a path.
fn root(base: &Url) -> Url {
    let mut root = base.clone();
    root.set_path("");
    root
}

/// A server that can be shared with its own looks.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Server>);

#[async_trait]
impl ModelProvider for Shared {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn models(&self) -> Vec<ModelInfo> {
        let server = &self.0;
        server.note_runtime();
        let endpoint = &server.endpoint;
        let is_open = server.is_open();
        let lifetime = endpoint.lifetime();
        if is_open
            && endpoint.is_listed()
            && let Some(runtime) = server.runtime.get()
            && endpoint.state.take_due(lifetime)
        {
            let server = server.clone();
            runtime.spawn(async move {
                if let Err(error) = server.look().await {
                    tracing::debug!(provider = &**server.id(), kind = ?error.kind, "models could not be listed");
                }
            });
        }
        match (is_open, endpoint.is_listed()) {
            (false, _) => Vec::new(),
            (true, false) => endpoint.models.clone(),
            (true, true) => endpoint
                .state
                .listed()
                .unwrap_or_else(|| catalog::well_known(endpoint)),
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        // The agent drops this future and the stream when it cancels, which ends the request.
        self.0.note_runtime();
        match self.0.begin(&request).await {
            Ok(answer) => Ok(answer.into_stream()),
            Err((scrubber, error)) => Err(scrubber.error(error)),
        }
    }
}

//! All servers of an app.

use std::fmt;
use std::sync::Arc;

use youyou_agent::{ModelInfo, ModelProvider, ProviderError, ProviderErrorKind};

use crate::endpoint::Endpoint;
use crate::http::Http;
use crate::keys::{self, Environment, KeySource};
use crate::local;
use crate::server::{Server, Shared};
use crate::vendor::VENDORS;

/// The model servers of an app, each a [`ModelProvider`].
///
/// A vendor's models are offered while there is a key for it, a local server's while it runs;
/// both are looked for in the background while the app runs.
///
/// # Examples
/// ```
/// use youyou_agent_providers::{Endpoint, Providers};
///
/// let providers = Providers::from_env()
///     .endpoint(Endpoint::openai_compatible("my-server", "http://127.0.0.1:8000/v1"))
///     .detect_local_servers();
/// let ids: Vec<String> = providers.into_iter().map(|provider| provider.id().to_owned()).collect();
/// assert_eq!(ids.first().map(String::as_str), Some("openai"));
/// assert!(ids.contains(&"my-server".to_owned()) && ids.contains(&"ollama".to_owned()));
/// # use youyou_agent::ModelProvider;
/// ```
#[derive(Clone)]
pub struct Providers {
    endpoints: Vec<Endpoint>,
    keys: Arc<dyn KeySource>,
    http: Http,
}

impl Default for Providers {
    fn default() -> Self {
        Self::new()
    }
}

impl Providers {
    /// No servers; keys come from the environment.
    #[must_use]
    pub fn new() -> Self {
        Self {
            endpoints: Vec::new(),
            keys: Arc::new(Environment),
            http: Http::default(),
        }
    }

    /// All vendors of the table ([`Endpoint::vendors`]), with keys from the environment
    /// (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, `OPENROUTER_API_KEY` and so on),
    /// and at the addresses that `OPENAI_BASE_URL` and its like name.
    #[must_use]
    pub fn from_env() -> Self {
        VENDORS.iter().fold(Self::new(), |all, vendor| {
            let endpoint = Endpoint::known(vendor);
            let address = vendor.address_variable.and_then(keys::variable);
            all.endpoint(match address {
                Some(address) => endpoint.address(address),
                None => endpoint,
            })
        })
    }

    /// All vendors of the table, with keys from a source of the app's own.
    #[must_use]
    pub fn with_keys(keys: impl KeySource) -> Self {
        let all = Self::new().keys(keys);
        VENDORS
            .iter()
            .fold(all, |all, vendor| all.endpoint(Endpoint::known(vendor)))
    }

    /// Sets where keys come from, for all servers that have no source of their own.
    #[must_use]
    pub fn keys(mut self, keys: impl KeySource) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// Adds a server, in place of one with the same id.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        match self
            .endpoints
            .iter_mut()
            .find(|known| known.id == endpoint.id)
        {
            Some(known) => *known = endpoint,
            None => self.endpoints.push(endpoint),
        }
        self
    }

    /// The servers, in the order in which they are offered: what a settings dialog shows.
    ///
    /// # Examples
    /// ```
    /// use youyou_agent_providers::Providers;
    ///
    /// let providers = Providers::with_keys(|_: &str| None).detect_local_servers();
    /// let (with_key, without): (Vec<_>, Vec<_>) =
    ///     providers.endpoints().partition(|server| server.needs_key());
    /// assert_eq!(with_key[0].display_name(), "OpenAI");
    /// assert_eq!(with_key[0].shown_address(), "https://api.openai.com/v1");
    /// assert_eq!(without.last().map(|server| server.id()), Some("vllm"));
    /// ```
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter()
    }

    /// Looks for model servers on this computer while the app runs: Ollama (at `OLLAMA_HOST`,
    /// where it is set), LM Studio, llama.cpp and vLLM at their usual ports. Ids of their models
    /// carry the server's in front (`ollama:qwen3`).
    #[must_use]
    pub fn detect_local_servers(self) -> Self {
        local::usual().fold(self, Self::endpoint)
    }

    /// Trusts a certificate beside those of the system, in PEM form: that of a company's proxy,
    /// for instance.
    #[must_use]
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        let mut all = self.http.certificates().to_vec();
        all.push(pem.into());
        self.http = Http::new(all);
        self
    }

    /// Asks a server whether its key and its address work, for the "Test" of a settings dialog.
    /// Returns the models that it offers. Takes 20 seconds at most, once there is a key.
    ///
    /// # Errors
    /// Why it does not work, in words for a person; `InvalidRequest` if there is no server with
    /// this id.
    pub async fn check(&self, id: &str) -> Result<Vec<ModelInfo>, ProviderError> {
        let found = self
            .servers()
            .into_iter()
            .find(|server| **server.id() == *id);
        let server = found.ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::InvalidRequest,
                format!("there is no model server named {id}"),
            )
        })?;
        server.check().await
    }

    /// Asks all servers what they have and waits for them, 20 seconds at most. Those that do not
    /// answer offer what they offered before. After it, models that only a server itself can
    /// name are there when an agent is built.
    pub async fn refresh(&self) {
        let servers = self.servers();
        let looks = servers.iter().map(|server| server.look());
        for (server, found) in servers
            .iter()
            .zip(futures_util::future::join_all(looks).await)
        {
            if let Err(error) = found {
                tracing::debug!(provider = &**server.id(), kind = ?error.kind, "models could not be listed");
            }
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        let server = |endpoint: &Endpoint| {
            Arc::new(Server::new(
                endpoint.clone(),
                self.keys.clone(),
                self.http.clone(),
            ))
        };
        self.endpoints.iter().map(server).collect()
    }
}

impl IntoIterator for Providers {
    type Item = Arc<dyn ModelProvider>;
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        (&self).into_iter()
    }
}

impl IntoIterator for &Providers {
    type Item = Arc<dyn ModelProvider>;
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        let shared = |server| Arc::new(Shared(server)) as Arc<dyn ModelProvider>;
        let all: Vec<_> = self.servers().into_iter().map(shared).collect();
        all.into_iter()
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Providers")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

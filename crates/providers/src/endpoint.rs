//! A model server as an app names it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use youyou_agent::ModelInfo;

use crate::catalog::{self, Listing, State};
use crate::http;
use crate::keys::{self, Key, KeySource};
use crate::vendor::{self, Vendor};
use crate::wire::Protocol;

/// How a server is told the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of its own.
    Header(&'static str),
}

/// A model server: where it is, what it speaks, where its key comes from.
///
/// The address may be written as people have it: blanks around it, slashes at its end and the
/// path of a call (`/chat/completions`) are taken off, and `localhost:8000/v1` is HTTP.
///
/// # Examples
/// ```
/// use youyou_agent::{Capabilities, ModelInfo};
/// use youyou_agent_providers::{Endpoint, Providers};
///
/// let own = Endpoint::openai_compatible("my-server", "http://127.0.0.1:8000/v1")
///     .named("My server")
///     .key("secret")
///     .model(ModelInfo::new("qwen3", "Qwen 3", 32_768, Capabilities::default()));
/// let providers = Providers::new().endpoint(own);
/// # let _ = providers;
/// ```
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) address: Arc<str>,
    /// The entry of the table, or what stands for one.
    pub(crate) vendor: Vendor,
    pub(crate) is_known_vendor: bool,
    /// In place of the keys of all.
    pub(crate) keys: Option<Arc<dyn KeySource>>,
    pub(crate) headers: Vec<(Arc<str>, Key)>,
    /// In place of what the server lists.
    pub(crate) models: Vec<ModelInfo>,
    /// What was found out so far; clones share it.
    pub(crate) state: Arc<State>,
}

impl Endpoint {
    /// A server that speaks OpenAI's Chat Completions: most of them do. Its address is what
    /// `/chat/completions` is put behind, for instance `http://127.0.0.1:8000/v1`.
    pub fn openai_compatible(id: impl Into<Arc<str>>, address: impl AsRef<str>) -> Self {
        Self::own(id.into(), address.as_ref(), vendor::own(Protocol::Chat))
    }

    /// A server that speaks OpenAI's Responses.
    pub fn openai_responses(id: impl Into<Arc<str>>, address: impl AsRef<str>) -> Self {
        Self::own(
            id.into(),
            address.as_ref(),
            vendor::own(Protocol::Responses),
        )
    }

    /// A server that speaks Anthropic's Messages. `/v1` is put behind an address without it, as
    /// Anthropic's own programs do.
    pub fn anthropic_compatible(id: impl Into<Arc<str>>, address: impl AsRef<str>) -> Self {
        Self::own(
            id.into(),
            address.as_ref(),
            vendor::own(Protocol::Anthropic),
        )
    }

    /// A server that speaks Gemini's `generateContent`; the address ends with the version.
    pub fn gemini_compatible(id: impl Into<Arc<str>>, address: impl AsRef<str>) -> Self {
        Self::own(id.into(), address.as_ref(), vendor::own(Protocol::Gemini))
    }

    /// Azure OpenAI: `https://{resource}.openai.azure.com`. Models are named by
    /// [`model`](Self::model), with the names of their deployments.
    pub fn azure(id: impl Into<Arc<str>>, resource: impl AsRef<str>) -> Self {
        let resource = keys::bare(resource.as_ref()).trim_end_matches('/');
        let address = if resource.contains("/openai") {
            resource.to_owned()
        } else {
            format!("{resource}/openai/v1")
        };
        let mut azure = Self::own(id.into(), &address, vendor::AZURE);
        azure.name = "Azure OpenAI".into();
        azure
    }

    /// Amazon Bedrock in a region, with one of its API keys. It is spoken to in OpenAI's form.
    pub fn bedrock(id: impl Into<Arc<str>>, region: impl AsRef<str>) -> Self {
        let address = format!(
            "https://bedrock-runtime.{}.amazonaws.com/openai/v1",
            region.as_ref()
        );
        let mut bedrock = Self::own(id.into(), &address, vendor::BEDROCK);
        bedrock.name = "Amazon Bedrock".into();
        bedrock
    }

    /// Gemini on Google's Vertex AI. Its key is an access token that lives for an hour, so give
    /// a closure that gets a fresh one to [`keys`](Self::keys).
    pub fn vertex(
        id: impl Into<Arc<str>>,
        project: impl AsRef<str>,
        location: impl AsRef<str>,
    ) -> Self {
        let (project, location) = (project.as_ref(), location.as_ref());
        let host = match location {
            "global" => "aiplatform.googleapis.com".to_owned(),
            region => format!("{region}-aiplatform.googleapis.com"),
        };
        let address =
            format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/google");
        let mut vertex = Self::own(id.into(), &address, vendor::VERTEX);
        vertex.name = "Google Vertex AI".into();
        vertex
    }

    /// A local server at another address than its usual one: `ollama`, `lmstudio`, `llamacpp`,
    /// `vllm`. `None` for any other.
    pub fn local_server(id: &str, address: impl AsRef<str>) -> Option<Self> {
        crate::local::named(id, address.as_ref())
    }

    /// A vendor of the table, by its id: `openai`, `anthropic`, `gemini`, `deepseek`, `xai`,
    /// `mistral`, `moonshot`, `zai`, `minimax`, `dashscope`, `groq`, `cerebras`, `together`,
    /// `fireworks`, `siliconflow`, `huggingface`, `nvidia`, `github`, `openrouter`. `None` for
    /// any other.
    #[must_use]
    pub fn vendor(id: &str) -> Option<Self> {
        vendor::find(id).map(Self::known)
    }

    /// The ids of all vendors of the table, in the order in which they are offered.
    pub fn vendors() -> impl Iterator<Item = &'static str> {
        vendor::VENDORS.iter().map(|vendor| vendor.id)
    }

    /// Its provider's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its name for people.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Where requests go, to be shown: without a password or a query, which may hold a secret.
    #[must_use]
    pub fn shown_address(&self) -> String {
        // What is no URL can be shown as it was written: it is corrected by looking at it.
        http::base(&self.address, self.vendor.protocol).map_or_else(
            || keys::bare(&self.address).to_owned(),
            |base| http::shown(&base),
        )
    }

    /// Whether it offers nothing without a key, as all vendors of the table do. Another server
    /// may take a key, and is asked without one if there is none.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        self.is_known_vendor && !self.vendor.needs_no_key
    }

    /// The environment variables that may hold the key of a vendor of the table; the first that
    /// is set counts. For an app that keeps them from the programs it starts, for instance.
    #[must_use]
    pub fn key_variables(&self) -> &'static [&'static str] {
        self.vendor.key_variables
    }

    /// The environment variable that may name another address of a vendor of the table.
    #[must_use]
    pub fn address_variable(&self) -> Option<&'static str> {
        self.vendor.address_variable
    }

    /// Gives it a name for people; until then it is its id.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets another address, for instance that of a proxy.
    #[must_use]
    pub fn address(mut self, address: impl AsRef<str>) -> Self {
        self.address = address.as_ref().into();
        self
    }

    /// Sets the key. Without one, requests go out without.
    #[must_use]
    pub fn key(self, key: impl AsRef<str>) -> Self {
        let key = Key::new(key);
        self.keys(move |_: &str| Some(key.reveal().to_owned()))
    }

    /// Sets where its key comes from, in place of the source of all providers.
    #[must_use]
    pub fn keys(mut self, keys: impl KeySource) -> Self {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// Adds a header to each request. Its value is treated as a secret, like a key.
    #[must_use]
    pub fn header(mut self, name: impl Into<Arc<str>>, value: impl AsRef<str>) -> Self {
        self.headers.push((name.into(), Key::new(value)));
        self
    }

    /// Names a model. Once one is named, what the server lists is not asked for.
    #[must_use]
    pub fn model(mut self, model: ModelInfo) -> Self {
        self.models.push(model);
        self
    }

    /// Puts the provider's id in front of the ids of its models (`my-server:qwen3`), for a
    /// server whose models are named like another's. Gateways and local servers have it anyway.
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.vendor.is_gateway = true;
        self
    }

    pub(crate) fn known(vendor: &'static Vendor) -> Self {
        Self {
            is_known_vendor: true,
            name: vendor.name.into(),
            ..Self::own(vendor.id.into(), vendor.address, *vendor)
        }
    }

    pub(crate) fn own(id: Arc<str>, address: &str, vendor: Vendor) -> Self {
        Self {
            name: id.clone(),
            id,
            address: address.into(),
            vendor,
            is_known_vendor: false,
            keys: None,
            headers: Vec::new(),
            models: Vec::new(),
            state: Arc::default(),
        }
    }

    /// The server's own name of a model.
    pub(crate) fn wire_name<'a>(&self, model_id: &'a str) -> &'a str {
        let own = model_id
            .strip_prefix(&*self.id)
            .and_then(|rest| rest.strip_prefix(':'));
        own.filter(|_| self.vendor.is_gateway).unwrap_or(model_id)
    }

    /// The agent's id of a model.
    pub(crate) fn model_id(&self, name: &str) -> String {
        if self.vendor.is_gateway {
            format!("{}:{name}", self.id)
        } else {
            name.to_owned()
        }
    }

    /// How long its list holds.
    pub(crate) fn lifetime(&self) -> Duration {
        if self.vendor.needs_no_key {
            catalog::NEAR_LIFETIME
        } else {
            catalog::LIFETIME
        }
    }

    /// Whether the list of the server is asked for.
    pub(crate) fn is_listed(&self) -> bool {
        self.models.is_empty() && self.vendor.listing != Listing::None
    }
}

/// Without keys and without values of headers.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("id", &self.id)
            .field("protocol", &self.vendor.protocol)
            .field("models", &self.models.len())
            .finish_non_exhaustive()
    }
}

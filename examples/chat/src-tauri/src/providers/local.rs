//! Model servers on this computer: Ollama, LM Studio and llama.cpp.
//!
//! They are looked for when models are listed, at most every ten seconds and never waited
//! for: a server that was just started appears with the next look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::genai::adapter::AdapterKind;
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    Capabilities, ChatRequest, ChatStream, ModelInfo, ModelProvider, ProviderError,
};

use super::{Line, Service};

/// How often a server is looked for.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long an answer is waited for: it is this computer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The window where a server does not tell: small, so that nothing is cut silently.
const UNKNOWN_WINDOW: u32 = 8_192;

/// How a server tells about its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/api/tags`, `/api/show`, `/api/ps`.
    Ollama,
    /// `/api/v0/models`.
    LmStudio,
    /// `/v1/models`, `/props`.
    LlamaCpp,
}

/// A server that may run on this computer.
#[derive(Debug, Clone)]
pub struct LocalServer {
    /// Id of its provider.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Scheme, host and port.
    pub address: String,
    /// The environment variable that may name another address.
    pub address_variable: &'static str,
    /// How it tells about its models.
    pub dialect: Dialect,
}

impl LocalServer {
    /// The three well-known servers on their usual ports.
    #[must_use]
    pub fn well_known() -> [Self; 3] {
        let server = |id, name, port: u16, address_variable, dialect| Self {
            id,
            name,
            address: format!("http://127.0.0.1:{port}"),
            address_variable,
            dialect,
        };
        [
            server(
                "ollama",
                "Ollama",
                11434,
                "YOUYOU_CHAT_OLLAMA",
                Dialect::Ollama,
            ),
            server(
                "lmstudio",
                "LM Studio",
                1234,
                "YOUYOU_CHAT_LMSTUDIO",
                Dialect::LmStudio,
            ),
            server(
                "llamacpp",
                "llama.cpp",
                8080,
                "YOUYOU_CHAT_LLAMACPP",
                Dialect::LlamaCpp,
            ),
        ]
    }
}

/// The models of one local server. There are none while it does not run.
#[derive(Clone)]
pub struct LocalProvider(Arc<Inner>);

struct Inner {
    server: LocalServer,
    service: Service,
    line: Line,
    /// Looks go here, since `models` may be called from any thread.
    runtime: Option<Handle>,
    /// Written by [`LocalProvider::look`].
    found: Mutex<Vec<ModelInfo>>,
    /// Written when a look begins.
    looked: Mutex<Option<Instant>>,
}

impl LocalProvider {
    /// The provider of a server.
    #[must_use]
    pub fn new(server: LocalServer, line: Line, runtime: Option<Handle>) -> Self {
        let service = Service {
            name: server.name.to_owned(),
            adapter: AdapterKind::OpenAI,
            endpoint: format!("{}/v1/", server.address),
        };
        Self(Arc::new(Inner {
            server,
            service,
            line,
            runtime,
            found: Mutex::default(),
            looked: Mutex::default(),
        }))
    }

    /// The server this provider is for.
    #[must_use]
    pub fn server(&self) -> &LocalServer {
        &self.0.server
    }

    /// Asks the server what it has. A server that does not answer has nothing.
    pub async fn look(&self) {
        *self.0.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let found = self.0.models().await.unwrap_or_default();
        *self.0.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    fn capabilities(&self, model_id: &str) -> Capabilities {
        let found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = found.iter().find(|model| model.id == model_id);
        known.map(|model| model.capabilities).unwrap_or_default()
    }

    fn is_due(&self) -> bool {
        let looked = self.0.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.is_none_or(|looked| looked.elapsed() >= INTERVAL)
    }
}

#[async_trait]
impl ModelProvider for LocalProvider {
    fn id(&self) -> &str {
        self.0.server.id
    }

    fn models(&self) -> Vec<ModelInfo> {
        if let Some(runtime) = self.0.runtime.as_ref().filter(|_| self.is_due()) {
            let this = self.clone();
            runtime.spawn(async move { this.look().await });
        }
        self.0
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let can = self.capabilities(&request.model_id);
        let name = self.0.wire_name(&request.model_id);
        // These servers take any key.
        self.0
            .service
            .chat(&self.0.line, "local", name, can, &request, cancel)
            .await
    }
}

impl Inner {
    /// Ids carry the provider's id, because the servers share names.
    fn model(&self, name: &str, window: u32, can: Capabilities) -> ModelInfo {
        let shown = name
            .rsplit('/')
            .next()
            .unwrap_or(name)
            .trim_end_matches(".gguf");
        ModelInfo::new(format!("{}:{name}", self.server.id), shown, window, can)
    }

    fn wire_name<'a>(&self, model_id: &'a str) -> &'a str {
        model_id
            .strip_prefix(self.server.id)
            .and_then(|rest| rest.strip_prefix(':'))
            .unwrap_or(model_id)
    }

    async fn models(&self) -> Option<Vec<ModelInfo>> {
        match self.server.dialect {
            Dialect::Ollama => self.ollama().await,
            Dialect::LmStudio => self.lm_studio().await,
            Dialect::LlamaCpp => self.llama_cpp().await,
        }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let request = self.line.http.get(format!("{}{path}", self.server.address));
        answer(request).await
    }

    async fn ollama(&self) -> Option<Vec<ModelInfo>> {
        let tags = self.get("/api/tags").await?;
        let loaded = self.get("/api/ps").await.unwrap_or_default();
        let windows: HashMap<&str, u32> = items(&loaded, "models")
            .filter_map(|model| Some((text(model, "name")?, number(model.get("context_length"))?)))
            .collect();
        let mut models = Vec::new();
        for name in items(&tags, "models").filter_map(|model| text(model, "name")) {
            let ask = self
                .line
                .http
                .post(format!("{}/api/show", self.server.address))
                .body(json!({ "model": name }).to_string());
            let about = answer(ask).await.unwrap_or_default();
            let abilities: Vec<&str> = items(&about, "capabilities")
                .filter_map(Value::as_str)
                .collect();
            if abilities.contains(&"embedding") {
                continue;
            }
            let can = Capabilities {
                // A model whose abilities are not told may have tools; Ollama says so if not.
                tool_use: abilities.is_empty() || abilities.contains(&"tools"),
                vision: abilities.contains(&"vision"),
                reasoning: abilities.contains(&"thinking"),
                ..Capabilities::default()
            };
            let window = windows.get(name).copied().unwrap_or(UNKNOWN_WINDOW);
            models.push(self.model(name, window, can));
        }
        Some(models)
    }

    async fn lm_studio(&self) -> Option<Vec<ModelInfo>> {
        let list = self.get("/api/v0/models").await?;
        let models = items(&list, "data").filter_map(|model| {
            let kind = text(model, "type")?;
            let window = number(model.get("loaded_context_length")).unwrap_or(UNKNOWN_WINDOW);
            let tools = items(model, "capabilities").any(|ability| ability == "tool_use");
            let can = Capabilities {
                tool_use: tools,
                vision: kind == "vlm",
                ..Capabilities::default()
            };
            (kind == "llm" || kind == "vlm")
                .then(|| self.model(text(model, "id").unwrap_or_default(), window, can))
        });
        Some(models.collect())
    }

    async fn llama_cpp(&self) -> Option<Vec<ModelInfo>> {
        let list = self.get("/v1/models").await?;
        let props = self.get("/props").await.unwrap_or_default();
        let window =
            number(props.pointer("/default_generation_settings/n_ctx")).unwrap_or(UNKNOWN_WINDOW);
        let can = Capabilities {
            vision: props
                .pointer("/modalities/vision")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            // Told by newer servers only; without tools they refuse a request that has some.
            tool_use: props
                .pointer("/chat_template_caps/supports_tools")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            ..Capabilities::default()
        };
        let names = items(&list, "data").filter_map(|model| text(model, "id"));
        Some(names.map(|name| self.model(name, window, can)).collect())
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Option<Value> {
    let response = request
        .timeout(PATIENCE)
        .send()
        .await
        .ok()?
        .error_for_status()
        .ok()?;
    serde_json::from_str(&response.text().await.ok()?).ok()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn number(value: Option<&Value>) -> Option<u32> {
    value
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0)
}

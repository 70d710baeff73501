//! A connection to one model server, whoever offers it.

use std::time::Duration;

use ::genai::adapter::AdapterKind;
use ::genai::resolver::{AuthData, Endpoint, ProviderConfig};
use ::genai::{Client, ModelIden, ServiceTarget};
use tokio_util::sync::CancellationToken;
use youyou_agent::{Capabilities, ChatRequest, ChatStream, ProviderError};

use super::response::{EndMarker, Torn};
use super::{failure, request, response};

/// Where a model server is and what it speaks.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name for people.
    pub name: String,
    /// The protocol.
    pub adapter: AdapterKind,
    /// The base address, ending with a slash.
    pub endpoint: String,
}

/// The way to servers: connections are shared by all that hold a copy.
#[derive(Debug, Clone)]
pub struct Line {
    /// For model calls.
    pub(super) models: Client,
    /// For questions that are no model calls.
    pub(super) http: reqwest::Client,
}

impl Line {
    /// A way to servers on the net, through the system's proxy if it has one.
    ///
    /// # Errors
    /// When the system's TLS cannot be used.
    pub fn to_the_net() -> Result<Self, String> {
        Self::open(reqwest::Client::builder())
    }

    /// A way to servers on this computer, never through a proxy.
    ///
    /// # Errors
    /// When the system's TLS cannot be used.
    pub fn on_this_computer() -> Result<Self, String> {
        Self::open(reqwest::Client::builder().no_proxy())
    }

    fn open(builder: reqwest::ClientBuilder) -> Result<Self, String> {
        let http = builder
            .connect_timeout(Duration::from_secs(15))
            .tcp_nodelay(true)
            .build()
            .map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
        let models = Client::builder()
            .with_reqwest(http.clone())
            .build()
            .map_err(|error| format!("the model client cannot be built: {error}"))?;
        Ok(Self { models, http })
    }
}

impl Service {
    /// Streams the answer of `model`, as the server calls it.
    ///
    /// # Errors
    /// What genai refuses before it sends anything; all else comes through the stream.
    pub(super) async fn chat(
        &self,
        line: &Line,
        key: &str,
        model: &str,
        can: Capabilities,
        request: &ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let adapter = self.adapter_for(model);
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(self.endpoint.as_str()),
            auth: AuthData::from_single(key),
            model: ModelIden::new(adapter, model),
        };
        let torn = Torn::default();
        let options = request::options(request, adapter, can).with_raw_frame_sink(torn.clone());
        let answer = line
            .models
            .exec_chat_stream(target, request::build(request, adapter), Some(&options))
            .await
            .map_err(|error| failure::from_genai(&self.name, error))?;
        let marker = match adapter {
            AdapterKind::Gemini => EndMarker::StopReason,
            _ => EndMarker::Own,
        };
        Ok(Box::pin(response::events(
            answer.stream,
            self.name.clone(),
            marker,
            torn,
            cancel,
        )))
    }

    /// The names of the models the server offers.
    ///
    /// # Errors
    /// As a model call.
    pub(super) async fn model_names(
        &self,
        line: &Line,
        key: &str,
    ) -> Result<Vec<String>, ProviderError> {
        let config = ProviderConfig {
            endpoint: Some(Endpoint::from_owned(self.endpoint.as_str())),
            auth: Some(AuthData::from_single(key)),
        };
        line.models
            .all_model_names(self.adapter, config)
            .await
            .map_err(|error| failure::from_genai(&self.name, error))
    }

    /// OpenAI's newer models are better served by the Responses protocol.
    fn adapter_for(&self, model: &str) -> AdapterKind {
        match (self.adapter, AdapterKind::from_model(model)) {
            (AdapterKind::OpenAI, Ok(AdapterKind::OpenAIResp))
                if self.endpoint.contains("api.openai.com") =>
            {
                AdapterKind::OpenAIResp
            }
            (adapter, _) => adapter,
        }
    }
}

//! A connection to one model server, whoever offers it.

use std::time::Duration;

use ::genai::adapter::AdapterKind;
use ::genai::resolver::{AuthData, Endpoint, ProviderConfig};
use ::genai::{Client, ModelIden, ServiceTarget};
use tokio_util::sync::CancellationToken;
use youyou_agent::{Capabilities, ChatRequest, ChatStream, ProviderError};

use super::response::EndMarker;
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

/// Builds the client that calls go through.
///
/// A local server is never reached through a proxy.
///
/// # Errors
/// When the system's TLS cannot be used.
pub fn client(local: bool) -> Result<Client, String> {
    let mut http = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(15))
        .tcp_nodelay(true);
    if local {
        http = http.no_proxy();
    }
    let http = http
        .build()
        .map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
    Client::builder()
        .with_reqwest(http)
        .build()
        .map_err(|error| format!("the model client cannot be built: {error}"))
}

impl Service {
    /// Streams the answer of `model`, as the server calls it.
    ///
    /// # Errors
    /// What genai refuses before it sends anything; all else comes through the stream.
    pub(super) async fn chat(
        &self,
        client: &Client,
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
        let options = request::options(request, adapter, can);
        let answer = client
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
            cancel,
        )))
    }

    /// The names of the models the server offers.
    ///
    /// # Errors
    /// As a model call.
    pub(super) async fn model_names(
        &self,
        client: &Client,
        key: &str,
    ) -> Result<Vec<String>, ProviderError> {
        let config = ProviderConfig {
            endpoint: Some(Endpoint::from_owned(self.endpoint.as_str())),
            auth: Some(AuthData::from_single(key)),
        };
        client
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

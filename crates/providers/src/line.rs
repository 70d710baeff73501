//! Requests to a server and what comes back at once: the start of an answer, or why there is none.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Response, Url};
use serde_json::Value;
use youyou_agent::ProviderError;

use crate::failure;
use crate::http::{self, Http};
use crate::wire::Target;

/// How long a list, a question of a settings dialog or the body of an error may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The way of one request.
pub(crate) struct Line {
    pub(crate) http: Http,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Line {
    /// Sends a body. What comes back is the start of an answer.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the request.
    pub(crate) async fn send(
        &self,
        target: &Target,
        body: String,
    ) -> Result<Response, ProviderError> {
        let sent = self
            .http
            .post(self.url.clone(), self.headers.clone(), body, None)
            .await;
        let mut response = sent.map_err(|fault| failure::of_http(target, &fault))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        // The status says enough where the words do not come.
        let body = tokio::time::timeout(PATIENCE, http::text(&mut response, Vec::new())).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        Err(failure::status(target, status.as_u16(), &headers, &body))
    }
}

/// Questions to a server that are no model calls.
pub(crate) struct Asker<'a> {
    pub(crate) http: &'a Http,
    pub(crate) base: &'a Url,
    pub(crate) headers: HeaderMap,
    pub(crate) limit: Duration,
}

impl Asker<'_> {
    /// Asks behind the root of the server, with GET or with a body by POST. `None` where no
    /// JSON comes.
    pub(crate) async fn root(&self, path: &str, body: Option<Value>) -> Option<Value> {
        let mut url = self.base.clone();
        let prefix = self
            .base
            .path()
            .trim_end_matches("/v1")
            .trim_end_matches('/');
        url.set_path(&format!("{prefix}{path}"));
        let headers = self.headers.clone();
        let answer = match body {
            None => self.http.get(url, headers, self.limit).await,
            Some(body) => {
                self.http
                    .post(url, headers, body.to_string(), Some(self.limit))
                    .await
            }
        };
        let mut answer = answer.ok()?.error_for_status().ok()?;
        serde_json::from_str(&http::text(&mut answer, Vec::new()).await.ok()?).ok()
    }
}

/// The body behind an address.
///
/// # Errors
/// The server cannot be reached or refuses.
pub(crate) async fn get(
    http: &Http,
    target: &Target,
    url: Url,
    headers: HeaderMap,
    limit: Duration,
) -> Result<String, ProviderError> {
    let answer = http.get(url, headers, limit).await;
    let mut answer = answer.map_err(|fault| failure::of_http(target, &fault))?;
    let (status, said) = (answer.status(), answer.headers().clone());
    let body = http::text(&mut answer, Vec::new()).await;
    let body = body.map_err(|error| failure::transport(target, &error))?;
    if status.is_success() {
        Ok(body)
    } else {
        Err(failure::status(target, status.as_u16(), &said, &body))
    }
}

//! What a failed model call means: status, headers and body of a server become one of the
//! kinds the agent acts on, and a text for a person.

use std::time::{Duration, SystemTime};

use ::genai::Error as GenaiError;
use reqwest::header::HeaderMap;
use serde_json::Value;
use youyou_agent::{ProviderError, ProviderErrorKind as Kind};

/// Phrases of the vendors that give an overflow no code of its own. They are looked for only
/// in refusals of a malformed request, never in other errors.
const OVERFLOW_PHRASES: &[&str] = &[
    "prompt is too long",                           // Anthropic
    "exceed context limit",                         // Anthropic, input plus max_tokens
    "exceeds the maximum number of tokens allowed", // Gemini
    "maximum context length",                       // vLLM, DeepSeek, OpenRouter
    "maximum prompt length",                        // xAI
    "exceeds the available context size",           // llama.cpp, older
    "greater than the context length",              // LM Studio
    "context window exceeds limit",                 // MiniMax
];

/// Classifies an error of the `genai` crate. `service` names the server for the user.
pub(super) fn from_genai(service: &str, error: GenaiError) -> ProviderError {
    match error {
        // While streaming, an HTTP error is only found behind this cause.
        GenaiError::WebStream { error, .. } => match error.downcast::<GenaiError>() {
            Ok(inner) => from_genai(service, *inner),
            Err(other) => from_transport(service, other.as_ref()),
        },
        GenaiError::HttpError {
            status,
            body,
            headers,
            ..
        } => from_status(service, status.as_u16(), &headers, &body),
        GenaiError::ChatResponse { body, .. } => from_stream_error(service, &body),
        // A frame that is no JSON is what a cut connection leaves behind.
        GenaiError::StreamParse { .. } => ProviderError::new(
            Kind::Network,
            format!("the answer of {service} broke off or could not be read; try again"),
        ),
        GenaiError::RequiresApiKey { .. }
        | GenaiError::NoAuthData { .. }
        | GenaiError::NoAuthResolver { .. } => ProviderError::new(Kind::Auth, missing_key(service)),
        // The remaining texts may quote a request, so they are not shown.
        _ => ProviderError::new(
            Kind::Other,
            format!("{service} answered in a way this app does not understand"),
        ),
    }
}

/// The end of the data without an end marker.
pub(super) fn ended_early(service: &str) -> ProviderError {
    ProviderError::new(
        Kind::Network,
        format!("the connection to {service} ended before the answer was complete; try again"),
    )
}

/// An event without the name that tells what it is.
pub(super) fn torn(service: &str) -> ProviderError {
    ProviderError::new(
        Kind::Network,
        format!("a part of the answer of {service} was damaged on the way; try again"),
    )
}

pub(super) fn missing_key(service: &str) -> String {
    format!("{service} needs an API key; enter one in the settings")
}

fn from_transport(
    service: &str,
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> ProviderError {
    let (kind, what) = match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_timeout() => (Kind::Timeout, "did not answer in time"),
        Some(error) if error.is_connect() => (Kind::Network, "cannot be reached"),
        _ => (Kind::Network, "broke the connection"),
    };
    let cause = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    ProviderError::new(
        kind,
        format!("{service} {what}{cause}; check the connection and try again"),
    )
}

fn from_status(service: &str, status: u16, headers: &HeaderMap, body: &str) -> ProviderError {
    let body = serde_json::from_str::<Value>(body).ok();
    let facts = Facts::of(body.as_ref().unwrap_or(&Value::Null));
    let kind = match status {
        400 | 404 | 413 | 422 => facts.refusal(),
        401 => Kind::Auth,
        402 => Kind::Quota,
        403 if facts.is_quota() => Kind::Quota,
        403 => Kind::Auth,
        408 | 504 => Kind::Timeout,
        429 if facts.is_quota() => Kind::Quota,
        429 => Kind::RateLimited {
            retry_after_ms: retry_after(headers).or(facts.retry_delay),
        },
        // llama.cpp reports images for a text-only model as 500.
        500..=599 if facts.is_image_refusal() => Kind::UnsupportedContent,
        500 | 502 | 503 | 529 => Kind::Overloaded,
        _ => Kind::Other,
    };
    ProviderError::new(kind.clone(), facts.text(service, &kind, Some(status)))
}

/// An error object in the middle of a stream that began well.
fn from_stream_error(service: &str, body: &Value) -> ProviderError {
    let facts = Facts::of(body);
    if body.get("finishReason").is_some() {
        // What genai makes of a Gemini answer without any candidate.
        return ProviderError::new(
            Kind::InvalidRequest,
            format!("{service} gave no answer; its safety filter may have refused the request"),
        );
    }
    let kind = match facts.code.as_str() {
        _ if facts.is_quota() => Kind::Quota,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" | "429" => {
            Kind::RateLimited {
                retry_after_ms: facts.retry_delay,
            }
        }
        "overloaded_error"
        | "server_error"
        | "api_error"
        | "internal_server_error"
        | "INTERNAL"
        | "UNAVAILABLE"
        | "500"
        | "502"
        | "503"
        | "529" => Kind::Overloaded,
        "timeout_error" | "DEADLINE_EXCEEDED" | "408" | "504" => Kind::Timeout,
        "authentication_error"
        | "permission_error"
        | "UNAUTHENTICATED"
        | "PERMISSION_DENIED"
        | "401"
        | "403" => Kind::Auth,
        "invalid_request_error" | "INVALID_ARGUMENT" | "400" | "404" | "413" | "422" => {
            facts.refusal()
        }
        _ if facts.is_overflow() => Kind::ContextLengthExceeded,
        _ => Kind::Other,
    };
    ProviderError::new(kind.clone(), facts.text(service, &kind, None))
}

/// What the vendors' error bodies say, whatever their shape.
struct Facts {
    /// `code` where it is a word, else `type` or `status`, else a numeric code.
    code: String,
    /// All of `code`, `type` and `status`.
    codes: Vec<String>,
    message: String,
    retry_delay: Option<u64>,
}

impl Facts {
    fn of(body: &Value) -> Self {
        // A list of one error is Gemini's OpenAI-compatible form.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let words = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = error
            .get("code")
            .and_then(Value::as_u64)
            .map(|code| code.to_string());
        let codes: Vec<String> = [words("code"), words("type"), words("status"), number]
            .into_iter()
            .flatten()
            .filter(|code| code != "error")
            .collect();
        let message = words("message")
            .or_else(|| error.as_str().map(str::to_owned))
            .or_else(|| {
                body.get("message")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            })
            .or_else(|| {
                body.get("detail")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            })
            .unwrap_or_default();
        Self {
            code: codes.first().cloned().unwrap_or_default(),
            codes,
            message,
            retry_delay: gemini_retry_delay(error),
        }
    }

    fn has(&self, code: &str) -> bool {
        self.codes.iter().any(|known| known == code)
    }

    /// What a refusal of the request as such is about.
    fn refusal(&self) -> Kind {
        if self.is_overflow() {
            Kind::ContextLengthExceeded
        } else if self.is_quota() {
            Kind::Quota
        } else if self.is_image_refusal() {
            Kind::UnsupportedContent
        } else {
            Kind::InvalidRequest
        }
    }

    fn is_overflow(&self) -> bool {
        let message = self.message.to_lowercase();
        self.has("context_length_exceeded")
            || self.has("exceed_context_size_error")
            || OVERFLOW_PHRASES
                .iter()
                .any(|phrase| message.contains(phrase))
    }

    fn is_quota(&self) -> bool {
        self.has("insufficient_quota")
            || self.has("billing_error")
            || self.has("402")
            || self.message.contains("credit balance is too low")
    }

    fn is_image_refusal(&self) -> bool {
        let message = self.message.to_lowercase();
        (message.contains("image") || message.contains("multimodal"))
            && (message.contains("not support") || message.contains("does not support"))
    }

    fn text(&self, service: &str, kind: &Kind, status: Option<u16>) -> String {
        let said = match (self.message.as_str(), status) {
            ("", Some(status)) => format!(" (status {status})"),
            ("", None) => String::new(),
            (message, _) => format!(": {}", first_words(message)),
        };
        match kind {
            // A server may quote the key it refused: its words are not repeated.
            Kind::Auth => format!("{service} refused the API key; check it in the settings"),
            Kind::Quota => format!("the account at {service} has no credit left{said}"),
            Kind::RateLimited { .. } => format!("{service} asks to slow down{said}"),
            Kind::Overloaded => format!("{service} is overloaded or out of order{said}"),
            Kind::Timeout => format!("{service} did not answer in time{said}"),
            Kind::ContextLengthExceeded => {
                format!("the conversation is too long for this model{said}")
            }
            Kind::UnsupportedContent => format!("the model cannot take this content{said}"),
            Kind::InvalidRequest if status == Some(404) => {
                format!("{service} does not know this model{said}; choose another one")
            }
            Kind::InvalidRequest => format!("{service} refused the request{said}"),
            _ => format!("{service} reported an error{said}"),
        }
    }
}

/// At most 300 characters, on one line.
fn first_words(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The wait a server asks for, in milliseconds: `retry-after-ms`, else `retry-after` in
/// seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds_to_ms = |seconds: f64| {
        // Negative, infinite and absurd values are no wait at all.
        Duration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|wait| u64::try_from(wait.as_millis()).ok())
    };
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return seconds_to_ms(ms / 1000.0);
    }
    let wait = text("retry-after")?;
    if let Ok(seconds) = wait.parse::<f64>() {
        return seconds_to_ms(seconds);
    }
    let date = httpdate::parse_http_date(wait).ok()?;
    let wait = date.duration_since(SystemTime::now()).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

/// Gemini says `"retryDelay": "34s"` in the details of its error.
fn gemini_retry_delay(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    u64::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_millis()).ok()
}

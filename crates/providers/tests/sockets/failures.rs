//! What a refusal means: status, headers, body.

use youyou_agent::ProviderErrorKind as Kind;

use super::failure;
use super::support::Reply;

async fn refusal(status: &'static str, body: &str) -> (Kind, String) {
    let error = failure(Reply::json(status, body)).await;
    (error.kind, error.message)
}

// P11
#[tokio::test]
async fn an_overflow_is_known_in_everyones_words() {
    for said in [
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Invalid request: Your request exceeded max context length by 1200 tokens",
        "exceeded max context length by 1200 tokens",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "Range of input length should be [1, 98304]",
        "Prompt exceeds max length",
        "context size has been exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
    ] {
        let body =
            serde_json::json!({ "error": { "message": said, "type": "invalid_request_error" } })
                .to_string();
        for status in [
            "400 Bad Request",
            "500 Internal Server Error",
            "413 Payload Too Large",
            "422 Unprocessable Entity",
        ] {
            let (kind, message) = refusal(status, &body).await;
            if status.starts_with("413") && !said.contains("token") {
                assert_eq!(kind, Kind::ContextLengthExceeded, "{said}");
            }
            assert_eq!(kind, Kind::ContextLengthExceeded, "{status}: {said}");
            assert!(message.contains(said.trim_end_matches('.')), "{message}");
        }
    }
    let (kind, message) = refusal("413 Payload Too Large", "<html>too large</html>").await;
    assert_eq!(kind, Kind::InvalidRequest);
    assert!(message.contains("too large"), "{message}");
}

// P10
#[tokio::test]
async fn the_reason_inside_of_the_wrapper_decides_and_is_shown() {
    for (raw, kind, said) in [
        (
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error"}}"#,
            Kind::ContextLengthExceeded,
            "210000 tokens",
        ),
        (
            r#"{"error":{"message":"slow down please","code":429}}"#,
            Kind::RateLimited {
                retry_after_ms: None,
            },
            "slow down please",
        ),
        (
            r#"{"error":{"message":"field x is unknown","type":"invalid_request_error"}}"#,
            Kind::InvalidRequest,
            "field x is unknown",
        ),
        (
            "{\"message\":\"upstream says no\"}",
            Kind::InvalidRequest,
            "upstream says no",
        ),
        ("upstream words", Kind::InvalidRequest, "upstream words"),
    ] {
        let body = serde_json::json!({
            "error": { "message": "Provider returned error", "code": 400, "metadata": { "raw": raw, "provider_name": "X" } }
        });
        let (got, message) = refusal("400 Bad Request", &body.to_string()).await;
        assert_eq!(got, kind, "{raw}");
        assert!(message.contains(said), "{message}");
        // A gateway that puts the inner JSON into its own words.
        let body = serde_json::json!({ "error": { "message": format!("litellm.BadRequestError: XException - {raw}"), "code": "400" } });
        let (got, message) = refusal("400 Bad Request", &body.to_string()).await;
        assert_eq!(got, kind, "{raw}");
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn each_status_has_its_kind_and_says_so() {
    for (status, body, kind, said) in [
        ("401 Unauthorized", "{}", Kind::Auth, "key"),
        (
            "401 Unauthorized",
            r#"{"error":{"message":"no key given","type":"invalid_request_error"}}"#,
            Kind::Auth,
            "no key given",
        ),
        (
            "403 Forbidden",
            r#"{"error":{"message":"region"}}"#,
            Kind::Auth,
            "region",
        ),
        (
            "402 Payment Required",
            r#"{"error":{"message":"pay"}}"#,
            Kind::Quota,
            "pay",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"insufficient_quota","message":"empty"}}"#,
            Kind::Quota,
            "empty",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"Your credit balance is too low"}}"#,
            Kind::Quota,
            "balance",
        ),
        (
            "400 Bad Request",
            r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            Kind::Auth,
            "API key not valid",
        ),
        ("408 Request Timeout", "", Kind::Timeout, "in time"),
        ("504 Gateway Timeout", "<html>", Kind::Timeout, "504"),
        ("503 Service Unavailable", "", Kind::Overloaded, "503"),
        (
            "529 Overloaded",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Kind::Overloaded,
            "Overloaded",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"Model Not Exist"}}"#,
            Kind::InvalidRequest,
            "does not know the model m",
        ),
        (
            "404 Not Found",
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            Kind::InvalidRequest,
            "does not know the model m",
        ),
        (
            "404 Not Found",
            r#"{"error":{"message":"model \"m\" not found, try pulling it first"}}"#,
            Kind::InvalidRequest,
            "pulling",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"this model does not support image input"}}"#,
            Kind::UnsupportedContent,
            "image",
        ),
        (
            "500 Internal Server Error",
            r#"{"error":{"message":"image input is not supported","code":500}}"#,
            Kind::UnsupportedContent,
            "image",
        ),
        (
            "422 Unprocessable Entity",
            r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
            Kind::InvalidRequest,
            "field required",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"code":"content_filter","message":"filtered"}}"#,
            Kind::InvalidRequest,
            "filter",
        ),
        ("418 Teapot", "no tea", Kind::InvalidRequest, "no tea"),
    ] {
        let (got, message) = refusal(status, body).await;
        assert_eq!(got, kind, "{status} {body}");
        assert!(message.contains(said), "{message}");
        assert!(message.starts_with("Own "), "{message}");
    }
}

// E12
#[tokio::test]
async fn the_wait_that_a_server_asks_for_is_told() {
    for (header, body, wait) in [
        ("retry-after: 3", "{}", Some(3000)),
        ("retry-after: 1.5", "{}", Some(1500)),
        ("Retry-After-Ms: 250", "{}", Some(250)),
        ("retry-after: -1", "{}", None),
        ("retry-after: soon", "{}", None),
        (
            "x-other: 1",
            r#"{"error":{"message":"Rate limit reached. Please try again in 1m30s. More"}}"#,
            Some(90_000),
        ),
        (
            "x-other: 1",
            r#"{"error":{"message":"wait","details":[{"retryDelay":"34s"}]}}"#,
            Some(34_000),
        ),
    ] {
        let error = failure(Reply::json("429 Too Many Requests", body).header(header)).await;
        assert_eq!(
            error.kind,
            Kind::RateLimited {
                retry_after_ms: wait
            },
            "{header} {body}"
        );
    }
}

// P18
#[tokio::test]
async fn an_error_of_status_200_is_an_error_of_its_kind() {
    let error = failure(Reply::json(
        "200 OK",
        r#"{"error":{"message":"wrong key","code":"invalid_api_key"}}"#,
    ))
    .await;
    assert_eq!(error.kind, Kind::Auth);
    for body in ["{}", "[]", r#"{"choices":[]}"#, r#"{"id":"x"}"#] {
        let error = failure(Reply::json("200 OK", body)).await;
        assert_eq!(error.kind, Kind::Other, "{body}");
    }
}

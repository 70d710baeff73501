//! Refusals: the kind the agent acts on, and a text that says what to do.

use std::time::{Duration, SystemTime};

use youyou_agent::{ChatEvent, ProviderError, ProviderErrorKind as Kind};

use super::server::{Server, frames, refusal, stream};
use super::{call, only_error, openai, provider, request, user};

async fn refused(vendor: &str, status: &str, headers: &str, body: &str) -> ProviderError {
    let server = Server::start(vec![refusal(status, headers, body)]).await;
    let model = match vendor {
        "anthropic" => "claude-sonnet-4-5",
        "gemini" => "gemini-2.5-pro",
        _ => "gpt-4.1",
    };
    only_error(
        call(
            &provider(vendor, &server.url),
            request(model, vec![user("hi")]),
        )
        .await,
    )
}

#[tokio::test]
async fn a_rate_limit_tells_how_long_to_wait() {
    let body =
        r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#;
    let wait = async |headers: &str| match refused("openai", "429 Too Many Requests", headers, body)
        .await
        .kind
    {
        Kind::RateLimited { retry_after_ms } => retry_after_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(wait("").await, None);
    assert_eq!(wait("retry-after: 3\r\n").await, Some(3_000));
    assert_eq!(wait("retry-after: 1.5\r\n").await, Some(1_500));
    assert_eq!(
        wait("retry-after: 20\r\nretry-after-ms: 250\r\n").await,
        Some(250)
    );
    assert_eq!(wait("retry-after: soon\r\n").await, None);
    assert_eq!(wait("retry-after: -1\r\n").await, None);
    let date = |offset| httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(offset));
    let ms = wait(&format!("retry-after: {}\r\n", date(60)))
        .await
        .unwrap();
    assert!((50_000..=60_000).contains(&ms), "{ms}");
    assert_eq!(
        wait("retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n").await,
        Some(0)
    );
}

#[tokio::test]
async fn each_status_has_its_kind() {
    let cases = [
        ("401 Unauthorized", Kind::Auth),
        ("402 Payment Required", Kind::Quota),
        ("403 Forbidden", Kind::Auth),
        ("400 Bad Request", Kind::InvalidRequest),
        ("404 Not Found", Kind::InvalidRequest),
        ("413 Payload Too Large", Kind::InvalidRequest),
        ("422 Unprocessable Entity", Kind::InvalidRequest),
        ("408 Request Timeout", Kind::Timeout),
        ("409 Conflict", Kind::Other),
        ("425 Too Early", Kind::Other),
        ("500 Internal Server Error", Kind::Overloaded),
        ("501 Not Implemented", Kind::Other),
        ("503 Service Unavailable", Kind::Overloaded),
        ("504 Gateway Timeout", Kind::Timeout),
        ("529 Overloaded", Kind::Overloaded),
    ];
    for (status, kind) in cases {
        let error = refused("openai", status, "", r#"{"error":{"message":"no"}}"#).await;
        assert_eq!(error.kind, kind, "{status}");
        let fatal = ["400", "401", "402", "403", "404", "413", "422"];
        assert_eq!(
            error.kind.is_retryable(),
            !fatal.iter().any(|code| status.starts_with(code)),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_refused_key_is_not_repeated() {
    let body =
        r#"{"error":{"message":"Incorrect API key provided: sk-test.","code":"invalid_api_key"}}"#;
    let error = refused("openai", "401 Unauthorized", "", body).await;
    assert_eq!(
        error.message,
        "OpenAI refused the API key; check it in the settings"
    );
}

#[tokio::test]
async fn an_empty_account_is_no_rate_limit() {
    let openai = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    assert_eq!(
        refused("openai", "429 Too Many Requests", "", openai)
            .await
            .kind,
        Kind::Quota
    );
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
    assert_eq!(
        refused("anthropic", "400 Bad Request", "", anthropic)
            .await
            .kind,
        Kind::Quota
    );
}

#[tokio::test]
async fn every_vendors_overflow_is_known() {
    let cases = [
        (
            "openai",
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            "openai",
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
        ),
        (
            "openai",
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","code":400}"#,
        ),
        (
            "anthropic",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 212345 tokens > 200000 maximum"}}"#,
        ),
        (
            "anthropic",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}"#,
        ),
        (
            "gemini",
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ),
    ];
    for (vendor, body) in cases {
        assert_eq!(
            refused(vendor, "400 Bad Request", "", body).await.kind,
            Kind::ContextLengthExceeded,
            "{body}"
        );
    }
}

#[tokio::test]
async fn words_about_length_in_other_errors_are_no_overflow() {
    let body =
        r#"{"error":{"message":"maximum context length service is down","type":"server_error"}}"#;
    assert_eq!(
        refused("openai", "503 Service Unavailable", "", body)
            .await
            .kind,
        Kind::Overloaded
    );
    let body = r#"{"error":{"message":"Invalid 'messages[0].content': string too long.","code":"string_above_max_length"}}"#;
    assert_eq!(
        refused("openai", "400 Bad Request", "", body).await.kind,
        Kind::InvalidRequest
    );
}

#[tokio::test]
async fn an_html_page_of_a_gateway_is_not_shown() {
    let error = refused(
        "openai",
        "502 Bad Gateway",
        "",
        "<html><body>nginx 502</body></html>",
    )
    .await;
    assert_eq!(error.kind, Kind::Overloaded);
    assert!(
        !error.message.contains('<') && error.message.contains("502"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_text_only_model_that_gets_an_image_says_so() {
    let body = r#"{"error":{"code":500,"message":"image input is not supported - hint: you may need to provide the mmproj","type":"server_error"}}"#;
    assert_eq!(
        refused("openai", "500 Internal Server Error", "", body)
            .await
            .kind,
        Kind::UnsupportedContent
    );
}

#[tokio::test]
async fn gemini_says_the_wait_in_its_body() {
    let body = r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
    let error = refused("gemini", "429 Too Many Requests", "", body).await;
    assert_eq!(
        error.kind,
        Kind::RateLimited {
            retry_after_ms: Some(34_500)
        }
    );
}

#[tokio::test]
async fn an_overflow_inside_a_stream_is_known_too() {
    let body = frames(&[
        r#"{"error":{"code":400,"message":"too big","type":"exceed_context_size_error"}}"#,
    ]);
    assert_eq!(
        only_error(openai(vec![stream(body)]).await).kind,
        Kind::ContextLengthExceeded
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_error() {
    // Nobody listens on a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    drop(listener);
    let error = only_error(
        call(
            &provider("openai", &url),
            request("gpt-4.1", vec![user("hi")]),
        )
        .await,
    );
    assert_eq!(error.kind, Kind::Network);
    assert!(
        error.message.contains("OpenAI cannot be reached"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn without_a_key_nothing_is_offered_and_nothing_is_sent() {
    use youyou_agent::ModelProvider as _;
    let folder = tempfile::tempdir().unwrap();
    let settings = std::sync::Arc::new(
        youyou_chat::settings::Settings::load(folder.path(), |_| None).unwrap(),
    );
    let openai = &youyou_chat::providers::VENDORS[0];
    let line = super::line();
    let provider = youyou_chat::providers::GenaiProvider::new(openai, settings.clone(), line);
    assert!(provider.models().is_empty());
    let refused = provider
        .chat(request("gpt-4.1", vec![user("hi")]), Default::default())
        .await;
    assert_eq!(refused.err().map(|error| error.kind), Some(Kind::Auth));
    // Entered while the app runs: the models are there at once.
    settings.set_key("openai", "sk-new").unwrap();
    assert!(!provider.models().is_empty());
}

#[tokio::test]
async fn a_listed_model_is_offered_and_a_failed_listing_changes_nothing() {
    use youyou_agent::ModelProvider as _;
    let list = r#"{"data":[{"id":"gpt-4.1"},{"id":"gpt-9-new"},{"id":"text-embedding-3-small"}]}"#;
    let server = Server::start(vec![
        refusal("200 OK", "", list),
        refusal("500 Oops", "", "{}"),
    ])
    .await;
    let provider = provider("openai", &server.url);
    for _ in 0..2 {
        provider.discover().await;
        let ids: Vec<String> = provider
            .models()
            .into_iter()
            .map(|model| model.id)
            .collect();
        assert_eq!(ids, ["gpt-4.1", "gpt-9-new"]);
    }
}

#[tokio::test]
async fn a_refusal_is_never_a_silent_end() {
    for status in ["400 Bad Request", "500 Internal Server Error"] {
        let events = openai(refusal(status, "", "")).await;
        assert!(
            matches!(events.as_slice(), [ChatEvent::Error(error)] if !error.message.is_empty()),
            "{events:?}"
        );
    }
}

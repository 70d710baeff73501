//! Keys: how they are sent, and that they are nowhere else.

use std::sync::{Arc, Mutex};

use youyou_agent::{ChatRequest, ProviderErrorKind as Kind};
use youyou_agent_providers::{Endpoint, Providers};

use super::support::{Pace, Reply, Server, ask, finish, provider, user};

const KEY: &str = "sk-test-0123456789abcdef";

// P22
#[tokio::test]
async fn a_key_is_sent_without_what_surrounds_it() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    for written in [
        format!("{KEY}\n"),
        format!("\"{KEY}\""),
        format!(" '{KEY}' \r\n"),
    ] {
        let provider = provider(Endpoint::openai_compatible("own", &server.address).key(&written));
        let (_, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        assert_eq!(ended, Ok(()));
        let head = server.requests().last().unwrap().head.clone();
        assert!(
            head.contains(&format!("authorization: bearer {KEY}\r\n")),
            "{head}"
        );
    }
}

// P22
#[tokio::test]
async fn a_key_that_cannot_be_sent_is_told_and_nothing_goes_out() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    for written in [
        "sk-te\nst-0123456789",
        "sk-te st-0123456789",
        "sk-tést-0123456789",
    ] {
        let provider = provider(Endpoint::openai_compatible("own", &server.address).key(written));
        let (_, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        let error = ended.unwrap_err();
        assert_eq!(error.kind, Kind::Auth);
        assert!(!error.message.contains("0123456789"), "{}", error.message);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_missing_key_of_a_vendor_is_told_and_nothing_goes_out() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    let provider = provider(
        Endpoint::vendor("deepseek")
            .unwrap()
            .address(&server.address),
    );
    assert_eq!(provider.models(), []);
    let (_, ended) = ask(&provider, ChatRequest::new("deepseek-chat", [user("Hi")])).await;
    let error = ended.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            Kind::Auth,
            "DeepSeek needs an API key; enter one in the settings"
        )
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_quotes_the_key_does_not_bring_it_into_a_message() {
    let said = format!(
        "Incorrect API key provided: {KEY}. Or cut: {}***",
        &KEY[..12]
    );
    let error = serde_json::json!({ "error": { "message": said } }).to_string();
    for reply in [
        Reply::json("401 Unauthorized", &error),
        Reply::json("400 Bad Request", &error),
        Reply::json("200 OK", &error),
        Reply::stream(format!("data: {error}\n\n")),
        Reply::stream(finish(&format!("because-{KEY}"))),
    ] {
        let server = Server::start(Pace::Whole, vec![reply]);
        let provider = provider(Endpoint::openai_compatible("own", &server.address).key(KEY));
        let (events, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        let all = format!("{events:?} {ended:?}");
        assert!(!all.contains("0123") && all.contains("[key]"), "{all}");
    }
}

#[tokio::test]
async fn a_key_is_asked_for_at_each_request() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    let entered = Arc::new(Mutex::new(None::<String>));
    let keys = {
        let entered = entered.clone();
        move |_: &str| entered.lock().unwrap().clone()
    };
    let endpoint = Endpoint::vendor("deepseek")
        .unwrap()
        .address(&server.address);
    let provider = Providers::new()
        .keys(keys)
        .endpoint(endpoint)
        .into_iter()
        .next()
        .unwrap();
    let (_, ended) = ask(&provider, ChatRequest::new("deepseek-chat", [user("Hi")])).await;
    assert_eq!(ended.unwrap_err().kind, Kind::Auth);
    *entered.lock().unwrap() = Some("k-new".to_owned());
    assert!(!provider.models().is_empty());
    let (_, ended) = ask(&provider, ChatRequest::new("deepseek-chat", [user("Hi")])).await;
    assert_eq!(ended, Ok(()));
    assert!(
        server
            .requests()
            .last()
            .unwrap()
            .head
            .contains("authorization: bearer k-new\r\n")
    );
}

#[test]
fn no_debug_output_has_a_key_in_it() {
    let endpoint = Endpoint::openai_compatible("own", format!("https://user:{KEY}@h/v1?key={KEY}"))
        .key(KEY)
        .header("x-secret", KEY);
    let providers = Providers::new().endpoint(endpoint.clone());
    assert!(!format!("{endpoint:?} {providers:?}").contains("0123"));
}

#[tokio::test]
async fn azure_has_its_own_header_and_path() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    let provider = provider(Endpoint::azure("azure", &server.address).key(KEY));
    let (_, ended) = ask(&provider, ChatRequest::new("my-deployment", [user("Hi")])).await;
    assert_eq!(ended, Ok(()));
    let request = server.requests().remove(0);
    assert_eq!(request.path, "/openai/v1/chat/completions");
    assert!(
        request.head.contains(&format!("api-key: {KEY}\r\n"))
            && !request.head.contains("authorization")
    );
    assert_eq!(request.body["model"], "my-deployment");
}

#[tokio::test]
async fn a_local_server_is_sent_a_key_only_if_it_was_given_one() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    let plain = Endpoint::local_server("vllm", &server.address).unwrap();
    for (endpoint, has_key) in [(plain.clone(), false), (plain.key(KEY), true)] {
        let (_, ended) = ask(
            &provider(endpoint),
            ChatRequest::new("vllm:m", [user("Hi")]),
        )
        .await;
        assert_eq!(ended, Ok(()));
        let request = server.requests().pop().unwrap();
        assert_eq!(request.head.contains("authorization"), has_key);
        assert_eq!(
            (request.path.as_str(), &request.body["model"]),
            ("/v1/chat/completions", &"m".into())
        );
    }
}

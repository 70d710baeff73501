//! Addresses as people write them, wrong ones, and the way to them.

use youyou_agent::{ChatRequest, ProviderErrorKind as Kind};
use youyou_agent_providers::Endpoint;

use super::failure;
use super::support::{Pace, Reply, Server, ask, finish, provider, user};

// P21
#[tokio::test]
async fn a_wrong_address_is_told_apart_from_an_unknown_model() {
    for (status, body) in [
        ("404 Not Found", "404 page not found"),
        ("404 Not Found", "<!DOCTYPE html><html>Not Found</html>"),
        ("404 Not Found", r#"{"detail":"Not Found"}"#),
        (
            "405 Method Not Allowed",
            r#"{"detail":"Method Not Allowed"}"#,
        ),
        ("404 Not Found", ""),
        ("301 Moved Permanently", ""),
        ("200 OK", "<!DOCTYPE html><html>Welcome</html>"),
    ] {
        let error = failure(Reply::new(status, "text/html", body)).await;
        assert_eq!(error.kind, Kind::InvalidRequest, "{status} {body}");
        assert!(
            error.message.contains("check the address"),
            "{}",
            error.message
        );
        assert!(
            error.message.contains("http://127.0.0.1:"),
            "{}",
            error.message
        );
    }
}

// P21
#[tokio::test]
async fn blanks_slashes_and_the_path_of_a_call_are_taken_off() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    let root = &server.address;
    for (written, path) in [
        (format!("{root}/v1"), "/v1/chat/completions"),
        (format!(" {root}/v1 \n"), "/v1/chat/completions"),
        (format!("{root}/v1//"), "/v1/chat/completions"),
        (
            format!("{root}/v1/chat/completions"),
            "/v1/chat/completions",
        ),
        (format!("{root}//"), "/chat/completions"),
        (
            format!("{root}/v1?version=2"),
            "/v1/chat/completions?version=2",
        ),
        (root.replace("http://", "") + "/v1", "/v1/chat/completions"),
    ] {
        let (_, ended) = ask(
            &provider(Endpoint::openai_compatible("own", &written)),
            ChatRequest::new("m", [user("Hi")]),
        )
        .await;
        assert_eq!(ended, Ok(()), "{written}");
        assert_eq!(server.requests().last().unwrap().path, path, "{written}");
    }
}

#[tokio::test]
async fn what_is_no_address_is_told() {
    for written in ["", "nonsense://x", "http://", "file:///etc/hosts"] {
        let provider = provider(Endpoint::openai_compatible("own", written));
        let (_, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        let error = ended.unwrap_err();
        assert_eq!(error.kind, Kind::InvalidRequest, "{written}");
        assert!(
            error.message.contains("check the address"),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_run_is_told() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let provider = provider(Endpoint::openai_compatible(
        "own",
        format!("http://{free}/v1"),
    ));
    let (_, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, Kind::Network);
    assert!(
        error
            .message
            .contains(&format!("cannot be reached at http://{free}/v1")),
        "{}",
        error.message
    );
}

// P20
#[test]
fn this_computer_is_reached_without_the_proxy_of_the_environment() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, format!("http://{dead}"));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let ended = child
        .args(["--exact", "addresses::behind_a_dead_proxy", "--ignored"])
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stdout)
    );
}

#[tokio::test]
#[ignore = "run by the test above, with the variables that it sets"]
async fn behind_a_dead_proxy() {
    let server = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
    for address in [
        server.address.clone(),
        server.address.replace("127.0.0.1", "localhost"),
    ] {
        let provider = provider(Endpoint::openai_compatible("own", address));
        let (_, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        assert_eq!(ended, Ok(()));
    }
    // The proxy is dead, so whatever goes through it fails.
    let far = provider(Endpoint::openai_compatible(
        "own",
        "http://models.example.com/v1",
    ));
    let (_, ended) = ask(&far, ChatRequest::new("m", [user("Hi")])).await;
    assert_eq!(ended.unwrap_err().kind, Kind::Network);
}

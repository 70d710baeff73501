//! Answers that are not whole, and ends that are none.

use youyou_agent::{ChatEvent, ProviderErrorKind as Kind};

use super::support::{Reply, chunks, finish};
use super::{failure, read};

// E5
#[tokio::test]
async fn a_stream_that_ends_without_its_end_is_torn() {
    let half = chunks(&[r#"{"content":"half"}"#]);
    for body in ["", ": ping\n\n", "data: {\"cho", "\u{feff}", "\n\n"] {
        for reply in [Reply::stream(body), Reply::stream(body).cut()] {
            let (events, ended) = read(reply).await;
            assert_eq!(events, [], "{body:?}");
            assert_eq!(ended.unwrap_err().kind, Kind::Network, "{body:?}");
        }
    }
    for rest in [
        "",
        "data: {\"choices\":[{\"delta\":{\"con",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\u{4f60}",
    ] {
        for reply in [
            Reply::stream(half.clone() + rest),
            Reply::stream(half.clone() + rest).cut(),
        ] {
            let (events, ended) = read(reply).await;
            assert_eq!(events, [ChatEvent::text("half")], "{rest:?}");
            assert_eq!(ended.unwrap_err().kind, Kind::Network, "{rest:?}");
        }
    }
}

#[tokio::test]
async fn a_call_of_a_torn_answer_is_not_made() {
    let body = chunks(&[
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"go","arguments":"{}"}}]}"#,
    ]);
    let (events, ended) = read(Reply::stream(body).cut()).await;
    assert_eq!(events, []);
    assert_eq!(ended.unwrap_err().kind, Kind::Network);
}

#[tokio::test]
async fn a_whole_answer_whose_connection_breaks_afterwards_is_whole() {
    let body = chunks(&[r#"{"content":"a"}"#]) + &finish("stop");
    let without_mark = body.replace("data: [DONE]\n\n", "");
    for body in [body, without_mark] {
        let (events, ended) = read(Reply::stream(body).cut()).await;
        assert_eq!((events.len(), ended), (2, Ok(())));
    }
}

// P5
#[tokio::test]
async fn a_failing_finish_reason_is_no_success() {
    for word in [
        "error",
        "network_error",
        "insufficient_system_resource",
        "abort",
    ] {
        for text in ["", r#"{"content":"half"}"#] {
            let deltas: Vec<&str> = [text].into_iter().filter(|text| !text.is_empty()).collect();
            let (events, ended) = read(Reply::stream(chunks(&deltas) + &finish(word))).await;
            assert_eq!(events.len(), deltas.len());
            let error = ended.unwrap_err();
            assert_eq!(error.kind, Kind::Overloaded);
            assert!(error.message.contains(word), "{}", error.message);
        }
    }
}

#[tokio::test]
async fn an_announced_call_that_never_came_is_no_success() {
    let error = failure(Reply::stream(finish("tool_calls"))).await;
    assert!(error.message.contains("tool call"), "{}", error.message);
}

// P13
#[tokio::test]
async fn an_error_in_the_stream_is_known_by_each_of_its_names() {
    for (frame, kind, said) in [
        (
            r#"{"object":"error","message":"model not loaded","code":400}"#,
            Kind::InvalidRequest,
            "model not loaded",
        ),
        (
            r#"{"error":{"message":"boom","type":"server_error"}}"#,
            Kind::Overloaded,
            "boom",
        ),
        (r#"{"error":"plain words"}"#, Kind::Other, "plain words"),
        (
            r#"{"error_message":"strange words"}"#,
            Kind::Other,
            "strange words",
        ),
        (r#"{"detail":"more words"}"#, Kind::Other, "more words"),
        (
            r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimited {
                retry_after_ms: None,
            },
            "slow",
        ),
        (
            r#"{"error":{"message":"Please try again in 1.5s.","code":429}}"#,
            Kind::RateLimited {
                retry_after_ms: Some(1500),
            },
            "try again in",
        ),
        (
            r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#,
            Kind::ContextLengthExceeded,
            "too long",
        ),
        (
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream died"}}]}"#,
            Kind::Overloaded,
            "upstream died",
        ),
        (
            r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            Kind::Quota,
            "insufficient balance",
        ),
        (
            r#"[{"error":{"code":503,"message":"list words","status":"UNAVAILABLE"}}]"#,
            Kind::Overloaded,
            "list words",
        ),
        ("upstream request timed out", Kind::Timeout, "timed out"),
    ] {
        for start in ["", &chunks(&[r#"{"content":"half"}"#])] {
            for event in ["", "event: error\n"] {
                let (events, ended) =
                    read(Reply::stream(format!("{start}{event}data: {frame}\n\n"))).await;
                assert_eq!(events.is_empty(), start.is_empty());
                let error = ended.unwrap_err();
                assert_eq!(error.kind, kind, "{frame}");
                assert!(error.message.contains(said), "{}", error.message);
            }
        }
    }
}

#[tokio::test]
async fn what_was_not_understood_is_shown_when_no_answer_came() {
    for (frame, kind, said) in [
        (
            r#"{"status":"error","msg":"no capacity left"}"#,
            Kind::Network,
            "no capacity left",
        ),
        (
            r#"{"status_code":429,"msg":"slow"}"#,
            Kind::RateLimited {
                retry_after_ms: None,
            },
            "slow",
        ),
        (r#"{"type":"ping"}"#, Kind::Network, "ended the connection"),
    ] {
        let error = failure(Reply::stream(format!("data: {frame}\n\n"))).await;
        assert_eq!(error.kind, kind, "{frame}");
        assert!(error.message.contains(said), "{}", error.message);
    }
}

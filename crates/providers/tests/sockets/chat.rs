//! Answers of servers that speak Chat Completions.

use youyou_agent::{ChatEvent, ChatRequest, Completion, StopReason, Usage};
use youyou_agent_providers::Endpoint;

use super::read;
use super::support::{Pace, Reply, Server, chunks, finish, provider, user};

fn done(reason: StopReason) -> ChatEvent {
    ChatEvent::Done(Completion::new().with_stop_reason(reason))
}

async fn events(deltas: &[&str], reason: &str) -> Vec<ChatEvent> {
    let (events, ended) = read(Reply::stream(chunks(deltas) + &finish(reason))).await;
    assert_eq!(ended, Ok(()));
    events
}

// E1
#[tokio::test]
async fn characters_of_several_bytes_come_whole() {
    let got = events(
        &[
            r#"{"content":"你好🦀"}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"go","arguments":"{\"city\":\"杭州\"}"}}]}"#,
        ],
        "tool_calls",
    )
    .await;
    let call = ChatEvent::tool_call("a", "go", r#"{"city":"杭州"}"#);
    assert_eq!(
        got,
        [ChatEvent::text("你好🦀"), call, done(StopReason::EndTurn)]
    );
}

// E4
#[tokio::test]
async fn comments_keep_alives_and_line_ends_do_no_harm() {
    let body = ": ping\r\n:\r\n\r\nevent: ping\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n\
                id: 7\r\n\r\ndata: {}\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\r\n\r\n\
                : bye\r\n\r\ndata:[DONE]\r\n\r\n";
    for body in [
        body.to_owned(),
        format!("\u{feff}{body}"),
        body.replace("\r\n", "\n"),
        body.replace("\r\n", "\r"),
    ] {
        let (events, ended) = read(Reply::stream(body)).await;
        assert_eq!(
            (events, ended),
            (
                vec![ChatEvent::text("ab"), done(StopReason::EndTurn)],
                Ok(())
            )
        );
    }
}

// E2, P3
#[tokio::test]
async fn fragments_of_calls_become_the_calls_that_the_model_made() {
    let got = events(
        &[
            r#"{"tool_calls":[{"index":0,"id":"w1","function":{"name":"weather","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"w2","function":{"name":"weather","arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":null,"function":{"name":"weather","arguments":"{\"city\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"weather","arguments":"\"Linz\"}"}},{"index":1,"function":{"name":null,"arguments":"}"}}]}"#,
        ],
        "tool_calls",
    )
    .await;
    let expected = [
        ChatEvent::tool_call("w1", "weather", r#"{"city":"Linz"}"#),
        ChatEvent::tool_call("w2", "weather", "{}"),
        done(StopReason::EndTurn),
    ];
    assert_eq!(got, expected);
}

#[tokio::test]
async fn a_character_whose_halves_come_apart_is_whole() {
    let got = events(
        &[r#"{"content":"a\ud83e"}"#, r#"{"content":"\udd80b"}"#],
        "stop",
    )
    .await;
    assert_eq!(got, [ChatEvent::text("a🦀b"), done(StopReason::EndTurn)]);
}

#[tokio::test]
async fn giving_up_an_answer_ends_the_request() {
    let body = chunks(&[r#"{"content":"a"}"#]);
    let server = Server::start(Pace::Whole, vec![Reply::stream(body).hanging()]);
    let provider = provider(Endpoint::openai_compatible("own", &server.address));
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut answer = provider
        .chat(ChatRequest::new("m", [user("Hi")]), cancel)
        .await
        .unwrap();
    let first = futures_util::StreamExt::next(&mut answer).await;
    assert_eq!(first, Some(Ok(ChatEvent::text("a"))));
    drop(answer);
    // The server notices that its connection was closed.
    server.gone().await;
}

// P15
#[tokio::test]
async fn arguments_are_the_models_own_in_whatever_form_they_come() {
    for (sent, meant) in [
        (
            r#"{"path": "src", "n": 1.0}"#,
            r#"{"path": "src", "n": 1.0}"#,
        ),
        (
            r#""{\"a\":12345678901234567890123}""#,
            r#"{"a":12345678901234567890123}"#,
        ),
        (r#""no json""#, "no json"),
        ("null", ""),
        ("[1]", "[1]"),
    ] {
        let delta = format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"go","arguments":{sent}}}}}]}}"#
        );
        let got = events(&[&delta], "tool_calls").await;
        assert_eq!(
            got,
            [
                ChatEvent::tool_call("a", "go", meant),
                done(StopReason::EndTurn)
            ]
        );
    }
}

// P4, P12
#[tokio::test]
async fn the_end_says_why() {
    for (word, reason) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::Length),
        ("max_tokens", StopReason::Length),
        ("MAX_TOKENS", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("content_filter", StopReason::ContentFilter),
        ("SAFETY", StopReason::ContentFilter),
        ("refusal", StopReason::Refusal),
    ] {
        for (delta, shown) in [
            (r#"{"content":"half"}"#, Some(ChatEvent::text("half"))),
            (r#"{"reasoning":"hm"}"#, Some(ChatEvent::reasoning("hm"))),
            (r#"{}"#, None),
        ] {
            let expected: Vec<_> = shown.into_iter().chain([done(reason)]).collect();
            assert_eq!(events(&[delta], word).await, expected, "{word}");
        }
    }
    let refused = events(
        &[r#"{"refusal":"I can't"}"#, r#"{"refusal":" help"}"#],
        "stop",
    )
    .await;
    assert_eq!(
        refused,
        [ChatEvent::text("I can't help"), done(StopReason::Refusal)]
    );
}

#[tokio::test]
async fn an_unknown_end_is_told() {
    let got = events(&[r#"{"content":"a"}"#], "because").await;
    let message = "Own ended the answer for a reason that is not known: because".to_owned();
    assert_eq!(
        got,
        [
            ChatEvent::text("a"),
            ChatEvent::Warning { message },
            done(StopReason::Other)
        ]
    );
}

// P14
#[tokio::test]
async fn an_error_that_is_null_is_none() {
    let chunk = |rest: &str| {
        format!("data: {{\"error\":null,\"choices\":[{{\"error\":null,{rest}}}]}}\n\n")
    };
    let body = chunk(r#""delta":{"content":"a"}"#)
        + &chunk(r#""delta":{},"finish_reason":"stop""#)
        + "data: [DONE]\n\n";
    let (events, ended) = read(Reply::stream(body)).await;
    assert_eq!(
        (events, ended),
        (
            vec![ChatEvent::text("a"), done(StopReason::EndTurn)],
            Ok(())
        )
    );
}

// P17
#[tokio::test]
async fn thoughts_in_the_text_are_reasoning() {
    let got = events(
        &[
            r#"{"content":"<thi"}"#,
            r#"{"content":"nk>hm</th"}"#,
            r#"{"content":"ink>yes"}"#,
        ],
        "stop",
    )
    .await;
    assert_eq!(
        got,
        [
            ChatEvent::reasoning("hm"),
            ChatEvent::text("yes"),
            done(StopReason::EndTurn)
        ]
    );
}

#[tokio::test]
async fn content_in_chunks_is_read_as_what_it_is() {
    let got = events(
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#,
            r#"{"content":[{"type":"text","text":"yes"}]}"#,
        ],
        "stop",
    )
    .await;
    assert_eq!(
        got,
        [
            ChatEvent::reasoning("hm"),
            ChatEvent::text("yes"),
            done(StopReason::EndTurn)
        ]
    );
}

// P18
#[tokio::test]
async fn a_whole_answer_in_place_of_a_stream_is_the_answer() {
    let body = r#" {"choices":[{"index":0,"message":{"role":"assistant","content":"yes","reasoning_content":"hm",
        "tool_calls":[{"id":"a","type":"function","function":{"name":"go","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let end = Completion::new()
        .with_stop_reason(StopReason::EndTurn)
        .with_usage(Usage::new(3, 2));
    let expected = vec![
        ChatEvent::reasoning("hm"),
        ChatEvent::text("yes"),
        ChatEvent::tool_call("a", "go", "{}"),
        ChatEvent::Done(end),
    ];
    for media_type in ["application/json", "text/event-stream", "text/plain"] {
        let (events, ended) = read(Reply::new("200 OK", media_type, body)).await;
        assert_eq!((events, ended), (expected.clone(), Ok(())));
    }
}

#[tokio::test]
async fn a_stream_of_any_declared_type_is_read() {
    for media_type in ["application/json", "text/plain", "application/octet-stream"] {
        let body = chunks(&[r#"{"content":"a"}"#]) + &finish("stop");
        let (events, _) = read(Reply::new("200 OK", media_type, body)).await;
        assert_eq!(events, [ChatEvent::text("a"), done(StopReason::EndTurn)]);
    }
}

#[tokio::test]
async fn usage_is_the_newest_and_zero_is_unknown() {
    let usage = |usage: &str| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
    for (figures, known) in [
        (r#"{"prompt_tokens":0,"completion_tokens":0}"#, None),
        ("null", None),
        (
            r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}"#,
            Some(Usage::new(5, 7)),
        ),
        // Reasoning beside the output, as xAI counts.
        (
            r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":22}"#,
            Some(Usage::new(5, 17)),
        ),
        (
            r#"{"prompt_tokens":"5","completion_tokens":7.0}"#,
            Some(Usage::new(5, 7)),
        ),
    ] {
        let body = chunks(&[r#"{"content":"a"}"#]) + &usage(figures) + &finish("stop");
        let (events, _) = read(Reply::stream(body)).await;
        let end = Completion::new()
            .with_stop_reason(StopReason::EndTurn)
            .with_usage(known);
        assert_eq!(
            events,
            [ChatEvent::text("a"), ChatEvent::Done(end)],
            "{figures}"
        );
    }
}

#[tokio::test]
async fn an_answer_is_there_when_its_end_is_known_though_the_server_keeps_the_connection() {
    let body = chunks(&[r#"{"content":"a"}"#]) + &finish("stop");
    let (events, ended) = read(Reply::stream(body).hanging()).await;
    assert_eq!(
        (events, ended),
        (
            vec![ChatEvent::text("a"), done(StopReason::EndTurn)],
            Ok(())
        )
    );
}

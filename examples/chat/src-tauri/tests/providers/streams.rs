//! Answers that begin well.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatEvent, Message, ProviderErrorKind, StopReason,
    ToolResultMessage, Usage,
};

use super::server::{DONE, Server, Step, byte_by_byte, delta, finish, frames, stream, text};
use super::{call, done, open, openai, provider, request, user};

#[tokio::test]
async fn a_stream_gives_text_usage_and_the_reason_it_stopped() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let body = text("Hel") + &text("lo") + &finish("stop") + &frames(&[usage]) + DONE;
    let events = openai(vec![stream(body)]).await;
    let done = ChatEvent::Done {
        usage: Some(Usage {
            input_tokens: Some(9),
            output_tokens: Some(4),
            cached_input_tokens: Some(5),
            reasoning_tokens: Some(2),
        }),
        stop_reason: Some(StopReason::EndTurn),
        provider_data: None,
    };
    assert_eq!(events, [ChatEvent::text("Hello"), done]);
}

#[tokio::test]
async fn zeros_are_no_usage() {
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#;
    let events = openai(vec![stream(
        text("a") + &finish("stop") + &frames(&[usage]) + DONE,
    )])
    .await;
    assert_eq!(events, [ChatEvent::text("a"), done(StopReason::EndTurn)]);
}

#[tokio::test]
async fn an_end_marker_alone_is_an_answer() {
    assert_eq!(openai(vec![stream(DONE)]).await, [ChatEvent::done()]);
}

// E1
#[tokio::test]
async fn one_byte_per_chunk_changes_nothing() {
    let call = delta(
        r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"echo","arguments":"{\"city\":\"杭州\"}"}}]}"#,
    );
    let body = text("你好🦀") + &call + &finish("tool_calls") + DONE;
    let events = openai(byte_by_byte(&body)).await;
    let expected = [
        ChatEvent::text("你好🦀"),
        ChatEvent::tool_call("c1", "echo", r#"{"city":"杭州"}"#),
        done(StopReason::ToolUse),
    ];
    assert_eq!(events, expected);
}

// E2
#[tokio::test]
async fn fragments_of_parallel_calls_find_their_call() {
    let fragment = |index: u32, rest: &str| {
        delta(&format!(r#"{{"tool_calls":[{{"index":{index},{rest}}}]}}"#))
    };
    let body = fragment(
        0,
        r#""id":"a","function":{"name":"echo","arguments":"{\"q\":"}"#,
    ) + &fragment(
        1,
        r#""id":"b","function":{"name":"echo","arguments":"{\"q\":"}"#,
    ) + &fragment(0, r#""function":{"arguments":"\"x\"}"}"#)
        + &fragment(1, r#""function":{"arguments":"\"y\"}"}"#)
        + &finish("tool_calls")
        + DONE;
    let expected = [
        ChatEvent::tool_call("a", "echo", r#"{"q":"x"}"#),
        ChatEvent::tool_call("b", "echo", r#"{"q":"y"}"#),
        done(StopReason::ToolUse),
    ];
    assert_eq!(openai(vec![stream(body)]).await, expected);
}

#[tokio::test]
async fn a_repeated_name_is_set_and_not_appended() {
    let body = delta(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{"}}]}"#,
    ) + &delta(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"}"}}]}"#,
    ) + &finish("tool_calls")
        + DONE;
    let expected = [
        ChatEvent::tool_call("a", "echo", "{}"),
        done(StopReason::ToolUse),
    ];
    assert_eq!(openai(vec![stream(body)]).await, expected);
}

// E4
#[tokio::test]
async fn comments_keep_alives_and_blank_events_are_passed_over() {
    let body = text("a")
        + ": ping\n\n:\n\nevent: ping\n\nid: 7\n\n\n\n"
        + ": OPENROUTER PROCESSING\r\n\r\n"
        + "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\r\n\r\n"
        + &finish("stop")
        + DONE;
    assert_eq!(
        openai(vec![stream(body)]).await,
        [ChatEvent::text("ab"), done(StopReason::EndTurn)]
    );
}

#[tokio::test]
async fn reasoning_comes_as_reasoning() {
    let body = delta(r#"{"reasoning_content":"hm"}"#)
        + &delta(r#"{"reasoning":"!"}"#)
        + &text("yes")
        + &finish("stop")
        + DONE;
    let expected = [
        ChatEvent::reasoning("hm!"),
        ChatEvent::text("yes"),
        done(StopReason::EndTurn),
    ];
    assert_eq!(openai(vec![stream(body)]).await, expected);
}

#[tokio::test]
async fn cut_arguments_reach_the_agent_as_they_came() {
    let body = delta(
        r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"echo","arguments":"{\"path\":\"a\",\"content\":\"hel"}}]}"#,
    ) + &finish("length")
        + DONE;
    let expected = [
        ChatEvent::tool_call("c1", "echo", r#"{"path":"a","content":"hel"#),
        done(StopReason::Length),
    ];
    assert_eq!(openai(vec![stream(body)]).await, expected);
}

#[tokio::test]
async fn the_second_request_carries_the_call_and_its_result() {
    let first = delta(
        r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"echo","arguments":"{\"q\":1}"}}]}"#,
    );
    let server = Server::start(vec![
        vec![stream(first + &finish("tool_calls") + DONE)],
        vec![stream(text("done") + &finish("stop") + DONE)],
    ])
    .await;
    let provider = provider("openai", &server.url);
    call(&provider, request("gpt-4.1", vec![user("go")])).await;
    let assistant = Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::ToolCall {
            call_id: "c1".into(),
            tool_name: "echo".into(),
            arguments: json!({ "q": 1 }).into(),
            provider_data: None,
        }],
        provider_data: None,
    });
    let result = Message::ToolResult(ToolResultMessage {
        call_id: "c1".into(),
        tool_name: "echo".into(),
        content: "one".into(),
        is_error: false,
    });
    let events = call(
        &provider,
        request("gpt-4.1", vec![user("go"), assistant, result]),
    )
    .await;
    assert_eq!(events, [ChatEvent::text("done"), done(StopReason::EndTurn)]);
    let messages = server.body(1)["messages"].clone();
    assert_eq!(
        messages[1]["tool_calls"][0]["function"]["arguments"],
        r#"{"q":1}"#
    );
    assert_eq!(
        messages[2],
        json!({ "role": "tool", "tool_call_id": "c1", "content": "one" })
    );
    assert!(server.requests()[1].contains("authorization: Bearer sk-test"));
}

#[tokio::test]
async fn an_end_of_data_without_an_end_marker_is_a_network_error() {
    for body in [String::new(), text("half"), text("half") + &finish("stop")] {
        let events = openai(vec![stream(body)]).await;
        let Some(ChatEvent::Error(error)) = events.last() else {
            panic!("{events:?}")
        };
        assert_eq!(error.kind, ProviderErrorKind::Network);
    }
}

#[tokio::test]
async fn a_frame_cut_in_the_middle_is_a_network_error() {
    let events = openai(vec![stream(
        text("half") + r#"data: {"choices":[{"delta":{"content":"ot"#,
    )])
    .await;
    assert!(
        matches!(events.as_slice(), [ChatEvent::TextDelta { .. }, ChatEvent::Error(error)] if error.kind == ProviderErrorKind::Network),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_reset_in_mid_stream_is_a_network_error() {
    let events = openai(vec![stream(text("half")), Step::Reset]).await;
    let Some(ChatEvent::Error(error)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(error.kind, ProviderErrorKind::Network);
}

#[tokio::test]
async fn the_first_error_object_ends_the_stream() {
    let body = text("a")
        + &frames(&[r#"{"error":{"message":"boom","type":"server_error"}}"#])
        + &text("b")
        + &finish("stop")
        + DONE;
    let events = openai(vec![stream(body)]).await;
    assert!(
        matches!(events.as_slice(), [ChatEvent::TextDelta { text }, ChatEvent::Error(error)]
        if text == "a" && error.kind == ProviderErrorKind::Overloaded && error.message.contains("boom")),
        "{events:?}"
    );
}

#[tokio::test]
async fn the_answer_ends_with_the_end_marker_though_the_socket_stays_open() {
    let server = Server::start(vec![vec![
        stream(text("a") + &finish("stop") + DONE),
        Step::Hold,
    ]])
    .await;
    let mut events = open(
        &provider("openai", &server.url),
        request("gpt-4.1", vec![user("hi")]),
    )
    .await;
    let mut last = None;
    while let Some(event) = tokio::time::timeout(Duration::from_secs(5), events.next())
        .await
        .unwrap()
    {
        last = Some(event);
        if last == Some(done(StopReason::EndTurn)) {
            // Still held, and the connection is given up all the same.
            server.until_closed().await;
        }
    }
    assert_eq!(last, Some(done(StopReason::EndTurn)));
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = Server::start(vec![vec![stream(text("a")), Step::Hold]]).await;
    let mut events = open(
        &provider("openai", &server.url),
        request("gpt-4.1", vec![user("hi")]),
    )
    .await;
    assert_eq!(events.next().await, Some(ChatEvent::text("a")));
    drop(events);
    server.until_closed().await;
}

#[tokio::test]
async fn a_cancelled_token_ends_the_stream() {
    use youyou_agent::ModelProvider as _;
    let server = Server::start(vec![vec![stream(text("a")), Step::Hold]]).await;
    let cancel = tokio_util::sync::CancellationToken::new();
    let provider = provider("openai", &server.url);
    let mut events = provider
        .chat(request("gpt-4.1", vec![user("hi")]), cancel.clone())
        .await
        .unwrap();
    assert_eq!(events.next().await, Some(ChatEvent::text("a")));
    cancel.cancel();
    assert_eq!(events.next().await, None);
}

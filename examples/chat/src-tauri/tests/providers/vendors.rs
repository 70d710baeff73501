//! What differs between the vendors: what goes back, and where notes and images go.

use serde_json::json;
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatEvent, ContentBlock, Message, PromptBlock, ProviderData,
    ProviderErrorKind, StopReason, ToolResultMessage, UserMessage, UserOrigin,
};

use super::server::{DONE, Server, finish, pieces, stream, text};
use super::{call, done, provider, request, user};

fn anthropic(frames: &[(&str, serde_json::Value)]) -> String {
    frames
        .iter()
        .map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"))
        .collect()
}

fn thinking_then_a_call() -> String {
    anthropic(&[
        (
            "message_start",
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "output_tokens": 1 } } }),
        ),
        (
            "content_block_start",
            json!({ "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
        ),
        (
            "content_block_delta",
            json!({ "index": 0, "delta": { "type": "thinking_delta", "thinking": "think" } }),
        ),
        ("ping", json!({ "type": "ping" })),
        (
            "content_block_delta",
            json!({ "index": 0, "delta": { "type": "signature_delta", "signature": "c2ln+/=" } }),
        ),
        ("content_block_stop", json!({ "index": 0 })),
        (
            "content_block_start",
            json!({ "index": 1, "content_block": { "type": "redacted_thinking", "data": "ENCRYPTED" } }),
        ),
        ("content_block_stop", json!({ "index": 1 })),
        (
            "content_block_start",
            json!({ "index": 2, "content_block": { "type": "tool_use", "id": "tu_1", "name": "echo", "input": {} } }),
        ),
        (
            "content_block_delta",
            json!({ "index": 2, "delta": { "type": "input_json_delta", "partial_json": "{\"q\":1}" } }),
        ),
        ("content_block_stop", json!({ "index": 2 })),
        (
            "message_delta",
            json!({ "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 20 } }),
        ),
        ("message_stop", json!({ "type": "message_stop" })),
    ])
}

fn echo_call(id: &str, provider_data: Option<ProviderData>) -> AssistantPart {
    AssistantPart::ToolCall {
        call_id: id.into(),
        tool_name: "echo".into(),
        arguments: json!({ "q": 1 }).into(),
        provider_data,
    }
}

fn echo_result(id: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        call_id: id.into(),
        tool_name: "echo".into(),
        content: "one".into(),
        is_error: false,
    })
}

#[tokio::test]
async fn anthropic_gets_its_signed_and_its_hidden_thoughts_back_byte_for_byte() {
    let end = anthropic(&[("message_stop", json!({ "type": "message_stop" }))]);
    let server = Server::start(vec![
        vec![stream(thinking_then_a_call())],
        vec![stream(end)],
    ])
    .await;
    let provider = provider("anthropic", &server.url);
    let events = call(&provider, request("claude-sonnet-4-5", vec![user("go")])).await;
    let [
        ChatEvent::ReasoningDelta { text, .. },
        call_event,
        ChatEvent::Done {
            usage,
            stop_reason,
            provider_data,
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (text.as_str(), *stop_reason),
        ("think", Some(StopReason::ToolUse))
    );
    assert!(
        matches!(call_event, ChatEvent::ToolCall { call_id, arguments, .. } if call_id == "tu_1" && arguments == r#"{"q":1}"#)
    );
    assert_eq!(usage.and_then(|usage| usage.input_tokens), Some(5));
    let assistant = Message::Assistant(AssistantMessage {
        parts: vec![
            AssistantPart::Reasoning {
                text: "think".into(),
                provider_data: None,
            },
            echo_call("tu_1", None),
        ],
        provider_data: provider_data.clone(),
    });
    call(
        &provider,
        request(
            "claude-sonnet-4-5",
            vec![user("go"), assistant, echo_result("tu_1")],
        ),
    )
    .await;
    let body = server.body(1);
    let content = body["messages"][1]["content"].clone();
    assert_eq!(
        content[0],
        json!({ "type": "thinking", "thinking": "think", "signature": "c2ln+/=" })
    );
    assert_eq!(
        content[1],
        json!({ "type": "redacted_thinking", "data": "ENCRYPTED" })
    );
    assert_eq!(content[2]["type"], "tool_use");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "tu_1");
}

#[tokio::test]
async fn anthropic_may_cache_the_stable_prompt_and_the_history() {
    let server = Server::start(vec![vec![stream("")]]).await;
    let block = |text: &str, stable| PromptBlock {
        text: text.into(),
        stable,
    };
    let mut asked = request("claude-sonnet-4-5", vec![user("hi")]);
    asked.system = [block("rules", true), block("today", false)].into();
    call(&provider("anthropic", &server.url), asked).await;
    let system = server.body(0)["system"].clone();
    assert_eq!(system[0]["text"], "rules");
    assert!(system[0].get("cache_control").is_some());
    assert_eq!(system[1], json!({ "type": "text", "text": "today" }));
}

#[tokio::test]
async fn an_event_of_anthropic_that_lost_its_name_is_an_error_and_no_gap() {
    let text = |text: &str| {
        anthropic(&[(
            "content_block_delta",
            json!({ "index": 0, "delta": { "type": "text_delta", "text": text } }),
        )])
    };
    let begin = anthropic(&[(
        "content_block_start",
        json!({ "index": 0, "content_block": { "type": "text", "text": "" } }),
    )]);
    let end = anthropic(&[("message_stop", json!({ "type": "message_stop" }))]);
    let lines = |body: String| body.replace('\n', "\r\n");
    let ask = async |script| {
        let server = Server::start(vec![script]).await;
        let provider = provider("anthropic", &server.url);
        call(&provider, request("claude-sonnet-4-5", vec![user("hi")])).await
    };

    // In one packet the ends of lines do no harm.
    let whole = ask(vec![stream(lines(
        begin.clone() + &text("a") + &text("b") + &end,
    ))])
    .await;
    assert_eq!(whole.first(), Some(&ChatEvent::text("ab")));

    // Cut between CR and LF, after the name of "b".
    let before = lines(begin + &text("a"));
    let torn = lines(text("b"));
    let (name, data) = torn.split_at(torn.find('\n').unwrap());
    let rest = data.to_owned() + &lines(text("c") + &end);
    let events = ask(pieces(&[&(before + name), &rest])).await;
    assert!(
        matches!(events.as_slice(), [ChatEvent::TextDelta { text }, ChatEvent::Error(error)]
            if text == "a" && error.kind == ProviderErrorKind::Network),
        "{events:?}"
    );
}

#[tokio::test]
async fn anthropics_error_event_ends_the_stream_with_its_kind() {
    let body = anthropic(&[(
        "error",
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
    )]);
    let server = Server::start(vec![vec![stream(body)]]).await;
    let events = call(
        &provider("anthropic", &server.url),
        request("claude-sonnet-4-5", vec![user("hi")]),
    )
    .await;
    assert_eq!(
        super::only_error(events).kind,
        ProviderErrorKind::Overloaded
    );
}

fn gemini(data: serde_json::Value) -> String {
    format!("data: {data}\n\n")
}

#[tokio::test]
async fn gemini_gets_the_signature_of_each_call_back() {
    let call_part = json!({ "functionCall": { "name": "echo", "args": { "q": 1 } }, "thoughtSignature": "c2ln" });
    let first = gemini(
        json!({ "candidates": [{ "content": { "parts": [call_part] }, "finishReason": "STOP" }] }),
    );
    let server = Server::start(vec![vec![stream(first)], vec![stream("")]]).await;
    let provider = provider("gemini", &server.url);
    let events = call(&provider, request("gemini-2.5-pro", vec![user("go")])).await;
    let [
        ChatEvent::ToolCall {
            call_id,
            provider_data,
            ..
        },
        ChatEvent::Done {
            provider_data: whole,
            ..
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    let assistant = Message::Assistant(AssistantMessage {
        parts: vec![echo_call(call_id, provider_data.clone())],
        provider_data: whole.clone(),
    });
    call(
        &provider,
        request(
            "gemini-2.5-pro",
            vec![user("go"), assistant, echo_result(call_id)],
        ),
    )
    .await;
    let contents = server.body(1)["contents"].clone();
    assert_eq!(contents[1]["parts"].as_array().map(Vec::len), Some(1));
    assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "c2ln");
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["name"], "echo");
}

#[tokio::test]
async fn gemini_ends_with_a_reason_or_it_was_cut() {
    let half = gemini(json!({ "candidates": [{ "content": { "parts": [{ "text": "half" }] } }] }));
    let whole = half.clone()
        + &gemini(
            json!({ "candidates": [{ "content": { "parts": [{ "text": "!" }] }, "finishReason": "STOP" }] }),
        );
    let server = Server::start(vec![vec![stream(half)], vec![stream(whole)]]).await;
    let provider = provider("gemini", &server.url);
    let events = call(&provider, request("gemini-2.5-pro", vec![user("hi")])).await;
    assert!(
        matches!(events.as_slice(), [ChatEvent::TextDelta { .. }, ChatEvent::Error(error)] if error.kind == ProviderErrorKind::Network),
        "{events:?}"
    );
    let events = call(&provider, request("gemini-2.5-pro", vec![user("hi")])).await;
    assert_eq!(events.first(), Some(&ChatEvent::text("half!")));
    assert!(
        matches!(
            events.last(),
            Some(ChatEvent::Done {
                stop_reason: Some(StopReason::EndTurn),
                ..
            })
        ),
        "{events:?}"
    );
}

#[tokio::test]
async fn data_of_another_provider_is_left_out() {
    let server = Server::start(vec![vec![stream(text("a") + &finish("stop") + DONE)]]).await;
    let assistant = Message::Assistant(AssistantMessage {
        parts: vec![
            AssistantPart::Reasoning {
                text: "secret thought".into(),
                provider_data: Some(ProviderData("?".into())),
            },
            AssistantPart::Text {
                text: "hello".into(),
            },
        ],
        provider_data: Some(ProviderData("no json".into())),
    });
    let asked = request("gpt-4.1", vec![user("hi"), assistant, user("go on")]);
    let events = call(&provider("openai", &server.url), asked).await;
    assert_eq!(events, [ChatEvent::text("a"), done(StopReason::EndTurn)]);
    assert_eq!(
        server.body(0)["messages"][1],
        json!({ "role": "assistant", "content": "hello" })
    );
}

#[tokio::test]
async fn notes_files_and_images_become_one_message_of_the_user() {
    for vendor in ["openai", "anthropic"] {
        let server = Server::start(vec![vec![stream("")]]).await;
        let said = Message::User(UserMessage {
            content: vec![
                ContentBlock::file("notes.txt", "alpha"),
                ContentBlock::image("image/png", "aGk="),
                ContentBlock::text("what is this?"),
            ],
            origin: UserOrigin::Input,
        });
        let skill = Message::User(UserMessage {
            content: vec![ContentBlock::text("SKILL")],
            origin: UserOrigin::Skill,
        });
        let model = if vendor == "openai" {
            "gpt-4.1"
        } else {
            "claude-sonnet-4-5"
        };
        let note = Message::System("[interrupted]".into());
        call(
            &provider(vendor, &server.url),
            request(model, vec![note, skill, said]),
        )
        .await;
        let body = server.body(0);
        assert!(body.get("system").is_none(), "{body}");
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
        let content = body["messages"][0]["content"].clone();
        assert_eq!(content[0]["text"], "[interrupted]");
        assert_eq!(content[1]["text"], "SKILL");
        assert!(
            content[2]["text"]
                .as_str()
                .is_some_and(|text| text.contains("notes.txt") && text.contains("alpha"))
        );
        let image = &content[3];
        assert!(
            image["image_url"]["url"] == "data:image/png;base64,aGk="
                || image["source"]["data"] == "aGk=",
            "{image}"
        );
        assert_eq!(content[4]["text"], "what is this?");
    }
}

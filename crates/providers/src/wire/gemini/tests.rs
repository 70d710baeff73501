use serde_json::{Value, json};
use youyou_agent::{
    AssistantPart, ChatEvent, ChatRequest, Completion, ContentBlock, Message, PromptBlock,
    ProviderError, ProviderErrorKind, ReasoningEffort, ResponseFormat, StopReason, ToolSpec, Usage,
    UserMessage, UserOrigin,
};

use super::{decoder, request};
use crate::wire::Target;
use crate::wire::testing::{after, json, read, shown, stored, target, user};

fn gemini(model: &str) -> Target {
    Target {
        model: model.into(),
        ..target()
    }
}

fn read_all(chunks: &[Value]) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let frames: Vec<String> = chunks.iter().map(Value::to_string).collect();
    let frames: Vec<_> = frames.iter().map(|data| (None, &**data)).collect();
    read(&mut *decoder(&target()), &frames)
}

fn parts(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] })
}

fn end(reason: &str) -> Value {
    json!({ "candidates": [{ "finishReason": reason }] })
}

fn done(reason: StopReason) -> ChatEvent {
    ChatEvent::Done(Completion::new().with_stop_reason(reason))
}

/// What goes back of an answer of these chunks.
fn back(chunks: &[Value], target: &Target) -> Value {
    let (events, result) = read_all(chunks);
    assert_eq!(result, Ok(()));
    json(request(&after(stored(&events)), target))["contents"][1]["parts"].clone()
}

#[test]
fn text_thoughts_usage_and_the_end() {
    let (events, result) = read_all(&[
        parts(json!([{ "text": "hm", "thought": true }])),
        parts(json!([{ "text": "Hel" }])),
        json!({
            "candidates": [{ "content": { "parts": [{ "text": "lo" }] }, "finishReason": "STOP" }],
            "usageMetadata": {
                "promptTokenCount": 10, "cachedContentTokenCount": 4, "toolUsePromptTokenCount": 1,
                "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 23,
            },
        }),
    ]);
    let mut usage = Usage::new(11, 12);
    usage.cached_input_tokens = Some(4);
    usage.reasoning_tokens = Some(7);
    let end = Completion::new()
        .with_usage(usage)
        .with_stop_reason(StopReason::EndTurn);
    assert_eq!(result, Ok(()));
    assert_eq!(
        events,
        [
            ChatEvent::reasoning("hm"),
            ChatEvent::text("Hel"),
            ChatEvent::text("lo"),
            ChatEvent::Done(end),
        ]
    );
}

#[test]
fn a_signature_stays_on_its_part() {
    let chunks = [
        parts(json!([{ "text": "signed", "thoughtSignature": "S" }])),
        parts(json!([{ "functionCall": { "name": "read", "args": { "path": "a" } } }])),
        end("STOP"),
    ];
    assert_eq!(
        back(&chunks, &gemini("gemini-3-pro")),
        json!([
            { "text": "signed", "thoughtSignature": "S" },
            { "functionCall": { "name": "read", "args": { "path": "a" } } },
        ])
    );
}

#[test]
fn signatures_on_text_empty_text_thoughts_and_calls_go_back_as_they_came() {
    let chunks = [
        parts(json!([{ "text": "thinking", "thought": true, "thoughtSignature": "S0" }])),
        parts(json!([{ "text": "unsigned " }])),
        parts(json!([{ "text": "signed", "thoughtSignature": "S1" }])),
        parts(json!([{ "text": "more" }])),
        parts(json!([{ "text": "", "thoughtSignature": "S2" }])),
        parts(json!([
            { "functionCall": { "id": "f1", "name": "read", "args": { "path": "a", "big": 1.50 } },
              "thoughtSignature": "S3" },
            { "functionCall": { "id": "f2", "name": "read" } },
        ])),
        parts(json!([{ "executableCode": { "code": "1" } }])),
        end("STOP"),
    ];
    let expected = json!([
        { "text": "thinking", "thought": true, "thoughtSignature": "S0" },
        { "text": "unsigned " },
        { "text": "signed", "thoughtSignature": "S1" },
        { "text": "more" },
        { "text": "", "thoughtSignature": "S2" },
        { "functionCall": { "id": "f1", "name": "read", "args": { "path": "a", "big": 1.50 } },
          "thoughtSignature": "S3" },
        { "functionCall": { "id": "f2", "name": "read" } },
        { "executableCode": { "code": "1" } },
    ]);
    assert_eq!(back(&chunks, &gemini("gemini-3-pro")), expected);
    let (events, _) = read_all(&chunks);
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(
        body["contents"][2]["parts"],
        json!([
            { "functionResponse": { "id": "f1", "name": "read", "response": { "output": "done" } } },
            { "functionResponse": { "id": "f2", "name": "read", "response": { "output": "done" } } },
        ])
    );
}

#[test]
fn a_call_of_another_model_has_a_stand_in_for_its_signature() {
    let chunks = [
        parts(json!([
            { "functionCall": { "name": "read", "args": { "path": "a" } }, "thoughtSignature": "S" },
            { "functionCall": { "name": "read", "args": { "path": "b" } } },
        ])),
        end("STOP"),
    ];
    let call = |path: &str| json!({ "name": "read", "args": { "path": path } });
    let elsewhere = |model: &str| Target {
        vendor: "elsewhere".into(),
        ..gemini(model)
    };
    assert_eq!(
        back(&chunks, &elsewhere("gemini-3-pro")),
        json!([
            { "functionCall": call("a"), "thoughtSignature": "skip_thought_signature_validator" },
            { "functionCall": call("b") },
        ])
    );
    assert_eq!(
        back(&chunks, &elsewhere("gemini-2.5-pro")),
        json!([{ "functionCall": call("a") }, { "functionCall": call("b") }])
    );
}

#[test]
fn an_edited_text_goes_back_without_its_signature() {
    let (events, _) = read_all(&[
        parts(json!([{ "text": "a", "thoughtSignature": "S" }])),
        end("STOP"),
    ]);
    let mut answer = stored(&events);
    if let AssistantPart::Text { text, .. } = &mut answer.parts[0] {
        *text = "b".into();
    }
    let body = json(request(&after(answer), &target()));
    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "b" }]));
}

#[test]
fn an_end_without_content_is_told_for_what_it_is() {
    for word in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "MISSING_THOUGHT_SIGNATURE",
        "OTHER",
    ] {
        let (events, result) = read_all(&[end(word)]);
        let error = result.unwrap_err();
        assert!(
            error.kind.is_retryable() && error.message.contains(word),
            "{word}"
        );
        assert_eq!(events, []);
    }
    for word in [
        "SAFETY",
        "RECITATION",
        "PROHIBITED_CONTENT",
        "BLOCKLIST",
        "SPII",
        "LANGUAGE",
    ] {
        let (events, result) = read_all(&[end(word)]);
        assert_eq!(
            (events, result),
            (vec![done(StopReason::ContentFilter)], Ok(())),
            "{word}"
        );
    }
    let (events, _) = read_all(&[end("MAX_TOKENS")]);
    assert_eq!(events, [done(StopReason::Length)]);
}

#[test]
fn an_unknown_end_after_text_is_told() {
    let (events, result) = read_all(&[
        parts(json!([{ "text": "a" }])),
        json!({ "candidates": [{ "finishReason": "OTHER", "finishMessage": "m" }] }),
    ]);
    assert_eq!(result, Ok(()));
    let warning = |message: &str| ChatEvent::Warning {
        message: message.to_owned(),
    };
    assert_eq!(
        events,
        [
            ChatEvent::text("a"),
            warning("Test stopped for a reason unknown here (OTHER)"),
            warning("Test says: m"),
            done(StopReason::Other),
        ]
    );
}

#[test]
fn a_blocked_request_is_a_filter_that_is_told() {
    let (events, result) = read_all(&[json!({ "promptFeedback": { "blockReason": "SAFETY" } })]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        events,
        [
            ChatEvent::Warning {
                message: "Test blocked the request (SAFETY)".to_owned()
            },
            done(StopReason::ContentFilter),
        ]
    );
}

#[test]
fn a_stream_without_an_end_is_torn_and_an_error_is_its_own() {
    for chunks in [vec![], vec![parts(json!([{ "text": "half" }]))]] {
        let (_, result) = read_all(&chunks);
        assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Network);
    }
    let (_, result) = read(&mut *decoder(&target()), &[(None, "{\"candidates\":")]);
    assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Network);
    for error in [
        json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }),
        json!([{ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }]),
    ] {
        let (events, result) = read_all(&[parts(json!([{ "text": "half" }])), error]);
        assert_eq!(events, [ChatEvent::text("half")]);
        assert!(result.unwrap_err().message.contains("busy"));
    }
}

#[test]
fn a_whole_answer_in_place_of_a_stream_is_read_alone_and_in_a_list() {
    let chunk = json!({
        "candidates": [{
            "content": { "parts": [
                { "text": "a" },
                { "functionCall": { "name": "read", "args": "{\"path\":\"x\"}" } },
            ] },
            "finishReason": "STOP",
        }],
        "error": null,
    });
    for body in [chunk.clone(), json!([chunk])] {
        let mut events = std::collections::VecDeque::new();
        let result = decoder(&target()).body(&body.to_string(), &mut events);
        assert_eq!(result, Ok(()));
        let events: Vec<_> = events.into();
        assert_eq!(
            shown(&events),
            [
                ChatEvent::text("a"),
                ChatEvent::tool_call("", "read", r#"{"path":"x"}"#),
                done(StopReason::EndTurn),
            ]
        );
    }
    for body in [
        "{}",
        "[]",
        "no",
        r#"[{"error":{"message":"API key not valid"}}]"#,
    ] {
        let mut events = std::collections::VecDeque::new();
        assert!(
            decoder(&target()).body(body, &mut events).is_err(),
            "{body}"
        );
    }
}

#[test]
fn an_answer_cut_at_the_servers_own_limit_goes_on_by_itself() {
    let sent = request(&ChatRequest::new("m", [user("hi")]), &target()).unwrap();
    let mut decoder = decoder(&target());
    let mut events = std::collections::VecDeque::new();
    let mut feed = |decoder: &mut dyn crate::wire::Decoder, chunk: Value| {
        let data = chunk.to_string();
        let frame = crate::wire::Frame {
            event: None,
            data: &data,
        };
        decoder.frame(frame, &mut events).unwrap();
    };
    feed(
        &mut *decoder,
        json!({ "candidates": [{
        "content": { "parts": [{ "text": "half " }] },
        "finishReason": "CONTINUATION", "continuationToken": "T1",
    }] }),
    );
    let second = decoder.continuation(&sent.body).unwrap();
    let body: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(body["continuationToken"], "T1");
    assert_eq!(body["contents"], json(Ok(sent))["contents"]);
    assert!(!decoder.is_over());
    feed(&mut *decoder, parts(json!([{ "text": "whole" }])));
    feed(&mut *decoder, end("STOP"));
    assert_eq!(decoder.continuation(&second), None);
    assert!(decoder.is_over());
    decoder.end(&mut events).unwrap();
    assert_eq!(
        events,
        [
            ChatEvent::text("half "),
            ChatEvent::text("whole"),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn the_request_has_everything_in_its_place() {
    let mut with = ChatRequest::new(
        "m",
        [
            Message::User(UserMessage {
                content: vec![
                    ContentBlock::text("look"),
                    ContentBlock::image("image/png", "QUJD"),
                    ContentBlock::file("a.txt", "alpha"),
                ],
                origin: UserOrigin::Input,
            }),
            Message::System("a note".into()),
        ],
    );
    with.system = [PromptBlock {
        text: "You help.".into(),
        stable: true,
    }]
    .into();
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    with.tools = [
        ToolSpec {
            name: "now".into(),
            description: "Tells the time.".to_owned(),
            parameters: json!({ "type": "object", "properties": {} }),
        },
        ToolSpec {
            name: "read".into(),
            description: "Reads.".to_owned(),
            parameters: schema.clone(),
        },
    ]
    .into();
    with.temperature = Some(0.7);
    with.max_tokens = Some(1_000);
    with.reasoning_effort = Some(ReasoningEffort::High);
    with.response_format = Some(ResponseFormat::json_schema("answer", schema.clone()));
    let outgoing = request(&with, &gemini("gemini-3.8-flash")).unwrap();
    assert_eq!(
        outgoing.path,
        "models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        serde_json::from_str::<Value>(&outgoing.body).unwrap(),
        json!({
            "systemInstruction": { "parts": [{ "text": "You help." }] },
            "tools": [{ "functionDeclarations": [
                { "name": "now", "description": "Tells the time." },
                { "name": "read", "description": "Reads.", "parametersJsonSchema": schema },
            ] }],
            "generationConfig": {
                "temperature": 0.7,
                "maxOutputTokens": 1000,
                "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "high" },
                "responseMimeType": "application/json",
                "responseJsonSchema": schema,
            },
            "contents": [{ "role": "user", "parts": [
                { "text": "look" },
                { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
                { "text": "File \"a.txt\":\n\nalpha" },
                { "text": "a note" },
            ] }],
        })
    );
}

use serde_json::{Value, json};
use youyou_agent::{
    ChatEvent, ChatRequest, Completion, ContentBlock, Message, PromptBlock, ProviderErrorKind,
    ReasoningEffort, ResponseFormat, StopReason, ToolResultMessage, ToolSpec, Usage, UserMessage,
    UserOrigin,
};

use super::{decoder, request};
use crate::wire::testing::{after, json, read, shown, stored, target, user};
use crate::wire::{Decoder, Frame, Target};

fn claude(model: &str) -> Target {
    Target {
        model: model.into(),
        ..target()
    }
}

/// A stream of these frames, each named by its type.
fn stream(frames: &[Value]) -> Vec<(Option<&'static str>, String)> {
    frames
        .iter()
        .map(|frame| (None, frame.to_string()))
        .collect()
}

fn read_all(frames: &[Value]) -> (Vec<ChatEvent>, Result<(), youyou_agent::ProviderError>) {
    let frames = stream(frames);
    let frames: Vec<_> = frames
        .iter()
        .map(|(event, data)| (*event, &**data))
        .collect();
    read(&mut *decoder(&target()), &frames)
}

fn start(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
        json!({ "type": "message_stop" }),
    ]
}

fn text(index: u64, text: &str) -> [Value; 3] {
    [
        start(index, json!({ "type": "text", "text": "" })),
        delta(index, json!({ "type": "text_delta", "text": text })),
        stop(index),
    ]
}

fn thinking(index: u64, text: &str, signature: &str) -> [Value; 4] {
    [
        start(
            index,
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(index, json!({ "type": "thinking_delta", "thinking": text })),
        delta(
            index,
            json!({ "type": "signature_delta", "signature": signature }),
        ),
        stop(index),
    ]
}

fn call(index: u64, id: &str, input: &[&str]) -> Vec<Value> {
    let block = json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    let mut frames = vec![start(index, block)];
    frames.extend(input.iter().map(|piece| {
        delta(
            index,
            json!({ "type": "input_json_delta", "partial_json": piece }),
        )
    }));
    frames.push(stop(index));
    frames
}

fn done(reason: StopReason) -> ChatEvent {
    ChatEvent::Done(Completion::new().with_stop_reason(reason))
}

#[test]
fn text_usage_and_the_end() {
    let mut frames = vec![json!({ "type": "message_start", "message": {
        "id": "msg_1", "content": [],
        "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 30, "output_tokens": 1,
        },
    } })];
    frames.extend(text(0, "Hello"));
    frames.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "output_tokens": 15, "output_tokens_details": { "thinking_tokens": 4 } } }),
    );
    frames.push(json!({ "type": "message_stop" }));
    let mut usage = Usage::new(60, 15);
    usage.cached_input_tokens = Some(30);
    usage.reasoning_tokens = Some(4);
    let end = Completion::new()
        .with_usage(usage)
        .with_stop_reason(StopReason::EndTurn);
    assert_eq!(
        read_all(&frames),
        (vec![ChatEvent::text("Hello"), ChatEvent::Done(end)], Ok(()))
    );
}

#[test]
fn thinking_between_calls_goes_back_in_its_place() {
    let mut frames = Vec::new();
    frames.extend(thinking(
        0,
        "first thought, long enough to be cut out",
        "S1",
    ));
    frames.extend(call(1, "toolu_1", &["{\"path\":", "\"a\"}"]));
    frames.extend(thinking(2, "second", "S2"));
    frames.extend(text(3, "between"));
    frames.push(start(
        4,
        json!({ "type": "redacted_thinking", "data": "D" }),
    ));
    frames.push(stop(4));
    frames.extend(call(5, "toolu_2", &[]));
    frames.extend(end("tool_use"));
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("first thought, long enough to be cut out"),
            ChatEvent::tool_call("toolu_1", "read", r#"{"path":"a"}"#),
            ChatEvent::reasoning("second"),
            ChatEvent::text("between"),
            ChatEvent::tool_call("toolu_2", "read", ""),
            done(StopReason::EndTurn),
        ]
    );
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(
        body["messages"][1],
        json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "first thought, long enough to be cut out",
              "signature": "S1" },
            { "type": "tool_use", "id": "toolu_1", "name": "read", "input": { "path": "a" } },
            { "type": "thinking", "thinking": "second", "signature": "S2" },
            { "type": "text", "text": "between" },
            { "type": "redacted_thinking", "data": "D" },
            { "type": "tool_use", "id": "toolu_2", "name": "read", "input": {} },
        ] })
    );
    assert_eq!(
        body["messages"][2],
        json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "content": "done" },
            { "type": "tool_result", "tool_use_id": "toolu_2", "content": "done" },
        ] })
    );
}

#[test]
fn text_between_two_thoughts_and_a_thought_without_text_go_back() {
    let mut frames = Vec::new();
    frames.extend(thinking(0, "a", "S1"));
    frames.extend(text(1, "b"));
    frames.extend(thinking(2, "c", "S2"));
    frames.push(start(
        3,
        json!({ "type": "thinking", "thinking": "", "signature": "" }),
    ));
    frames.push(delta(
        3,
        json!({ "type": "signature_delta", "signature": "S3" }),
    ));
    frames.push(stop(3));
    frames.extend(text(4, "d"));
    frames.extend(end("end_turn"));
    let (events, _) = read_all(&frames);
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "a", "signature": "S1" },
            { "type": "text", "text": "b" },
            { "type": "thinking", "thinking": "c", "signature": "S2" },
            { "type": "thinking", "thinking": "", "signature": "S3" },
            { "type": "text", "text": "d" },
        ])
    );
}

#[test]
fn thinking_stays_with_the_vendor_and_family_it_came_from_and_is_dropped_when_edited() {
    let mut frames = Vec::new();
    frames.extend(thinking(0, "a", "S1"));
    frames.extend(text(1, "b"));
    frames.extend(end("end_turn"));
    let (events, _) = read_all(&frames);
    let mut answer = stored(&events);
    let elsewhere = Target {
        family: "other".into(),
        ..target()
    };
    let only_text = json!([{ "type": "text", "text": "b" }]);
    let body = json(request(&after(answer.clone()), &elsewhere));
    assert_eq!(body["messages"][1]["content"], only_text);
    if let youyou_agent::AssistantPart::Reasoning { text, .. } = &mut answer.parts[0] {
        *text = "edited".into();
    }
    let body = json(request(&after(answer), &target()));
    assert_eq!(body["messages"][1]["content"], only_text);
}

#[test]
fn citations_and_unknown_blocks_are_handed_on() {
    let mut frames = Vec::new();
    frames.extend(text(0, "Says: "));
    frames.push(start(
        1,
        json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} }),
    ));
    frames.push(delta(
        1,
        json!({ "type": "input_json_delta", "partial_json": "{\"query\":\"q\"}" }),
    ));
    frames.push(stop(1));
    frames.push(start(
        2,
        json!({ "type": "web_search_tool_result", "tool_use_id": "s1", "content": [1] }),
    ));
    frames.push(stop(2));
    frames.extend(text(3, "A"));
    frames.push(start(
        4,
        json!({ "type": "text", "text": "", "citations": [] }),
    ));
    frames.push(delta(4, json!({ "type": "text_delta", "text": "B" })));
    frames.push(delta(
        4,
        json!({ "type": "citations_delta", "citation": { "url": "u" } }),
    ));
    frames.push(stop(4));
    frames.extend(end("end_turn"));
    let (events, _) = read_all(&frames);
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "text", "text": "Says: " },
            { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "q" } },
            { "type": "web_search_tool_result", "tool_use_id": "s1", "content": [1] },
            { "type": "text", "text": "A" },
            { "type": "text", "text": "B", "citations": [{ "url": "u" }] },
        ])
    );
}

#[test]
fn everything_in_the_start_of_the_block_is_kept() {
    let mut frames = vec![
        start(
            0,
            json!({ "type": "thinking", "thinking": "t", "signature": "S" }),
        ),
        stop(0),
        start(1, json!({ "type": "text", "text": "whole" })),
        stop(1),
        start(
            2,
            json!({ "type": "tool_use", "id": "c1", "name": "read", "input": { "path": "src" } }),
        ),
        stop(2),
        start(
            3,
            json!({ "type": "tool_use", "id": "c2", "name": "read", "input": "{\"path\":1}" }),
        ),
        stop(3),
    ];
    frames.extend(end("tool_use"));
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("t"),
            ChatEvent::text("whole"),
            ChatEvent::tool_call("c1", "read", r#"{"path":"src"}"#),
            ChatEvent::tool_call("c2", "read", r#"{"path":1}"#),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn calls_written_side_by_side_come_out_whole_and_in_order() {
    let block = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    let piece = |index, text: &str| {
        delta(
            index,
            json!({ "type": "input_json_delta", "partial_json": text }),
        )
    };
    let mut frames = vec![
        start(0, block("a")),
        start(1, block("b")),
        piece(0, "{\"q\":"),
        piece(1, "{\"q\":"),
        piece(1, "\"y\"}"),
        stop(1),
        piece(0, "\"x\"}"),
        stop(0),
    ];
    frames.extend(end("tool_use"));
    let (events, _) = read_all(&frames);
    assert_eq!(
        shown(&events),
        [
            ChatEvent::tool_call("a", "read", r#"{"q":"x"}"#),
            ChatEvent::tool_call("b", "read", r#"{"q":"y"}"#),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn blocks_without_an_end_or_an_index_are_kept() {
    let frames = vec![
        json!({ "type": "content_block_start", "content_block": { "type": "thinking", "thinking": "" } }),
        json!({ "type": "content_block_delta", "delta": { "type": "thinking_delta", "thinking": "t" } }),
        json!({ "type": "content_block_start", "content_block": { "type": "tool_use", "id": "c", "name": "read" } }),
        json!({ "type": "content_block_delta", "delta": { "partial_json": "{}" } }),
        json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "x" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
    ];
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("t"),
            ChatEvent::tool_call("c", "read", "{}"),
            ChatEvent::text("x"),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn broken_arguments_stay_text() {
    let mut frames = call(0, "c", &["{\"path\": \"a"]);
    frames.extend(end("max_tokens"));
    let (events, _) = read_all(&frames);
    assert_eq!(
        events,
        [
            ChatEvent::tool_call("c", "read", "{\"path\": \"a"),
            done(StopReason::Length),
        ]
    );
}

#[test]
fn the_end_says_why() {
    for (word, reason) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refusal),
    ] {
        let mut frames = text(0, "a").to_vec();
        frames.extend(end(word));
        let (events, result) = read_all(&frames);
        assert_eq!(
            (events.last(), result),
            (Some(&done(reason)), Ok(())),
            "{word}"
        );
    }
}

#[test]
fn an_unknown_reason_is_told() {
    let (events, result) = read_all(&end("bored"));
    assert_eq!(result, Ok(()));
    assert_eq!(
        events,
        [
            ChatEvent::Warning {
                message: "Test stopped for a reason unknown here (bored)".to_owned()
            },
            done(StopReason::Other),
        ]
    );
}

#[test]
fn a_refusal_without_text_shows_the_explanation() {
    let frames = [
        json!({ "type": "message_delta", "delta": { "stop_reason": "refusal",
            "stop_details": { "type": "refusal", "explanation": "Not this." } } }),
        json!({ "type": "message_stop" }),
    ];
    let (events, _) = read_all(&frames);
    assert_eq!(
        events,
        [ChatEvent::text("Not this."), done(StopReason::Refusal)]
    );
}

#[test]
fn an_error_in_the_stream_ends_it_with_its_reason() {
    let mut frames = text(0, "half").to_vec();
    frames.push(json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }));
    let (events, result) = read_all(&frames);
    assert_eq!(events, [ChatEvent::text("half")]);
    assert!(result.unwrap_err().message.contains("Overloaded"));
}

#[test]
fn a_stream_without_an_end_is_torn() {
    for frames in [vec![], text(0, "half").to_vec(), call(0, "c", &["{}"])] {
        let (_, result) = read_all(&frames);
        assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Network);
    }
    let (_, result) = read(&mut *decoder(&target()), &[(None, "{\"type\":\"mess")]);
    assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Network);
}

#[test]
fn events_are_known_by_their_name_where_the_data_has_no_type() {
    let frames = [
        (Some("ping"), "{}"),
        (
            Some("content_block_start"),
            r#"{"index":0,"content_block":{"type":"text","text":"a"}}"#,
        ),
        (
            Some("message_delta"),
            r#"{"delta":{"stop_reason":"end_turn"}}"#,
        ),
        (Some("message_stop"), "{}"),
    ];
    let (events, result) = read(&mut *decoder(&target()), &frames);
    assert_eq!(result, Ok(()));
    assert_eq!(events, [ChatEvent::text("a"), done(StopReason::EndTurn)]);
}

fn feed(decoder: &mut dyn Decoder, frames: &[Value]) -> Vec<ChatEvent> {
    let mut events = std::collections::VecDeque::new();
    for frame in frames {
        let data = frame.to_string();
        let frame = Frame {
            event: None,
            data: &data,
        };
        decoder.frame(frame, &mut events).unwrap();
    }
    events.into()
}

#[test]
fn a_paused_answer_goes_on_by_itself() {
    let sent = request(&ChatRequest::new("m", [user("hi")]), &target()).unwrap();
    let mut decoder = decoder(&target());
    let mut frames = vec![
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "output_tokens": 1 } } }),
    ];
    frames.extend(thinking(0, "t", "S"));
    frames.extend(text(1, "half"));
    frames.extend(end("pause_turn"));
    let mut events = feed(&mut *decoder, &frames);
    let second = decoder.continuation(&sent.body).unwrap();
    assert_eq!(decoder.continuation(&sent.body), None, "it is taken once");
    let blocks = json!([
        { "type": "thinking", "thinking": "t", "signature": "S" },
        { "type": "text", "text": "half" },
    ]);
    let body: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(
        body["messages"][1],
        json!({ "role": "assistant", "content": blocks })
    );

    let mut frames = text(0, " and").to_vec();
    frames.extend(end("pause_turn"));
    events.extend(feed(&mut *decoder, &frames));
    let third = decoder.continuation(&second).unwrap();
    let body: Value = serde_json::from_str(&third).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        body["messages"][1]["content"][2],
        json!({ "type": "text", "text": " and" })
    );

    let mut frames = text(0, " whole").to_vec();
    frames.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "input_tokens": 7, "output_tokens": 2 } }),
    );
    frames.push(json!({ "type": "message_stop" }));
    events.extend(feed(&mut *decoder, &frames));
    let end = Completion::new()
        .with_usage(Usage::new(12, 3))
        .with_stop_reason(StopReason::EndTurn);
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("t"),
            ChatEvent::text("half"),
            ChatEvent::text(" and"),
            ChatEvent::text(" whole"),
            ChatEvent::Done(end),
        ]
    );
}

#[test]
fn a_pause_without_anything_said_is_a_failure_and_pauses_have_a_limit() {
    let (_, result) = read_all(&end("pause_turn"));
    assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Overloaded);
    let mut decoder = decoder(&target());
    let mut sent = request(&ChatRequest::new("m", [user("hi")]), &target())
        .unwrap()
        .body;
    let mut frames = text(0, "a").to_vec();
    frames.extend(end("pause_turn"));
    for _ in 0..20 {
        feed(&mut *decoder, &frames);
        sent = decoder.continuation(&sent).unwrap();
    }
    let events = feed(&mut *decoder, &frames);
    assert_eq!(events.last(), Some(&done(StopReason::Other)));
}

#[test]
fn a_whole_answer_in_place_of_a_stream_is_read() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant",
        "content": [
            { "type": "thinking", "thinking": "t", "signature": "S" },
            { "type": "text", "text": "a" },
            { "type": "tool_use", "id": "c", "name": "read", "input": { "path": "x" } },
        ],
        "stop_reason": "tool_use",
        "usage": { "input_tokens": 3, "output_tokens": 4 },
    });
    let mut events = std::collections::VecDeque::new();
    let mut decoder = decoder(&target());
    assert_eq!(decoder.body(&body.to_string(), &mut events), Ok(()));
    let end = Completion::new()
        .with_usage(Usage::new(3, 4))
        .with_stop_reason(StopReason::EndTurn);
    let events: Vec<_> = events.into();
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("t"),
            ChatEvent::text("a"),
            ChatEvent::tool_call("c", "read", r#"{"path":"x"}"#),
            ChatEvent::Done(end),
        ]
    );
}

#[test]
fn an_error_in_place_of_a_stream_is_an_error() {
    for body in [
        r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#,
        r#"{"detail":"bad key"}"#,
        "bad key",
    ] {
        let mut events = std::collections::VecDeque::new();
        let error = decoder(&target()).body(body, &mut events).unwrap_err();
        assert!(!error.message.is_empty() && events.is_empty());
    }
}

#[test]
fn the_request_has_everything_in_its_place() {
    let mut request_ = ChatRequest::new(
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
    request_.system = [
        PromptBlock {
            text: "You help.".into(),
            stable: true,
        },
        PromptBlock {
            text: "Rules.".into(),
            stable: true,
        },
        PromptBlock {
            text: "Today is Friday.".into(),
            stable: false,
        },
    ]
    .into();
    request_.tools = [
        ToolSpec {
            name: "now".into(),
            description: "Tells the time.".to_owned(),
            parameters: json!({}),
        },
        ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        },
    ]
    .into();
    request_.temperature = Some(0.7);
    request_.max_tokens = Some(1_000);
    let mut target = claude("claude-sonnet-4-5");
    target.quirks.cache_marks = true;
    let outgoing = request(&request_, &target).unwrap();
    assert_eq!(outgoing.path, "messages");
    assert_eq!(
        outgoing.headers,
        [("anthropic-version", "2023-06-01".to_owned())]
    );
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(
        serde_json::from_str::<Value>(&outgoing.body).unwrap(),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 1000,
            "stream": true,
            "temperature": 0.7,
            "tools": [
                { "name": "now", "description": "Tells the time.",
                  "input_schema": { "type": "object", "properties": {} } },
                { "name": "read",
                  "input_schema": { "type": "object", "properties": { "path": { "type": "string" } } } },
            ],
            "system": [
                { "type": "text", "text": "You help." },
                { "type": "text", "text": "Rules.", "cache_control": mark },
                { "type": "text", "text": "Today is Friday." },
            ],
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "look" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } },
                { "type": "text", "text": "File \"a.txt\":\n\nalpha" },
                { "type": "text", "text": "a note", "cache_control": mark },
            ] }],
        })
    );
}

#[test]
fn effort_and_shape_go_where_the_generation_takes_them() {
    let mut with = ChatRequest::new("m", [user("hi")]);
    with.reasoning_effort = Some(ReasoningEffort::High);
    with.temperature = Some(0.5);
    with.response_format = Some(ResponseFormat::json_schema(
        "answer",
        json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
    ));
    let outgoing = request(&with, &claude("claude-opus-5-5")).unwrap();
    assert_eq!(
        outgoing.headers[1],
        (
            "anthropic-beta",
            "thinking-binding-controls-2026-08-01".to_owned()
        )
    );
    let body: Value = serde_json::from_str(&outgoing.body).unwrap();
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body["thinking"]["type"], "adaptive");
    assert_eq!(
        body["output_config"],
        json!({ "effort": "high", "format": { "type": "json_schema", "schema": {
            "type": "object", "properties": { "a": { "type": "string" } },
            "additionalProperties": false,
        } } })
    );
    let refused = request(&with, &claude("claude-3-5-sonnet-latest")).unwrap_err();
    assert_eq!(refused.kind, ProviderErrorKind::UnsupportedContent);
}

#[test]
fn a_round_that_another_model_began_goes_on_without_a_budget() {
    let mut frames = call(0, "functions.read:0", &["{}"]);
    frames.extend(end("tool_use"));
    let (events, _) = read_all(&frames);
    let mut after = after(stored(&events));
    after.reasoning_effort = Some(ReasoningEffort::High);
    let elsewhere = Target {
        vendor: "elsewhere".into(),
        ..claude("claude-sonnet-4-5")
    };
    let body = json(request(&after, &elsewhere));
    assert_eq!(body.get("thinking"), None);
    // The id is one that this server takes, in the call as in its result.
    let id = &body["messages"][1]["content"][0]["id"];
    assert_eq!(id, &body["messages"][2]["content"][0]["tool_use_id"]);
    assert!(!id.as_str().unwrap().contains('.'));
    // To where it came from it goes back as it was.
    let body = json(request(&after, &claude("claude-sonnet-4-5")));
    assert_eq!(body["messages"][1]["content"][0]["id"], "functions.read:0");
    assert_eq!(
        body["messages"][2]["content"][0]["tool_use_id"],
        "functions.read:0"
    );
}

#[test]
fn results_come_first_and_errors_are_told() {
    let mut frames = call(0, "c1", &["{}"]);
    frames.extend(end("tool_use"));
    let (events, _) = read_all(&frames);
    let mut messages: Vec<Message> = vec![user("hi"), Message::Assistant(stored(&events))];
    messages.push(Message::System("a note".into()));
    messages.push(Message::ToolResult(ToolResultMessage {
        call_id: "c1".into(),
        tool_name: "read".into(),
        content: "no such file".into(),
        is_error: true,
    }));
    messages.push(user("and now?"));
    let body = json(request(&ChatRequest::new("m", messages), &target()));
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": true },
            { "type": "text", "text": "a note" },
            { "type": "text", "text": "and now?" },
        ])
    );
}

use serde_json::{Value, json};
use youyou_agent::{
    ChatEvent, ChatRequest, Completion, ContentBlock, Message, PromptBlock, ProviderError,
    ProviderErrorKind, ReasoningEffort, ResponseFormat, StopReason, ToolSpec, Usage, UserMessage,
    UserOrigin,
};

use super::{decoder, request};
use crate::wire::Target;
use crate::wire::testing::{after, json, read, shown, stored, target};

fn read_all(frames: &[Value]) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
    let frames: Vec<_> = frames.iter().map(|data| (None, &**data)).collect();
    read(&mut *decoder(&target()), &frames)
}

fn added(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn done_item(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn piece(kind: &str, index: u64, delta: &str) -> Value {
    json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta })
}

fn completed(output: Value) -> Value {
    json!({ "type": "response.completed",
        "response": { "status": "completed", "error": null, "output": output } })
}

fn done(reason: StopReason) -> ChatEvent {
    ChatEvent::Done(Completion::new().with_stop_reason(reason))
}

fn reasoning() -> Value {
    json!({ "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA",
        "summary": [{ "type": "summary_text", "text": "First." },
                    { "type": "summary_text", "text": "Then." }] })
}

fn message(text: &str) -> Value {
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "phase": "final_answer",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn call(id: &str, arguments: &str) -> Value {
    json!({ "id": format!("fc_{id}"), "type": "function_call", "status": "completed",
        "call_id": format!("call_{id}"), "name": "read", "arguments": arguments })
}

/// Reasoning, a message and two calls, as the vendor streams them.
fn whole_stream() -> Vec<Value> {
    let summary = |part: u64, text: &str| {
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0,
            "item_id": "rs_1", "summary_index": part, "delta": text })
    };
    vec![
        json!({ "type": "response.created", "response": { "status": "in_progress", "error": null } }),
        added(
            0,
            json!({ "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "part" }),
        ),
        summary(0, "Fir"),
        summary(0, "st."),
        summary(1, "Then."),
        done_item(0, reasoning()),
        added(
            1,
            json!({ "id": "msg_1", "type": "message", "content": [] }),
        ),
        piece("output_text", 1, "Hel"),
        piece("output_text", 1, "lo"),
        json!({ "type": "response.output_text.done", "output_index": 1, "text": "Hello" }),
        done_item(1, message("Hello")),
        added(
            2,
            json!({ "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "" }),
        ),
        piece("function_call_arguments", 2, "{\"path\":"),
        piece("function_call_arguments", 2, " \"a\"}"),
        done_item(2, call("1", "{\"path\": \"a\"}")),
        added(3, call("2", "")),
        done_item(3, call("2", "{}")),
    ]
}

fn whole_output() -> Value {
    json!([
        reasoning(),
        message("Hello"),
        call("1", "{\"path\": \"a\"}"),
        call("2", "{}")
    ])
}

fn whole_events() -> Vec<ChatEvent> {
    vec![
        ChatEvent::reasoning("Fir"),
        ChatEvent::reasoning("st."),
        ChatEvent::reasoning("\n\n"),
        ChatEvent::reasoning("Then."),
        ChatEvent::text("Hel"),
        ChatEvent::text("lo"),
        ChatEvent::tool_call("call_1", "read", "{\"path\": \"a\"}"),
        ChatEvent::tool_call("call_2", "read", "{}"),
        done(StopReason::EndTurn),
    ]
}

#[test]
fn items_go_back_as_they_came_and_nothing_is_doubled_by_the_end() {
    let mut frames = whole_stream();
    frames.push(completed(whole_output()));
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(shown(&events), whole_events());
    let body = json(request(&after(stored(&events)), &target()));
    let input = body["input"].as_array().unwrap();
    assert_eq!(json!(input[1..5]), whole_output());
    assert_eq!(
        json!(input[5..]),
        json!([
            { "type": "function_call_output", "call_id": "call_1", "output": "done" },
            { "type": "function_call_output", "call_id": "call_2", "output": "done" },
        ])
    );
}

#[test]
fn an_empty_output_at_the_end_takes_nothing_away() {
    let mut frames = whole_stream();
    frames.push(completed(json!([])));
    assert_eq!(shown(&read_all(&frames).0), whole_events());
}

#[test]
fn what_only_the_end_tells_is_told() {
    let (events, result) = read_all(&[completed(whole_output())]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        shown(&events),
        [
            ChatEvent::reasoning("First.\n\nThen."),
            ChatEvent::text("Hello"),
            ChatEvent::tool_call("call_1", "read", "{\"path\": \"a\"}"),
            ChatEvent::tool_call("call_2", "read", "{}"),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn places_left_out_and_ids_that_change_double_nothing() {
    let strip = |frame: &Value, field: &str| {
        let mut frame = frame.clone();
        frame.as_object_mut().unwrap().remove(field);
        frame
    };
    // Without places there is the item's id, or the one that is being written.
    let mut frames: Vec<Value> = whole_stream()
        .iter()
        .map(|frame| strip(frame, "output_index"))
        .collect();
    frames.push(completed(whole_output()));
    assert_eq!(shown(&read_all(&frames).0), whole_events());
    // With places any id will do.
    let mut frames = whole_stream();
    for (number, frame) in frames.iter_mut().enumerate() {
        if frame["item"].is_object() {
            frame["item"]["id"] = json!(format!("changes_{number}"));
        }
        frame["item_id"] = json!(format!("changes_{number}"));
    }
    frames.push(completed(whole_output()));
    assert_eq!(shown(&read_all(&frames).0), whole_events());
}

#[test]
fn calls_written_side_by_side_come_out_whole_and_in_order() {
    let frames = [
        added(0, call("a", "")),
        added(1, call("b", "")),
        piece("function_call_arguments", 0, "{\"q\":"),
        piece("function_call_arguments", 1, "{\"q\":"),
        piece("function_call_arguments", 1, "\"y\"}"),
        done_item(1, call("b", "")),
        piece("function_call_arguments", 0, "\"x\"}"),
        completed(json!([])),
    ];
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(
        shown(&events),
        [
            ChatEvent::tool_call("call_a", "read", "{\"q\":\"x\"}"),
            ChatEvent::tool_call("call_b", "read", "{\"q\":\"y\"}"),
            done(StopReason::EndTurn),
        ]
    );
}

#[test]
fn a_refusal_has_words_and_goes_back() {
    let refusal = json!({ "id": "msg_1", "type": "message", "role": "assistant",
        "status": "completed", "content": [{ "type": "refusal", "refusal": "I can't help" }] });
    let frames = [
        added(
            0,
            json!({ "id": "msg_1", "type": "message", "content": [] }),
        ),
        piece("refusal", 0, "I can't"),
        piece("refusal", 0, " help"),
        done_item(0, refusal.clone()),
        completed(json!([refusal])),
    ];
    let (events, _) = read_all(&frames);
    assert_eq!(
        shown(&events),
        [
            ChatEvent::text("I can't"),
            ChatEvent::text(" help"),
            done(StopReason::Refusal),
        ]
    );
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(body["input"][1], refusal);
}

#[test]
fn a_failure_in_the_stream_has_the_vendors_own_reason() {
    let failed = |code: &str, words: &str| {
        json!({ "type": "response.failed", "response": { "status": "failed",
            "error": { "code": code, "message": words } } })
    };
    for frame in [
        failed("server_error", "it broke"),
        json!({ "type": "error", "code": "server_error", "message": "it broke", "param": null }),
        json!({ "type": "error", "error": { "type": "server_error", "message": "it broke" } }),
        json!({ "object": "error", "message": "it broke", "code": 400 }),
    ] {
        let (events, result) = read_all(&[piece("output_text", 0, "half"), frame]);
        assert_eq!(events, [ChatEvent::text("half")]);
        assert!(result.unwrap_err().message.contains("it broke"));
    }
    let (_, result) = read_all(&[failed("context_length_exceeded", "too long")]);
    assert_eq!(
        result.unwrap_err().kind,
        ProviderErrorKind::ContextLengthExceeded
    );
    let (_, result) = read_all(&[failed("server_error", "m")]);
    assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Overloaded);
    let (_, result) = read_all(&[failed("rate_limit_exceeded", "m")]);
    assert!(matches!(
        result.unwrap_err().kind,
        ProviderErrorKind::RateLimited { .. }
    ));
}

#[test]
fn an_incomplete_response_says_why() {
    let incomplete = |reason: &str| {
        json!({ "type": "response.incomplete", "response": { "status": "incomplete",
            "incomplete_details": { "reason": reason }, "output": [] } })
    };
    for (word, reason) in [
        ("max_output_tokens", StopReason::Length),
        ("content_filter", StopReason::ContentFilter),
    ] {
        let (events, result) = read_all(&[piece("output_text", 0, "half"), incomplete(word)]);
        assert_eq!(result, Ok(()));
        assert_eq!(events, [ChatEvent::text("half"), done(reason)]);
    }
    let (events, _) = read_all(&[incomplete("steered")]);
    assert_eq!(
        events,
        [
            ChatEvent::Warning {
                message: "Test stopped for a reason unknown here (steered)".to_owned()
            },
            done(StopReason::Other),
        ]
    );
}

#[test]
fn a_stream_without_an_end_is_torn() {
    for frames in [
        vec![],
        vec![piece("output_text", 0, "half")],
        whole_stream(),
    ] {
        let (_, result) = read_all(&frames);
        assert_eq!(result.unwrap_err().kind, ProviderErrorKind::Network);
    }
}

#[test]
fn a_whole_answer_in_place_of_a_stream_is_read() {
    let body = json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null,
        "output": [message("Hello")],
        "usage": { "input_tokens": 9, "output_tokens": 8,
            "input_tokens_details": { "cached_tokens": 4 },
            "output_tokens_details": { "reasoning_tokens": 2 } },
    });
    let mut events = std::collections::VecDeque::new();
    let result = decoder(&target()).body(&body.to_string(), &mut events);
    assert_eq!(result, Ok(()));
    let mut usage = Usage::new(9, 8);
    usage.cached_input_tokens = Some(4);
    usage.reasoning_tokens = Some(2);
    let end = Completion::new()
        .with_usage(usage)
        .with_stop_reason(StopReason::EndTurn);
    let events: Vec<_> = events.into();
    assert_eq!(
        shown(&events),
        [ChatEvent::text("Hello"), ChatEvent::Done(end)]
    );
    for body in [
        r#"{"error":{"message":"bad key","code":"invalid_api_key"}}"#,
        r#"{"object":"response","status":"failed","error":{"message":"bad key"}}"#,
        "bad key",
    ] {
        let mut events = std::collections::VecDeque::new();
        assert!(
            decoder(&target()).body(body, &mut events).is_err(),
            "{body}"
        );
    }
}

#[test]
fn reasoning_that_nobody_could_read_or_that_nothing_follows_stays_here() {
    let bare = json!({ "id": "rs_1", "type": "reasoning",
        "summary": [{ "type": "summary_text", "text": "s" }] });
    let local = json!({ "id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "",
        "content": [{ "type": "reasoning_text", "text": "thought" }] });
    let (events, _) = read_all(&[completed(json!([
        bare,
        local,
        message("Hello"),
        reasoning()
    ]))]);
    let body = json(request(&after(stored(&events)), &target()));
    let input = body["input"].as_array().unwrap();
    assert_eq!(json!(input[1..3]), json!([local, message("Hello")]));
    assert_eq!(input.len(), 4);
}

#[test]
fn another_vendor_gets_what_is_visible() {
    let (events, _) = read_all(&[completed(whole_output())]);
    let elsewhere = Target {
        vendor: "elsewhere".into(),
        ..target()
    };
    let body = json(request(&after(stored(&events)), &elsewhere));
    assert_eq!(
        body["input"],
        json!([
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] },
            { "type": "message", "role": "assistant", "content": "Hello" },
            { "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call", "call_id": "call_2", "name": "read", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "done" },
            { "type": "function_call_output", "call_id": "call_2", "output": "done" },
        ])
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
    let block = |text: &str| PromptBlock {
        text: text.into(),
        stable: true,
    };
    with.system = [block("You help."), block("Rules.")].into();
    with.tools = [ToolSpec {
        name: "now".into(),
        description: "Tells the time.".to_owned(),
        parameters: json!(null),
    }]
    .into();
    with.temperature = Some(0.7);
    with.max_tokens = Some(1_000);
    with.reasoning_effort = Some(ReasoningEffort::Low);
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    with.response_format = Some(ResponseFormat::json_schema("answer", schema.clone()));
    let mut target = target();
    target.quirks.strict_roles = false;
    let outgoing = request(&with, &target).unwrap();
    assert_eq!(outgoing.path, "responses");
    assert_eq!(
        serde_json::from_str::<Value>(&outgoing.body).unwrap(),
        json!({
            "model": "test-1",
            "stream": true,
            "store": false,
            "instructions": "You help.\n\nRules.",
            "tools": [{ "type": "function", "name": "now", "description": "Tells the time.",
                "parameters": { "type": "object", "properties": {} }, "strict": false }],
            "temperature": 0.7,
            "max_output_tokens": 1000,
            "reasoning": { "effort": "low" },
            "include": ["reasoning.encrypted_content"],
            "text": { "format": { "type": "json_schema", "name": "answer", "schema": schema,
                "strict": false } },
            "input": [
                { "type": "message", "role": "user", "content": [
                    { "type": "input_text", "text": "look" },
                    { "type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto" },
                    { "type": "input_text", "text": "File \"a.txt\":\n\nalpha" },
                ] },
                { "type": "message", "role": "developer", "content": "a note" },
            ],
        })
    );
    target.vendor = "openai".into();
    assert_eq!(json(request(&with, &target)).get("temperature"), None);
}

#[test]
fn many_calls_take_time_in_proportion() {
    let count = 20_000;
    let mut frames: Vec<Value> = (0..count)
        .map(|index| done_item(index, call(&index.to_string(), "{}")))
        .collect();
    frames.push(completed(json!([])));
    let (events, result) = read_all(&frames);
    assert_eq!(result, Ok(()));
    assert_eq!(events.len() as u64, count + 1);
}

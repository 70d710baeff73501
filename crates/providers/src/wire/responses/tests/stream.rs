use std::collections::VecDeque;

use serde_json::{Value, json};
use youyou_agent::{ChatEvent, Completion, ProviderErrorKind, StopReason, Usage};

use super::super::{decoder, request};
use super::{
    added, call, completed, done, done_item, message, piece, read_all, whole_events, whole_output,
    whole_stream,
};
use crate::wire::testing::{after, json, shown, stored, target};

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
fn arguments_as_an_object_are_used() {
    let mut object = call("a", "");
    object["arguments"] = json!({ "path": "src" });
    let in_pieces = [
        added(0, call("a", "")),
        json!({ "type": "response.function_call_arguments.delta", "output_index": 0,
            "delta": { "path": "src" } }),
        completed(json!([])),
    ];
    for frames in [vec![completed(json!([object]))], in_pieces.to_vec()] {
        assert_eq!(
            shown(&read_all(&frames).0),
            [
                ChatEvent::tool_call("call_a", "read", "{\"path\":\"src\"}"),
                done(StopReason::EndTurn),
            ]
        );
    }
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
    let mut events = VecDeque::new();
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
        let mut events = VecDeque::new();
        assert!(
            decoder(&target()).body(body, &mut events).is_err(),
            "{body}"
        );
    }
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

use std::collections::VecDeque;

use serde_json::json;
use youyou_agent::{ChatEvent, Completion, StopReason, Usage};

use super::super::{decoder, request};
use super::{call, delta, done, end, read_all, start, stop, text, thinking};
use crate::wire::testing::{after, json, read, shown, stored, target};

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
    let mut events = VecDeque::new();
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

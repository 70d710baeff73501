use std::collections::VecDeque;

use serde_json::{Value, json};
use youyou_agent::{ChatEvent, ChatRequest, Completion, ProviderErrorKind, StopReason, Usage};

use super::super::{decoder, request};
use super::{call, done, end, read_all, text, thinking};
use crate::wire::testing::{read, shown, target, user};
use crate::wire::{Decoder, Frame};

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

fn feed(decoder: &mut dyn Decoder, frames: &[Value]) -> Vec<ChatEvent> {
    let mut events = VecDeque::new();
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
fn an_error_in_place_of_a_stream_is_an_error() {
    for body in [
        r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#,
        r#"{"detail":"bad key"}"#,
        "bad key",
    ] {
        let mut events = VecDeque::new();
        let error = decoder(&target()).body(body, &mut events).unwrap_err();
        assert!(!error.message.is_empty() && events.is_empty());
    }
}

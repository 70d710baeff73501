mod ends;
mod requests;
mod stream;

use serde_json::{Value, json};
use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason};

use super::decoder;
use crate::wire::Target;
use crate::wire::testing::{read, target};

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

fn read_all(frames: &[Value]) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
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

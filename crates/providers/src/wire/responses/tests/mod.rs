mod requests;
mod stream;

use serde_json::{Value, json};
use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason};

use super::decoder;
use crate::wire::testing::{read, target};

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

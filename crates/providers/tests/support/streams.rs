//! Long answers as each protocol streams them, for what is measured.

use std::hint::black_box;

pub(crate) const PROTOCOLS: [&str; 4] = ["chat", "responses", "anthropic", "gemini"];

/// An answer of so many deltas. It is kept to the end of the process.
pub(crate) fn stream(protocol: &str, deltas: u64) -> &'static str {
    let mut body = String::new();
    let mut frame = |event: &str, data: &str| {
        if protocol == "responses" || protocol == "anthropic" {
            body.push_str(&format!("event: {event}\n"));
        }
        body.push_str(&format!("data: {data}\n\n"));
    };
    match protocol {
        "anthropic" => {
            frame(
                "message_start",
                r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"model":"claude","usage":{"input_tokens":10,"output_tokens":1}}}"#,
            );
            frame(
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            );
        }
        "responses" => frame(
            "response.output_item.added",
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}"#,
        ),
        _ => {}
    }
    for number in 0..deltas {
        let text = format!(" word\\n{number}");
        let (event, data) = match protocol {
            "chat" => (
                "",
                format!(
                    r#"{{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-5-mini","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{{"index":0,"delta":{{"content":"{text}"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
                ),
            ),
            "responses" => (
                "response.output_text.delta",
                format!(
                    r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"msg_1","output_index":0,"content_index":0,"delta":"{text}","logprobs":[]}}"#
                ),
            ),
            "anthropic" => (
                "content_block_delta",
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
                ),
            ),
            _ => (
                "",
                format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":8,"candidatesTokenCount":{number},"totalTokenCount":{number}}},"modelVersion":"gemini-2.5-flash","responseId":"r"}}"#
                ),
            ),
        };
        frame(event, &data);
    }
    match protocol {
        "chat" => {
            frame(
                "",
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            );
        }
        "responses" => frame(
            "response.completed",
            r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}"#,
        ),
        "anthropic" => {
            frame(
                "content_block_stop",
                r#"{"type":"content_block_stop","index":0}"#,
            );
            frame(
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
            );
            frame("message_stop", r#"{"type":"message_stop"}"#);
        }
        _ => frame(
            "",
            r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}]}"#,
        ),
    }
    Box::leak(body.into_boxed_str())
}

/// What the JSON parser alone does with it.
pub(crate) fn parse(body: &str) {
    for line in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        black_box(serde_json::from_str::<serde_json::Value>(line).unwrap());
    }
}

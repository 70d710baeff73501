//! Streams that no server should send: an answer or an error, never a panic or a hang.

use youyou_agent::ChatEvent;

use super::support::{Pace, Reply, Server, ask, bare, provider, user};
use youyou_agent::ChatRequest;
use youyou_agent_providers::Endpoint;

/// A protocol and an answer in it: a thought, a text, a call.
struct Wire {
    name: &'static str,
    endpoint: fn(&str) -> Endpoint,
    answer: &'static str,
}

const WIRES: [Wire; 4] = [
    Wire {
        name: "chat",
        endpoint: |address| Endpoint::openai_compatible("own", address),
        answer: concat!(
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n",
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"你好\"},\"finish_reason\":null}]}\n\n",
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"go\",\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n",
            "data: [DONE]\n\n",
        ),
    },
    Wire {
        name: "anthropic",
        endpoint: |address| Endpoint::anthropic_compatible("own", address),
        answer: concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"你好\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"go\",\"input\":{}}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":7}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
    },
    Wire {
        name: "gemini",
        endpoint: |address| Endpoint::gemini_compatible("own", address),
        answer: concat!(
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}],\"role\":\"model\"},\"index\":0}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"你好\"}],\"role\":\"model\"},\"index\":0}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"id\":\"a\",\"name\":\"go\",\"args\":{}},\"thoughtSignature\":\"s\"}],\"role\":\"model\"},\"index\":0}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":7}}\n\n",
        ),
    },
    Wire {
        name: "responses",
        endpoint: |address| Endpoint::openai_responses("own", address),
        answer: concat!(
            "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[]}}\n\n",
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"你好\"}\n\n",
            "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"你好\"}]}}\n\n",
            "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"a\",\"name\":\"go\",\"arguments\":\"{}\"}}\n\n",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":5,\"output_tokens\":7}}}\n\n",
        ),
    },
];

/// One server for all streams of a test: what is asked for is in the user's words.
async fn all(wire: &Wire, streams: Vec<String>) -> Vec<(Vec<ChatEvent>, bool)> {
    let count = streams.len();
    let server = Server::answering(Pace::Whole, move |request, _| {
        let body = request.body.to_string();
        let which: usize = body.split('#').nth(1).unwrap().parse().unwrap();
        Reply::stream(streams[which].clone())
    });
    let provider = provider((wire.endpoint)(&server.address));
    let mut got = Vec::new();
    for which in 0..count {
        let request = ChatRequest::new("m", [user(&format!("#{which}#"))]);
        let (events, ended) = ask(&provider, request).await;
        let dones = events
            .iter()
            .filter(|event| matches!(event, ChatEvent::Done(_)))
            .count();
        assert_eq!(dones, usize::from(ended.is_ok()), "one end, or an error");
        got.push((bare(events), ended.is_ok()));
    }
    got
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_the_start_of_the_answer_or_all_of_it() {
    for wire in &WIRES {
        let answer = wire.answer;
        let cuts = (0..=answer.len()).filter(|cut| answer.is_char_boundary(*cut));
        let streams = cuts.map(|cut| answer[..cut].to_owned()).collect();
        let whole = all(wire, vec![answer.to_owned()]).await.remove(0);
        assert!(whole.1, "{}", wire.name);
        let spoken = |events: &[ChatEvent]| -> Vec<ChatEvent> {
            events
                .iter()
                .filter(|event| !matches!(event, ChatEvent::Done(_)))
                .cloned()
                .collect()
        };
        for (events, is_whole) in all(wire, streams).await {
            if is_whole {
                // Figures may be missing, words may not.
                assert_eq!(spoken(&events), spoken(&whole.0), "{}", wire.name);
            } else {
                assert!(whole.0.starts_with(&events), "{}: {events:?}", wire.name);
            }
        }
    }
}

#[tokio::test]
async fn fields_that_are_missing_null_or_of_another_type_do_no_harm() {
    let others = [
        "null",
        "1",
        "-1",
        "1.5",
        "1e400",
        "true",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "{\"x\":{}}",
    ];
    for wire in &WIRES {
        let mut fields: Vec<String> = Vec::new();
        for data in wire
            .answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
        {
            names(&serde_json::from_str(data).unwrap_or_default(), &mut fields);
        }
        let mut streams = Vec::new();
        for field in &fields {
            let quoted = format!("\"{field}\":");
            streams.extend(
                others
                    .iter()
                    .map(|other| replaced(wire.answer, field, other)),
            );
            streams.push(wire.answer.replace(&quoted, "\"missing\":"));
        }
        let got = all(wire, streams).await;
        // What does not concern the text leaves it alone.
        let kept = got
            .iter()
            .filter(|(events, _)| events.contains(&ChatEvent::text("你好")))
            .count();
        assert!(
            kept > got.len() / 4,
            "{}: {kept} of {}",
            wire.name,
            got.len()
        );
    }
}

/// The names of all fields.
fn names(json: &serde_json::Value, found: &mut Vec<String>) {
    match json {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                if !found.contains(key) {
                    found.push(key.clone());
                }
                names(value, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// The JSON of a stream with every value of a field replaced.
fn replaced(stream: &str, field: &str, value: &str) -> String {
    let lines = stream.lines().map(|line| {
        let json = line
            .strip_prefix("data: ")
            .and_then(|json| serde_json::from_str(json).ok());
        let Some(mut json): Option<serde_json::Value> = json else {
            return line.to_owned();
        };
        // Numbers that no value holds are put in as text.
        set(&mut json, field, &"@".into());
        format!("data: {}", json.to_string().replace("\"@\"", value))
    });
    lines.collect::<Vec<_>>().join("\n") + "\n\n"
}

fn set(json: &mut serde_json::Value, name: &str, to: &serde_json::Value) {
    match json {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                if key == name {
                    *value = to.clone();
                } else {
                    set(value, name, to);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| set(item, name, to)),
        _ => {}
    }
}

#[tokio::test]
async fn bytes_of_any_kind_end_in_an_error() {
    // A fixed sequence, so that a failure can be found again.
    let mut state = 7_u64;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let alphabet: Vec<char> = "data: {}[]\",:\n\r\\ue0choicesdelta\u{feff}\u{0}é"
        .chars()
        .collect();
    let streams: Vec<String> = (0..300)
        .map(|_| {
            let length = next() % 200;
            (0..length)
                .map(|_| alphabet[next() % alphabet.len()])
                .collect()
        })
        .collect();
    for wire in &WIRES {
        for (events, is_whole) in all(wire, streams.clone()).await {
            assert!(!is_whole, "{}: {events:?}", wire.name);
        }
    }
}

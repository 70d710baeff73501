//! Streams that no server should send: an answer or an error, never a panic or a hang.

use youyou_agent::ChatEvent;

use super::support::{Pace, Reply, Server, ask, bare, provider, user};
use youyou_agent::ChatRequest;
use youyou_agent_providers::Endpoint;

const ANSWER: &str = concat!(
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n",
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"你好\"},\"finish_reason\":null}]}\n\n",
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"go\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n",
    "data: [DONE]\n\n",
);

/// One server for all streams of a test: what is asked for is in the user's words.
async fn all(streams: Vec<String>) -> Vec<(Vec<ChatEvent>, bool)> {
    let count = streams.len();
    let server = Server::answering(Pace::Whole, move |request, _| {
        let which: usize = request.body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        Reply::stream(streams[which].clone())
    });
    let provider = provider(Endpoint::openai_compatible("own", &server.address));
    let mut got = Vec::new();
    for which in 0..count {
        let (events, ended) =
            ask(&provider, ChatRequest::new("m", [user(&which.to_string())])).await;
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
    let cuts: Vec<usize> = (0..=ANSWER.len())
        .filter(|cut| ANSWER.is_char_boundary(*cut))
        .collect();
    let streams = cuts.iter().map(|cut| ANSWER[..*cut].to_owned()).collect();
    let whole = all(vec![ANSWER.to_owned()]).await.remove(0).0;
    let finish = ANSWER.find("\"usage\":").unwrap();
    for ((events, is_whole), cut) in all(streams).await.into_iter().zip(cuts) {
        if is_whole {
            assert!(cut > finish, "{cut}");
            assert_eq!(events, whole);
        } else {
            assert!(whole.starts_with(&events), "{cut}: {events:?}");
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
        "true",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "{\"x\":{}}",
    ];
    let fields = [
        "\"choices\":",
        "\"delta\":",
        "\"index\":",
        "\"content\":",
        "\"reasoning_content\":",
        "\"tool_calls\":",
        "\"function\":",
        "\"name\":",
        "\"arguments\":",
        "\"usage\":",
        "\"prompt_tokens\":",
        "\"finish_reason\":",
        "\"id\":",
    ];
    let mut streams = Vec::new();
    for field in fields {
        for other in others {
            streams.push(replaced(ANSWER, field, other));
        }
        streams.push(ANSWER.replace(field, "\"missing\":"));
    }
    let got = all(streams).await;
    // What does not concern the text leaves it alone.
    let kept = got
        .iter()
        .filter(|(events, _)| events.contains(&ChatEvent::text("你好")))
        .count();
    assert!(kept > got.len() / 2, "{kept} of {}", got.len());
}

/// The JSON of a stream with every value of a field replaced.
fn replaced(stream: &str, field: &str, value: &str) -> String {
    let name = field.trim_matches(['"', ':']);
    let frames = stream.split_terminator("\n\n").map(|frame| {
        let json = frame.strip_prefix("data: ").unwrap();
        let Ok(mut json) = serde_json::from_str::<serde_json::Value>(json) else {
            return frame.to_owned();
        };
        set(&mut json, name, &serde_json::from_str(value).unwrap());
        format!("data: {json}")
    });
    frames.collect::<Vec<_>>().join("\n\n") + "\n\n"
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
    let streams = (0..300)
        .map(|_| {
            let length = next() % 200;
            (0..length)
                .map(|_| alphabet[next() % alphabet.len()])
                .collect()
        })
        .collect();
    for (events, is_whole) in all(streams).await {
        assert!(!is_whole, "{events:?}");
    }
}

//! The golden files of `tests/wire`: each is a stream as a vendor sends it, what it means, and
//! what goes back. A new fault is a new file.
//!
//! A file has sections, each behind a line `--- name`:
//! - first the lines `from:` (where the stream is documented or was seen), `protocol:` (`chat`,
//!   `responses`, `anthropic`, `gemini`) or `vendor:` (an id of the table), `model:`
//! - `answer`: the body as it comes over the wire
//! - `events`: a line each: `text "…"`, `reasoning "…"`, `call id name arguments`,
//!   `warning "…"`, `done reason usage`, `error kind "…"` (the message contains the words)
//! - `back`: the model's message in the next request (its `contents` or `input` for other
//!   protocols), as JSON; may be left out
//!
//! With the variable `WIRE_WRITE` set, what was got is printed for a failing file.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

#[expect(dead_code, reason = "a part of it is for the tests over sockets")]
mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Pace, Reply, Server, ask, bare, follow_up, provider, user};
use youyou_agent::{ChatEvent, ChatRequest, ProviderError};
use youyou_agent_providers::Endpoint;

#[tokio::test]
async fn each_recorded_stream_means_what_its_file_says_and_goes_back_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "txt"));
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for pace in [Pace::Whole, Pace::Bytes] {
            if let Err(failure) = check(&text, pace).await {
                failures.push(format!("{} ({pace:?}):\n{failure}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

async fn check(text: &str, pace: Pace) -> Result<(), String> {
    let (head, rest) = text.split_once("--- ").ok_or("no sections")?;
    let header = |name: &str| {
        head.lines()
            .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    };
    header("from").ok_or("no line `from:`")?;
    let model = header("model").ok_or("no line `model:`")?;
    let section = |name: &str| {
        let mut sections = rest
            .split("\n--- ")
            .map(|section| section.split_once('\n').unwrap_or((section, "")));
        sections
            .find(|(title, _)| title.trim() == name)
            .map(|(_, body)| body)
    };
    let answer = section("answer").ok_or("no section `answer`")?;
    let server = Server::start(pace, vec![Reply::stream(format!("{answer}\n"))]);
    let endpoint = match (header("protocol"), header("vendor")) {
        (Some("chat"), _) => Endpoint::openai_compatible("own", &server.address),
        (Some("responses"), _) => Endpoint::openai_responses("own", &server.address),
        (Some("anthropic"), _) => Endpoint::anthropic_compatible("own", &server.address),
        (Some("gemini"), _) => Endpoint::gemini_compatible("own", &server.address),
        (_, Some(vendor)) => Endpoint::vendor(vendor)
            .ok_or("no such vendor")?
            .address(&server.address),
        _ => return Err("no line `protocol:` or `vendor:`".to_owned()),
    };
    let provider = provider(endpoint.key("secret-key"));
    let (events, ended) = ask(&provider, ChatRequest::new(model, [user("Hi")])).await;
    let got = lines(bare(events.clone()), &ended);
    let expected: Vec<&str> = section("events")
        .ok_or("no section `events`")?
        .trim()
        .lines()
        .collect();
    let same = got.len() == expected.len()
        && got
            .iter()
            .zip(&expected)
            .all(|(got, expected)| is_same(got, expected));
    if !same {
        return Err(format!(
            "events are\n{}\nand should be\n{}",
            got.join("\n"),
            expected.join("\n")
        ));
    }
    let Some(back) = section("back") else {
        return Ok(());
    };
    let back: Value =
        serde_json::from_str(back).map_err(|error| format!("section `back`: {error}"))?;
    let _ = ask(&provider, follow_up(model, &events)).await;
    let sent = server
        .requests()
        .last()
        .map(|request| request.body.clone())
        .unwrap_or_default();
    let sent = model_side(&sent);
    if sent != back {
        return Err(format!("back goes\n{sent}\nand should\n{back}"));
    }
    Ok(())
}

/// The part of a request that holds the model's answer, in any of the protocols: one message,
/// or a list where an answer is several items.
fn model_side(body: &Value) -> Value {
    let list = ["messages", "contents", "input"]
        .iter()
        .find_map(|name| body.get(name)?.as_array());
    let is_models = |item: &&Value| {
        let role = item.get("role").and_then(Value::as_str);
        let kind = item.get("type").and_then(Value::as_str);
        match role {
            Some(role) => matches!(role, "assistant" | "model"),
            None => kind != Some("function_call_output"),
        }
    };
    let mut found: Vec<Value> = list
        .into_iter()
        .flatten()
        .filter(is_models)
        .cloned()
        .collect();
    if found.len() == 1 {
        found.remove(0)
    } else {
        json!(found)
    }
}

fn lines(events: Vec<ChatEvent>, ended: &Result<(), ProviderError>) -> Vec<String> {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut lines: Vec<String> = events
        .into_iter()
        .map(|event| match event {
            ChatEvent::TextDelta { text, .. } => format!("text {}", quoted(&text)),
            ChatEvent::ReasoningDelta { text, .. } => format!("reasoning {}", quoted(&text)),
            ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                ..
            } => {
                format!("call {call_id} {tool_name} {arguments}")
            }
            ChatEvent::Warning { message } => format!("warning {}", quoted(&message)),
            ChatEvent::Done(end) => {
                let reason = end
                    .stop_reason
                    .map_or("unknown".to_owned(), |reason| format!("{reason:?}"));
                let usage = end.usage.map_or("unknown".to_owned(), |usage| {
                    let counts = [
                        ("in", usage.input_tokens),
                        ("out", usage.output_tokens),
                        ("cached", usage.cached_input_tokens),
                        ("reasoning", usage.reasoning_tokens),
                    ];
                    let counts = counts
                        .iter()
                        .filter_map(|(name, count)| Some(format!("{name}={}", (*count)?)));
                    counts.collect::<Vec<_>>().join(" ")
                });
                format!("done {reason} {usage}")
            }
            other => format!("{other:?}"),
        })
        .collect();
    if let Err(error) = ended {
        lines.push(format!("error {:?} {}", error.kind, quoted(&error.message)));
    }
    lines
}

/// Words of an error need only be there.
fn is_same(got: &str, expected: &str) -> bool {
    let words = |line: &str| -> Option<(String, String)> {
        let (kind, words) = line.strip_prefix("error ")?.split_once(" \"")?;
        Some((kind.to_owned(), words.trim_end_matches('"').to_owned()))
    };
    match (words(got), words(expected)) {
        (Some((kind, said)), Some((other, part))) => kind == other && said.contains(&part),
        _ => got == expected,
    }
}

//! Streams that no server should send, made of the golden files: an answer or an error, never
//! a panic, and never a word that was not said.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use youyou_agent::{ChatEvent, ProviderError};

use super::testing::{shown, target};
use super::{Frame, Protocol};

/// A golden file: its protocol, and its frames with the names of their events.
struct Recorded {
    name: String,
    protocol: Protocol,
    frames: Vec<(Option<String>, String)>,
}

fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut all: Vec<Recorded> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "txt"))
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let (head, rest) = text.split_once("--- answer\n").unwrap();
            let (answer, _) = rest.split_once("\n--- ").unwrap();
            let protocol = match head {
                head if head.contains("protocol: anthropic") => Protocol::Anthropic,
                head if head.contains("protocol: gemini") => Protocol::Gemini,
                head if head.contains("protocol: responses") => Protocol::Responses,
                _ => Protocol::Chat,
            };
            let line = |frame: &str, field: &str| {
                let found = frame.lines().find_map(|line| line.strip_prefix(field));
                found.map(|value| value.trim().to_owned())
            };
            let frames = answer
                .split("\n\n")
                .filter_map(|frame| Some((line(frame, "event:"), line(frame, "data:")?)));
            Recorded {
                name: file.display().to_string(),
                protocol,
                frames: frames.collect(),
            }
        })
        .collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!all.is_empty());
    all
}

/// What a decoder makes of frames and then of the end of the data.
fn read(
    protocol: Protocol,
    frames: &[(Option<String>, String)],
) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let mut decoder = protocol.decoder(&target());
    let mut events = VecDeque::new();
    for (event, data) in frames {
        let frame = Frame {
            event: event.as_deref(),
            data,
        };
        if let Err(error) = decoder.frame(frame, &mut events) {
            return (events.into(), Err(error));
        }
        if matches!(events.back(), Some(ChatEvent::Done(_))) {
            return (events.into(), Ok(()));
        }
        // The request that would go on is not there: what follows is read as its answer.
        decoder.continuation("{}");
    }
    let end = decoder.end(&mut events);
    (events.into(), end)
}

/// All text, reasoning and arguments in a row.
fn said(events: &[ChatEvent]) -> String {
    let said = shown(events).into_iter().map(|event| match event {
        ChatEvent::TextDelta { text, .. } => text,
        ChatEvent::ReasoningDelta { text, .. } => text,
        ChatEvent::ToolCall { arguments, .. } => arguments,
        _ => String::new(),
    });
    said.collect()
}

#[test]
fn a_stream_cut_anywhere_says_the_start_of_the_answer_and_ends_once() {
    for Recorded {
        name,
        protocol,
        frames,
    } in recorded()
    {
        let whole = said(&read(protocol, &frames).0);
        for last in 0..frames.len() {
            let (event, data) = &frames[last];
            let cuts = (0..=data.len()).filter(|cut| data.is_char_boundary(*cut));
            for cut in cuts {
                let mut cut_frames = frames[..last].to_vec();
                cut_frames.push((event.clone(), data[..cut].to_owned()));
                let (events, result) = read(protocol, &cut_frames);
                let dones = events
                    .iter()
                    .filter(|event| matches!(event, ChatEvent::Done(_)))
                    .count();
                assert_eq!(dones, usize::from(result.is_ok()), "{name} {last} {cut}");
                assert!(
                    whole.starts_with(&said(&events)),
                    "{name} {last} {cut}: {events:?}"
                );
            }
        }
    }
}

#[test]
fn fields_that_are_missing_null_or_of_another_type_do_no_harm() {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([null, 1, "x", {}]),
        json!({ "type": "text", "text": { "text": [] } }),
    ];
    for Recorded {
        name,
        protocol,
        frames,
    } in recorded()
    {
        for (at, (_, data)) in frames.iter().enumerate() {
            let Ok(frame) = serde_json::from_str::<Value>(data) else {
                continue;
            };
            for pointer in pointers(&frame) {
                for other in others.iter().map(Some).chain([None]) {
                    let mut frames = frames.clone();
                    frames[at].1 = changed(&frame, &pointer, other).to_string();
                    let (events, result) = read(protocol, &frames);
                    let is_done = matches!(events.last(), Some(ChatEvent::Done(_)));
                    assert_eq!(is_done, result.is_ok(), "{name} {at} {pointer} {other:?}");
                }
            }
        }
    }
}

#[test]
fn frames_left_out_or_twice_do_no_harm() {
    for Recorded {
        name,
        protocol,
        frames,
    } in recorded()
    {
        for at in 0..frames.len() {
            let mut without = frames.clone();
            without.remove(at);
            let mut twice = frames.clone();
            twice.insert(at, frames[at].clone());
            for frames in [without, twice] {
                let (events, result) = read(protocol, &frames);
                let is_done = matches!(events.last(), Some(ChatEvent::Done(_)));
                assert_eq!(is_done, result.is_ok(), "{name} {at}");
            }
        }
    }
}

/// The places of all values inside of a value.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (format!("/{name}"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (format!("/{index}"), value))
            .collect(),
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for (name, child) in children {
        all.extend(pointers(child).iter().map(|below| format!("{name}{below}")));
        all.push(name);
    }
    all
}

/// A frame with another value in a place, or none.
fn changed(frame: &Value, pointer: &str, other: Option<&Value>) -> Value {
    let mut frame = frame.clone();
    match other {
        Some(other) => {
            if let Some(place) = frame.pointer_mut(pointer) {
                *place = other.clone();
            }
        }
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            if let Some(Value::Object(fields)) = frame.pointer_mut(parent) {
                fields.remove(name);
            }
        }
    }
    frame
}

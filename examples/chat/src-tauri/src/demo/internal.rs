//! How the demo answers the agent's own requests: summaries and what to remember.

use serde_json::json;
use youyou_agent::ChatRequest;

pub(super) fn answer(request: &ChatRequest) -> String {
    let transcript = request
        .messages
        .last()
        .map(|message| message.text())
        .unwrap_or_default();
    let wants_json = request
        .system
        .iter()
        .any(|block| block.text.contains("JSON"));
    if wants_json {
        memories(&transcript)
    } else {
        summary(&transcript)
    }
}

/// What users asked to remember, as the JSON the agent reads.
fn memories(transcript: &str) -> String {
    let items: Vec<_> = said(transcript)
        .filter_map(|line| {
            let lower = line.to_lowercase();
            let verbs = [
                "please remember that ",
                "please remember ",
                "remember that ",
                "remember ",
                "请记住",
                "记住",
            ];
            let verb = verbs.iter().find(|verb| lower.starts_with(*verb))?;
            let fact = line
                .get(verb.len()..)?
                .trim_start_matches([':', '：', '，', ',', ' '])
                .trim();
            (!fact.is_empty()).then(|| json!({ "content": fact, "tags": ["demo"] }))
        })
        .collect();
    serde_json::Value::from(items).to_string()
}

/// A list of what the user said: no understanding, but true.
fn summary(transcript: &str) -> String {
    let mut lines: Vec<String> = said(transcript)
        .map(|line| {
            let short: String = line.chars().take(80).collect();
            format!("- {short}")
        })
        .collect();
    // The newest matter most, and a summary has to be short.
    let from = lines.len().saturating_sub(20);
    lines.drain(..from);
    format!(
        "(Summary by the offline demo, not by an AI.) The user said, the oldest first:\n{}",
        lines.join("\n")
    )
}

/// The first line of each of the user's messages in a transcript.
fn said(transcript: &str) -> impl Iterator<Item = &str> {
    let lines = transcript.lines();
    let next = transcript.lines().skip(1);
    lines
        .zip(next)
        .filter(|(line, _)| *line == "[User]")
        .map(|(_, said)| said.trim())
}

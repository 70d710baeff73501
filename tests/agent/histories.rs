//! Stored histories to resume, and agents that compact them under watch.

use serde_json::json;
use youyou_agent::testing::{
    InMemorySessions, ScriptedProvider, Step, assistant_message, call_part, done, session_created,
    text, text_part, tool_call_stored, tool_result_stored, user_message,
};
use youyou_agent::{AgentConfig, ChatRequest, SessionEvent, SessionEventKind};

use crate::rig::{MODEL, config};

/// The id that stored histories have.
pub(crate) const STORED: &str = "stored";
/// Tells a request for a summary from the others.
const COMPACT_PROMPT: &str = "Write the hand-over, says the test.";

/// A configuration whose requests for a summary can be told from the others.
pub(crate) fn compacting() -> AgentConfig {
    AgentConfig {
        compact_prompt: Some(COMPACT_PROMPT.to_owned()),
        ..config()
    }
}

pub(crate) fn asks_for_summary(request: &ChatRequest) -> bool {
    request
        .system
        .first()
        .is_some_and(|block| &*block.text == COMPACT_PROMPT)
}

/// Every request for a summary gets this answer and uses up no script.
pub(crate) fn summarised_by(
    provider: ScriptedProvider,
    answer: impl Fn() -> Vec<Step> + Send + Sync + 'static,
) -> ScriptedProvider {
    provider.intercept(move |request| asks_for_summary(request).then(&answer))
}

/// Every request for a summary is answered with `SUMMARY`.
pub(crate) fn well_summarised(provider: ScriptedProvider) -> ScriptedProvider {
    summarised_by(provider, || vec![text("SUMMARY"), done()])
}

/// How many requests for a summary there were.
pub(crate) fn summaries_asked(provider: &ScriptedProvider) -> usize {
    let requests = provider.requests();
    requests
        .iter()
        .filter(|request| asks_for_summary(request))
        .count()
}

/// The requests that were none for a summary.
pub(crate) fn turns_asked(provider: &ScriptedProvider) -> Vec<std::sync::Arc<ChatRequest>> {
    let mut requests = provider.requests();
    requests.retain(|request| !asks_for_summary(request));
    requests
}

/// A storage with one session of these events, numbered anew after its creation.
pub(crate) fn storage_with(events: impl IntoIterator<Item = SessionEvent>) -> InMemorySessions {
    let storage = InMemorySessions::new();
    let events = events
        .into_iter()
        .zip(1..)
        .map(|(event, index)| SessionEvent { index, ..event });
    storage.preload(STORED, [session_created(0, "A title", MODEL)]);
    storage.preload(STORED, events);
    storage
}

/// Questions and answers `M1`, `M2` ...: two messages a turn, each of `tokens` tokens.
pub(crate) fn marked_turns(turns: usize, tokens: usize) -> Vec<SessionEvent> {
    (0..turns)
        .flat_map(|turn| {
            [
                user_message(0, &marked(turn * 2 + 1, tokens)),
                assistant_message(0, [text_part(&marked(turn * 2 + 2, tokens))]),
            ]
        })
        .collect()
}

/// A text with the marker `Mn.`, of exactly `tokens` tokens.
pub(crate) fn marked(n: usize, tokens: usize) -> String {
    let marker = format!("M{n}. ");
    format!("{marker}{}", "x".repeat(tokens * 4 - marker.len()))
}

/// The numbers of the markers in a text, in order.
pub(crate) fn markers(text: &str) -> Vec<usize> {
    text.split('M')
        .skip(1)
        .filter_map(|rest| rest.split_once(". ")?.0.parse().ok())
        .collect()
}

/// A question, then this many rounds of one call each, then an answer.
pub(crate) fn tool_rounds(rounds: usize, output: &str) -> Vec<SessionEvent> {
    let mut events = vec![user_message(0, "Use the tool.")];
    events.extend((0..rounds).flat_map(|round| tool_round(round, output)));
    events.push(assistant_message(0, [text_part("All done.")]));
    events
}

/// A call `c<round>` and its result.
pub(crate) fn tool_round(round: usize, output: &str) -> Vec<SessionEvent> {
    let id = format!("c{round}");
    vec![
        assistant_message(0, [call_part(&id, "ro_echo", json!({}))]),
        tool_call_stored(0, &id, "ro_echo", json!({})),
        tool_result_stored(0, &id, "ro_echo", output),
    ]
}

/// How many compactions are stored.
pub(crate) fn compactions(events: &[SessionEvent]) -> usize {
    let is_compaction = |event: &&SessionEvent| {
        matches!(
            &event.kind,
            SessionEventKind::Metadata {
                metadata: youyou_agent::SessionMetadata::Compacted(_)
            }
        )
    };
    events.iter().filter(is_compaction).count()
}

//! Servers that number parallel calls in ways of their own.

use youyou_agent::{ChatEvent, StopReason};

use super::server::{DONE, delta, finish, stream};
use super::{done, openai};

/// A frame with one piece of a call; without an id it goes on with the one before.
fn piece(index: u32, id: Option<&str>, arguments: &str) -> String {
    let mut call = serde_json::json!({ "index": index, "function": { "arguments": arguments } });
    if let Some(id) = id {
        call["id"] = id.into();
        call["function"]["name"] = "echo".into();
    }
    delta(&serde_json::json!({ "tool_calls": [call] }).to_string())
}

/// The calls that the provider makes of these pieces.
async fn calls(pieces: &[String]) -> Vec<ChatEvent> {
    let mut events = openai(vec![stream(pieces.concat() + &finish("tool_calls") + DONE)]).await;
    assert_eq!(events.pop(), Some(done(StopReason::ToolUse)));
    events
}

fn called(id: &str, arguments: &str) -> ChatEvent {
    ChatEvent::tool_call(id, "echo", arguments)
}

#[tokio::test]
async fn a_server_that_counts_calls_from_one_gets_each_run_once() {
    let body = delta(
        r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"echo","arguments":"{\"q\":"}}]}"#,
    ) + &delta(r#"{"tool_calls":[{"index":1,"function":{"arguments":"1}"}}]}"#)
        + &finish("tool_calls")
        + DONE;
    let expected = [
        ChatEvent::tool_call("a", "echo", r#"{"q":1}"#),
        done(StopReason::ToolUse),
    ];
    assert_eq!(openai(vec![stream(body)]).await, expected);
}

#[tokio::test]
async fn whole_calls_with_one_index_are_calls_of_their_own() {
    let same = calls(&[piece(0, Some("a"), "{}"), piece(0, Some("b"), "{}")]).await;
    assert_eq!(same, [called("a", "{}"), called("b", "{}")]);
    let three = [
        piece(0, Some("a"), r#"{"q":1}"#),
        piece(0, Some("b"), ""),
        piece(0, Some("c"), r#" {"q":"三"} "#),
    ];
    let expected = [
        called("a", r#"{"q":1}"#),
        called("b", "{}"),
        called("c", r#"{"q":"三"}"#),
    ];
    assert_eq!(calls(&three).await, expected);
}

#[tokio::test]
async fn calls_with_one_index_are_told_apart_also_in_fragments_and_beside_others() {
    let pieces = [
        piece(0, Some("a"), r#"{"q""#),
        piece(0, None, ":1}"),
        piece(1, Some("x"), r#"{"q":8}"#),
        piece(0, Some("b"), r#"{"q""#),
        piece(0, None, ":2}"),
        piece(1, Some("y"), r#"{"q":9}"#),
    ];
    let mut found = calls(&pieces).await;
    found.sort_by_key(|event| format!("{event:?}"));
    let expected = [
        called("a", r#"{"q":1}"#),
        called("b", r#"{"q":2}"#),
        called("x", r#"{"q":8}"#),
        called("y", r#"{"q":9}"#),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn equal_calls_with_indices_of_their_own_stay_as_they_are() {
    let pieces = [piece(0, Some("a"), "{}"), piece(1, Some("b"), "{}")];
    assert_eq!(calls(&pieces).await, [called("a", "{}"), called("b", "{}")]);
}

#[tokio::test]
async fn a_call_whose_id_changes_on_the_way_stays_one_call() {
    let pieces = [piece(0, Some("a"), r#"{"q""#), piece(0, Some("b"), ":1}")];
    assert_eq!(calls(&pieces).await, [called("b", r#"{"q":1}"#)]);
}

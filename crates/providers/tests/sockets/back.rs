//! What goes back to a server that speaks Chat Completions.

use youyou_agent::ChatRequest;
use youyou_agent_providers::Endpoint;

use super::BOTH;
use super::support::{Pace, Reply, Server, ask, chunks, finish, follow_up, provider, user};

/// What goes back of an answer to the same server and model: the assistant's message.
async fn back(
    endpoint: impl Fn(&str) -> Endpoint,
    deltas: &[&str],
    reason: &str,
) -> serde_json::Value {
    let mut all = Vec::new();
    for pace in BOTH {
        let server = Server::start(pace, vec![Reply::stream(chunks(deltas) + &finish(reason))]);
        let provider = provider(endpoint(&server.address).key("secret-key"));
        let (events, _) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        let _ = ask(&provider, follow_up("m", &events)).await;
        all.push(server.requests().last().unwrap().body["messages"][1].clone());
    }
    assert_eq!(all[0], all[1]);
    all.remove(0)
}

fn own(address: &str) -> Endpoint {
    Endpoint::openai_compatible("own", address)
}

const CALL: &str =
    r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"go","arguments":"{}"}}]}"#;

// P1
#[tokio::test]
async fn reasoning_goes_back_with_calls_in_the_field_it_came_in() {
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let thought = format!(r#"{{"{field}":"hm"}}"#);
        let message = back(own, &[&thought, CALL], "tool_calls").await;
        assert_eq!(message[field], "hm");
        let message = back(own, &[&thought, r#"{"content":"yes"}"#], "stop").await;
        assert_eq!(
            message,
            serde_json::json!({ "role": "assistant", "content": "yes" }),
            "none without a call"
        );
    }
    let message = back(
        own,
        &[r#"{"content":"<think>hm</think>yes"}"#, CALL],
        "tool_calls",
    )
    .await;
    assert_eq!(message["content"], "<think>\nhm\n</think>\n\nyes");
}

#[tokio::test]
async fn reasoning_goes_to_no_other_vendor() {
    let first = Server::start(
        Pace::Whole,
        vec![Reply::stream(
            chunks(&[r#"{"reasoning_content":"hm"}"#, CALL]) + &finish("stop"),
        )],
    );
    let (events, _) = ask(
        &provider(own(&first.address)),
        ChatRequest::new("m", [user("Hi")]),
    )
    .await;
    for (endpoint, model) in [
        (Endpoint::openai_compatible("other", ""), "m"),
        (own(""), "n"),
    ] {
        let second = Server::start(Pace::Whole, vec![Reply::stream(finish("stop"))]);
        let _ = ask(
            &provider(endpoint.address(&second.address)),
            follow_up(model, &events),
        )
        .await;
        assert_eq!(
            second.requests()[0].body["messages"][1].get("reasoning_content"),
            None
        );
    }
}

// P2
#[tokio::test]
async fn signed_reasoning_goes_back_unchanged() {
    let encrypted = r#"{"type":"reasoning.encrypted","data":"x+/=","id":"r1","format":"openai-responses-v1","index":0}"#;
    let message = back(
        own,
        &[&format!(r#"{{"reasoning_details":[{encrypted}]}}"#), CALL],
        "tool_calls",
    )
    .await;
    assert_eq!(
        message["reasoning_details"].to_string(),
        format!("[{}]", sorted(encrypted))
    );

    let message = back(
        own,
        &[
            r#"{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"anthropic-claude-v1"}]}"#,
            r#"{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0,"format":"anthropic-claude-v1"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","signature":"s1","index":0,"format":"anthropic-claude-v1"}]}"#,
            r#"{"content":"yes"}"#,
            CALL,
        ],
        "tool_calls",
    )
    .await;
    let expected = serde_json::json!([
        { "type": "reasoning.text", "text": "hm", "index": 0, "format": "anthropic-claude-v1", "signature": "s1" }
    ]);
    assert_eq!(message["reasoning_details"], expected);

    let signed = r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"go","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig=="}}}]}"#;
    let message = back(own, &[signed], "tool_calls").await;
    let expected = serde_json::json!([{
        "id": "a",
        "type": "function",
        "function": { "name": "go", "arguments": "{}" },
        "extra_content": { "google": { "thought_signature": "sig==" } },
    }]);
    assert_eq!(message["tool_calls"], expected);
}

fn sorted(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json)
        .unwrap()
        .to_string()
}

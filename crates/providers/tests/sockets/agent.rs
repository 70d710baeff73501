//! The agent with a real server: what one answer brings goes back with the next request.

use serde_json::json;
use youyou_agent::{
    AgentBuilder, AgentConfig, Capabilities, ModelInfo, SessionConfig, ToolContext, ToolError, tool,
};
use youyou_agent_providers::{Endpoint, Providers};

use super::BOTH;
use super::support::{Reply, Server, chunks, finish};

// P1, P2, P3, P15
#[tokio::test]
async fn a_turn_with_a_call_brings_back_all_that_the_server_wants_back() {
    for pace in BOTH {
        let first = chunks(&[
            r#"{"reasoning_content":"h"}"#,
            r#"{"reasoning_content":"m"}"#,
            r#"{"content":"Let me see."}"#,
            r#"{"tool_calls":[{"index":0,"id":"w1","function":{"name":"go","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"go","arguments":"{\"z\": 1.50,"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"go","arguments":" \"a\": \"b\"}"}}]}"#,
        ]) + &finish("tool_calls");
        let second = chunks(&[r#"{"content":"Done."}"#]) + &finish("stop");
        let server = Server::start(pace, vec![Reply::stream(first), Reply::stream(second)]);
        let model = ModelInfo::new("m", "M", 100_000, Capabilities::default());
        let own = Endpoint::openai_compatible("own", &server.address).model(model);
        let go = tool::typed(
            "go",
            "Goes.",
            |arguments: serde_json::Value, _: ToolContext| async move {
                Ok::<_, ToolError>(arguments["a"].to_string())
            },
        );
        let builder = AgentBuilder::new(AgentConfig::new("m")).tool(go);
        let providers = Providers::new().keys(|_: &str| None).endpoint(own);
        let agent = builder.providers(providers).build().await.unwrap();
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        let outcome = session.send("Hi").unwrap().outcome().await;
        assert_eq!((&*outcome.assistant_output, outcome.error), ("Done.", None));
        let sent = server.requests()[1].body["messages"].clone();
        let sent = sent.as_array().unwrap();
        let answer = sent
            .iter()
            .find(|message| message["role"] == "assistant")
            .unwrap();
        let expected = json!({
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "hm",
            "tool_calls": [{
                "id": "w1",
                "type": "function",
                "function": { "name": "go", "arguments": "{\"z\": 1.50, \"a\": \"b\"}" },
                "extra_content": { "google": { "thought_signature": "s==" } },
            }],
        });
        assert_eq!(answer, &expected);
        assert_eq!(
            sent.last().unwrap(),
            &json!({ "role": "tool", "tool_call_id": "w1", "content": "\"b\"" })
        );
    }
}

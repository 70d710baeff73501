//! What a model and a tool can make the agent hold.

use async_trait::async_trait;
use bench_harness::Started;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    AgentBuilder, AgentConfig, Capabilities, ChatEvent, ChatRequest, ChatStream, Message,
    ModelInfo, ModelProvider, ProviderError, SessionConfig, ToolContext, ToolDefinition, ToolError,
    ToolHandler, ToolInput, ToolOutput, TurnStatus,
};

/// Asks for this many calls of `t`, each made when it is read, and then says "ok".
struct Asks(usize);

#[async_trait]
impl ModelProvider for Asks {
    fn id(&self) -> &str {
        "asks"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo::new(
            "m",
            "m",
            100_000_000,
            Capabilities::default(),
        )]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let asked = |message: &Message| matches!(message, Message::ToolResult(_));
        if request.messages.iter().any(|message| asked(message)) {
            return Ok(ChatEvent::stream([
                ChatEvent::text("ok"),
                ChatEvent::done(),
            ]));
        }
        let calls = (0..self.0).map(|n| ChatEvent::tool_call(format!("c{n}"), "t", "{}"));
        Ok(ChatEvent::stream(calls.chain([ChatEvent::done()])))
    }
}

/// Gives this many NUL characters, as output or as error.
struct Nul {
    bytes: usize,
    fails: bool,
}

#[async_trait]
impl ToolHandler for Nul {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("t", "Gives nothing readable.", json!({ "type": "object" }))
    }

    async fn call(&self, _: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        context.progress("\0".repeat(self.bytes));
        let text = "\0".repeat(self.bytes);
        if self.fails {
            return Err(ToolError::new(text));
        }
        Ok(text.into())
    }
}

/// The most bytes held during a turn, and after it.
fn held(calls: usize, tool: Nul, status: TurnStatus) -> (i64, i64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let agent = AgentBuilder::new(AgentConfig::new("m"))
            .provider(Asks(calls))
            .tool(tool)
            .build()
            .await
            .unwrap();
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        let started = Started::now();
        let outcome = session.send("go").unwrap().outcome().await;
        assert_eq!(outcome.status, status, "{outcome:?}");
        drop(outcome);
        let peak = started.sample().heap_peak();
        // Another start forgets the peak: what is left of it is held now.
        let _forgets = Started::now();
        (peak, started.sample().heap_peak())
    })
}

#[test]
fn two_hundred_megabytes_of_output_are_cut_before_they_are_worked_on() {
    // X10
    let bytes = 200_000_000;
    // An error of the tool holds its message twice while it is made.
    for (fails, by_the_tool) in [(false, bytes), (true, 2 * bytes)] {
        let (peak, kept) = held(1, Nul { bytes, fails }, TurnStatus::Completed);
        assert!(peak < by_the_tool as i64 + 12_000_000, "{peak}");
        assert!(kept < 12_000_000, "{kept}");
    }
}

#[test]
fn a_hundred_thousand_calls_in_one_answer_take_no_more_memory_than_a_thousand() {
    // X5
    let small = || Nul {
        bytes: 0,
        fails: false,
    };
    let (few, _) = held(1_000, small(), TurnStatus::Failed);
    let (many, _) = held(100_000, small(), TurnStatus::Failed);
    assert!(many < few + 50_000, "{many} bytes, {few} for a thousand");
}

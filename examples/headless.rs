//! The agent without Tauri: a provider, a tool, one conversation on the terminal.
//!
//! Run it with `cargo run --no-default-features --example headless`.

use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    AgentBuilder, AgentConfig, AgentError, AgentEventKind, Capabilities, ChatEvent, ChatRequest,
    ChatStream, Message, ModelInfo, ModelProvider, ProviderError, SessionConfig, ToolContext,
    ToolError, tool,
};

/// A model made of two rules: it looks at the clock first, then tells what it saw.
struct Clockwork;

#[async_trait]
impl ModelProvider for Clockwork {
    fn id(&self) -> &str {
        "clockwork"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo::new(
            "clockwork-1",
            "Clockwork",
            8_000,
            Capabilities::default(),
        )]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let events = match request.messages.last().map(|message| &**message) {
            Some(Message::ToolResult(result)) => vec![
                ChatEvent::text("The clock says "),
                ChatEvent::text(result.content.to_string()),
                ChatEvent::text("."),
                ChatEvent::done(),
            ],
            _ => vec![
                ChatEvent::text("Let me look. "),
                ChatEvent::tool_call("look", "clock", r#"{"unit":"hours"}"#),
                ChatEvent::done(),
            ],
        };
        Ok(ChatEvent::stream(events))
    }
}

#[derive(Deserialize, JsonSchema)]
struct ClockArguments {
    /// The unit of the answer.
    unit: Unit,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Seconds,
    Hours,
}

async fn clock(arguments: ClockArguments, _context: ToolContext) -> Result<String, ToolError> {
    let seconds = UNIX_EPOCH.elapsed().map_err(ToolError::new)?.as_secs();
    Ok(match arguments.unit {
        Unit::Seconds => format!("{seconds} seconds since 1970"),
        Unit::Hours => format!("{} hours since 1970", seconds / 3_600),
    })
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the terminal is this example's page")]
async fn main() -> Result<(), AgentError> {
    let agent = AgentBuilder::new(AgentConfig::new("clockwork-1"))
        .provider(Clockwork)
        .tool(tool::typed("clock", "Tells the time.", clock))
        .build()
        .await?;
    let session = agent.create_session(SessionConfig::default()).await?;

    println!("> What time is it?");
    let mut turn = session.send("What time is it?")?;
    while let Some(event) = turn.next().await {
        match event.kind {
            AgentEventKind::TextDelta { delta, .. } => print!("{delta}"),
            AgentEventKind::ToolCallStart {
                tool_name,
                arguments,
                ..
            } => println!("\n  [{tool_name} {arguments}]"),
            AgentEventKind::ToolCallEnd { output, .. } => println!("  [= {output}]"),
            AgentEventKind::Error { error } => println!("\n{error}"),
            AgentEventKind::TurnComplete { .. } => println!(),
            _ => {}
        }
    }

    for problem in agent.shutdown().await.problems {
        println!("{problem}");
    }
    Ok(())
}

//! The conversation that is killed: a model made of rules, so that every answer is known
//! beforehand, and tools that leave a line behind whenever they run.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{ScriptedProvider, Step, call, done, reasoning, text};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, Capabilities, ChatRequest, ChatStream, ContentBlock, Message,
    ModelInfo, ModelProvider, ProviderError, ToolContext, ToolError, UserOrigin, tool,
};
use youyou_agent_sqlite::{Sqlite, SqliteSessions};

/// Small, so that compactions are killed, too.
const WINDOW: u32 = 3_000;
/// The last answer of a turn comes in this round of it.
pub(crate) const LAST_ROUND: u32 = 2;
/// How many pieces a text comes in.
const PIECES: u32 = 6;
/// The message whose answer does not end.
pub(crate) const ENDLESS: &str = "talk for ever";

/// What the user says for the turn of this number.
pub(crate) fn message(number: u32) -> String {
    format!("talk {number}")
}

/// The whole text of the answer in one round of a turn.
pub(crate) fn answer(number: u32, round: u32) -> String {
    (0..PIECES)
        .map(|piece| text_piece(number, round, piece))
        .collect()
}

/// The file that the tools write to.
pub(crate) fn tool_file(folder: &Path) -> PathBuf {
    folder.join("tools.txt")
}

pub(crate) fn sessions(folder: &Path) -> SqliteSessions {
    Sqlite::open(folder.join("chat.sqlite")).unwrap().sessions()
}

pub(crate) async fn agent(folder: &Path) -> Agent {
    let file = tool_file(folder);
    let look = {
        let file = file.clone();
        move |line: Line, _: ToolContext| leave(&file, &line)
    };
    let change = move |line: Line, _: ToolContext| leave(&file, &line);
    AgentBuilder::new(AgentConfig::new("rules"))
        .provider(Paced(model()))
        .tool(tool::typed_blocking("look", "Looks.", look))
        .tool(tool::typed_blocking("change", "Changes.", change).mutating())
        .session_storage(sessions(folder))
        .build()
        .await
        .unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    /// What to leave behind.
    line: String,
}

/// One write per line: a killed process leaves it whole or not at all.
fn leave(file: &Path, line: &Line) -> Result<String, ToolError> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .map_err(ToolError::new)?;
    file.write_all(format!("{}\n", line.line).as_bytes())
        .map_err(ToolError::new)?;
    Ok(format!("left {}", line.line))
}

/// It refuses a request that a strict server would refuse, which fails the turn.
fn model() -> ScriptedProvider {
    ScriptedProvider::new("rules")
        .model(ModelInfo::new(
            "rules",
            "Rules",
            WINDOW,
            Capabilities::default(),
        ))
        .recording(false)
        .always(steps)
}

fn steps(request: &ChatRequest) -> Vec<Step> {
    if request.tools.is_empty() {
        return vec![text("What was said so far, in short."), done()];
    }
    // Results of this turn and the user's message before them.
    let mut results = 0;
    let mut said = String::new();
    for message in request.messages.iter_rev() {
        match &**message {
            Message::ToolResult(_) => results += 1,
            Message::User(user) if user.origin == UserOrigin::Input => {
                said = user.content.iter().map(words).collect();
                break;
            }
            _ => {}
        }
    }
    if said == ENDLESS {
        return (0..100_000)
            .map(|piece| text(text_piece(0, 0, piece)))
            .collect();
    }
    let number = said
        .strip_prefix("talk ")
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    // Two calls in the first round, one in the second.
    turn(number, [0, 1, 1, LAST_ROUND][results.min(3)])
}

fn turn(number: u32, round: u32) -> Vec<Step> {
    let arguments = |call: u32| json!({ "line": format!("{number}.{round}.{call}") }).to_string();
    let mut steps = vec![reasoning(format!("[{number}.{round}] "))];
    steps.extend((0..PIECES).map(|piece| text(text_piece(number, round, piece))));
    match round {
        // By turns all at once, and one after the other. Ids repeat, as careless servers do it.
        0 => {
            let second = if number.is_multiple_of(2) {
                "look"
            } else {
                "change"
            };
            steps.push(call("call_0", "look", arguments(0)));
            steps.push(call("call_1", second, arguments(1)));
        }
        1 => steps.push(call("call_0", "change", arguments(0))),
        _ => {}
    }
    steps.push(done());
    steps
}

fn text_piece(number: u32, round: u32, piece: u32) -> String {
    format!("{number}.{round}.{piece} is said. ")
}

fn words(block: &ContentBlock) -> &str {
    match block {
        ContentBlock::Text { text } => text,
        _ => "",
    }
}

/// Speaks at the pace of a quick model, so that a kill also hits the middle of a text.
struct Paced(ScriptedProvider);

#[async_trait]
impl ModelProvider for Paced {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn models(&self) -> Vec<ModelInfo> {
        self.0.models()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let events = self.0.chat(request, cancel).await?;
        Ok(Box::pin(events.then(|event| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            event
        })))
    }
}

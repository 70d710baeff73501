//! The agent itself, driven as an app drives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{InMemorySessions, assistant_message, session_created, text_part};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentEventKind, Capabilities, ChatEvent, ChatRequest,
    ChatStream, ContentBlock, HookOutcome, HookRegistry, ModelInfo, ModelProvider, Plugin,
    PluginError, ProviderError, ResumeOptions, Session, SessionConfig, SessionEvent,
    SessionEventKind, SessionStorage, ToolContext, ToolDefinition, ToolError, ToolHandler,
    ToolInput, ToolOutput,
};

use crate::measure::{Cell, measure, timed};
use crate::script::{Item, Script};
use crate::workload::{Kind, Seen, Workload, history_text, image_data};

struct Model {
    workload: Workload,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl ModelProvider for Model {
    fn id(&self) -> &str {
        "scripted"
    }

    fn models(&self) -> Vec<ModelInfo> {
        let capabilities = Capabilities {
            vision: true,
            ..Capabilities::default()
        };
        vec![ModelInfo::new("m", "m", 100_000_000, capabilities)]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let script = Script::new(&self.workload, number).map(move |item| {
            // The request lives as long as its answer, as with a real one.
            let _ = &request;
            match item {
                Item::Delta(text) => ChatEvent::TextDelta { text },
                Item::Call { id, arguments } => ChatEvent::tool_call(id, "echo", arguments),
                Item::End => ChatEvent::done(),
            }
        });
        Ok(Box::pin(script))
    }
}

struct Echo(String);

#[async_trait]
impl ToolHandler for Echo {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.0.clone(),
            description: "Gives back its text.".into(),
            parameters: json!({
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"]
            }),
            mutating: false,
        }
    }

    async fn call(&self, input: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let text = input.arguments.get("text").and_then(|text| text.as_str());
        text.map(ToolOutput::text)
            .ok_or_else(|| ToolError::new("no text"))
    }
}

struct Idle(usize);

#[async_trait]
impl Plugin for Idle {
    fn id(&self) -> &str {
        "idle"
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        for _ in 0..self.0 {
            hooks.before_tool_use("idle", |_| async { Ok(HookOutcome::Continue) });
            hooks.after_tool_use("idle", |_| async { Ok(HookOutcome::Continue) });
        }
        Ok(())
    }
}

struct Ready {
    _agent: Agent,
    session: Session,
    calls: Arc<AtomicUsize>,
}

/// Measures the agent in one workload.
pub(crate) fn run(workload: &Workload) -> Cell {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let history = history(workload);
    let prepare = || runtime.block_on(ready(workload, &history));
    match workload.kind {
        Kind::Turn => measure("ours", workload, prepare, |ready| turn(&runtime, ready)),
        Kind::Cancel => measure("ours", workload, prepare, |ready| {
            cancel(&runtime, workload, ready)
        }),
        Kind::Build => measure("ours", workload, || (), |()| {
            let (_agent, micros) = timed(|| runtime.block_on(agent(workload, None, 20)));
            (workload.expected(), micros)
        }),
    }
}

async fn agent(
    workload: &Workload,
    storage: Option<&InMemorySessions>,
    tools: usize,
) -> (Agent, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let config = AgentConfig {
        max_tool_calls_per_turn: 10_000,
        ..AgentConfig::new("m")
    };
    let mut builder = AgentBuilder::new(config).provider(Model {
        workload: workload.clone(),
        calls: Arc::clone(&calls),
    });
    builder = builder.tool(Echo("echo".into()));
    for number in 1..tools {
        builder = builder.tool(Echo(format!("echo{number}")));
    }
    if workload.hooks > 0 {
        builder = builder.plugin(Idle(workload.hooks));
    }
    if let Some(storage) = storage {
        builder = builder.session_storage(HistoryOnly(storage.clone()));
    }
    (builder.build().await.unwrap(), calls)
}

async fn ready(workload: &Workload, history: &InMemorySessions) -> Ready {
    let stored = (workload.history > 0).then_some(history);
    let (agent, calls) = agent(workload, stored, 1).await;
    let session = match stored {
        Some(_) => agent.resume_session("h", ResumeOptions::default()).await,
        None => agent.create_session(SessionConfig::default()).await,
    };
    Ready {
        _agent: agent,
        session: session.unwrap(),
        calls,
    }
}

fn turn(runtime: &Runtime, ready: &mut Ready) -> (Seen, f64) {
    let mut seen = Seen::default();
    let ((), micros) = timed(|| {
        runtime.block_on(async {
            let mut turn = ready.session.send("go").unwrap();
            while let Some(event) = turn.next().await {
                match event.kind {
                    AgentEventKind::TextDelta { first_sequence, .. } => {
                        seen.deltas += (event.sequence - first_sequence + 1) as usize;
                    }
                    AgentEventKind::ToolCallEnd { success: true, .. } => seen.tool_results += 1,
                    AgentEventKind::TurnComplete {
                        assistant_output, ..
                    } => seen.text_bytes = assistant_output.len(),
                    _ => {}
                }
            }
        });
    });
    seen.model_calls = ready.calls.load(Ordering::Relaxed);
    (seen, micros)
}

fn cancel(runtime: &Runtime, workload: &Workload, ready: &mut Ready) -> (Seen, f64) {
    let mut seen = workload.expected();
    let micros = runtime.block_on(async {
        let mut turn = ready.session.send("go").unwrap();
        let mut deltas = 0;
        let mut began = Instant::now();
        while let Some(event) = turn.next().await {
            match event.kind {
                AgentEventKind::TextDelta { .. } => {
                    deltas += 1;
                    if deltas == workload.deltas {
                        tokio::task::yield_now().await;
                        began = Instant::now();
                        assert!(turn.cancel());
                    }
                }
                AgentEventKind::TurnCancelled { .. } => seen.deltas = deltas,
                _ => {}
            }
        }
        began.elapsed().as_secs_f64() * 1e6
    });
    (seen, micros)
}

/// A session to resume, with the messages of the workload.
fn history(workload: &Workload) -> InMemorySessions {
    let storage = InMemorySessions::new();
    let event = |index: usize, kind| SessionEvent {
        index: index as u64,
        timestamp: 0,
        turn_id: "".into(),
        kind,
    };
    let mut events = vec![session_created(0, "history", "m")];
    for number in 0..workload.history {
        let index = number + 1;
        events.push(if workload.image && number == 2 {
            let content = vec![ContentBlock::image("image/png", image_data())];
            event(index, SessionEventKind::UserMessage { content })
        } else if number % 2 == 0 {
            let content = vec![ContentBlock::text(history_text())];
            event(index, SessionEventKind::UserMessage { content })
        } else {
            assistant_message(index as u64, [text_part(&history_text())])
        });
    }
    storage.preload("h", events);
    storage
}

/// Gives a history and stores nothing, so that the storage is not what is measured.
struct HistoryOnly(InMemorySessions);

#[async_trait]
impl SessionStorage for HistoryOnly {
    async fn append(
        &self,
        _: &str,
        _: &[SessionEvent],
    ) -> Result<(), youyou_agent::StorageError> {
        Ok(())
    }

    async fn load(
        &self,
        id: &str,
    ) -> Result<Option<youyou_agent::SessionLog>, youyou_agent::StorageError> {
        self.0.load(id).await
    }

    async fn list(
        &self,
        _: Option<&str>,
        _: usize,
    ) -> Result<youyou_agent::ListPage, youyou_agent::StorageError> {
        Ok(youyou_agent::ListPage::default())
    }

    async fn find(
        &self,
        _: &str,
    ) -> Result<Vec<youyou_agent::SessionSummary>, youyou_agent::StorageError> {
        Ok(Vec::new())
    }

    async fn rename(&self, _: &str, _: &str) -> Result<bool, youyou_agent::StorageError> {
        Ok(false)
    }

    async fn delete(&self, _: &str) -> Result<bool, youyou_agent::StorageError> {
        Ok(false)
    }
}

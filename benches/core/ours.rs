//! The agent itself, driven as an app drives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bench_harness::{Cell, Item, Kind, Sample, Script, Seen, Started, Workload, measure};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::InMemorySessions;
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentEventKind, Capabilities, ChatEvent, ChatRequest,
    ChatStream, HookOutcome, HookRegistry, ModelInfo, ModelProvider, Plugin, PluginError,
    ProviderError, ResumeOptions, Session, SessionConfig, ToolContext, ToolDefinition, ToolError,
    ToolHandler, ToolInput, ToolOutput,
};

use crate::history::{HistoryOnly, history};

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
                Item::Delta(text) => Ok(ChatEvent::text(text)),
                Item::Call { id, arguments } => Ok(ChatEvent::tool_call(id, "echo", arguments)),
                Item::End => Ok(ChatEvent::done()),
            }
        });
        Ok(Box::pin(script))
    }
}

struct Echo(String);

#[async_trait]
impl ToolHandler for Echo {
    fn definition(&self) -> ToolDefinition {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"]
        });
        ToolDefinition::new(&self.0, "Gives back its text.", parameters)
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
    let prepare = || {
        let ready = runtime.block_on(ready(workload, &history));
        if workload.warm {
            turn(&runtime, &ready);
        }
        ready
    };
    match workload.kind {
        Kind::Turn => measure("ours", workload, prepare, |ready| {
            let (mut seen, sample) = turn(&runtime, ready);
            seen.model_calls -= workload.model_calls_before();
            (seen, sample)
        }),
        Kind::Cancel => measure("ours", workload, prepare, |ready| {
            cancel(&runtime, workload, ready)
        }),
        Kind::Build => measure(
            "ours",
            workload,
            || (),
            |()| {
                let started = Started::now();
                let _agent = runtime.block_on(agent(workload, None, 20));
                (workload.expected(), started.sample())
            },
        ),
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

fn turn(runtime: &Runtime, ready: &Ready) -> (Seen, Sample) {
    let mut seen = Seen::default();
    let started = Started::now();
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
    let sample = started.sample();
    seen.model_calls = ready.calls.load(Ordering::Relaxed);
    (seen, sample)
}

fn cancel(runtime: &Runtime, workload: &Workload, ready: &mut Ready) -> (Seen, Sample) {
    let mut seen = workload.expected();
    let sample = runtime.block_on(async {
        let mut turn = ready.session.send("go").unwrap();
        let mut deltas = 0;
        let mut started = Started::now();
        while let Some(event) = turn.next().await {
            match event.kind {
                AgentEventKind::TextDelta { .. } => {
                    deltas += 1;
                    if deltas == workload.deltas {
                        tokio::task::yield_now().await;
                        started = Started::now();
                        assert!(turn.cancel());
                    }
                }
                AgentEventKind::TurnCancelled { .. } => seen.deltas = deltas,
                _ => {}
            }
        }
        started.sample()
    });
    (seen, sample)
}

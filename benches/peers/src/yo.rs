//! yoagent with a provider that follows the script.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bench_harness::{
    Cell, DELTA, Item, Kind, Sample, Script, Seen, Started, Workload, history_text, image_data,
    measure,
};
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use yoagent::provider::{ModelConfig, ProviderError, StreamConfig, StreamEvent, StreamProvider};
use yoagent::types::{
    AgentEvent, AgentMessage, AgentTool, Content, Message, StopReason, StreamDelta, ToolContext,
    ToolError, ToolResult, Usage,
};
use yoagent::{Agent, RetryConfig};

struct Scripted {
    workload: Workload,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl StreamProvider for Scripted {
    async fn stream(
        &self,
        _: StreamConfig,
        events: UnboundedSender<StreamEvent>,
        cancel: CancellationToken,
    ) -> Result<Message, ProviderError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut script = Script::new(&self.workload, number);
        let mut content = Vec::new();
        let mut text = String::new();
        let _ = events.send(StreamEvent::Start);
        loop {
            let item = tokio::select! {
                biased;
                item = script.next() => item,
                () = cancel.cancelled() => return Err(ProviderError::Cancelled),
            };
            match item {
                Some(Item::Delta(delta)) => {
                    text.push_str(&delta);
                    let _ = events.send(StreamEvent::TextDelta {
                        content_index: 0,
                        delta,
                    });
                }
                Some(Item::Call { id, arguments }) => {
                    let content_index = content.len();
                    let parsed = serde_json::from_str(&arguments).expect("arguments are JSON");
                    let _ = events.send(StreamEvent::ToolCallStart {
                        content_index,
                        id: id.clone(),
                        name: "echo".into(),
                    });
                    let _ = events.send(StreamEvent::ToolCallDelta {
                        content_index,
                        delta: arguments,
                    });
                    let _ = events.send(StreamEvent::ToolCallEnd { content_index });
                    content.push(Content::tool_call(id, "echo", parsed));
                }
                Some(Item::End) | None => break,
            }
        }
        let stop = if content.is_empty() {
            content.push(Content::Text { text });
            StopReason::Stop
        } else {
            StopReason::ToolUse
        };
        let message = Message::assistant(content, stop, "mock", "mock", Usage::default());
        let _ = events.send(StreamEvent::Done {
            message: message.clone(),
        });
        Ok(message)
    }
}

struct Echo;

#[async_trait]
impl AgentTool for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn label(&self) -> &str {
        "echo"
    }

    fn description(&self) -> &str {
        "Gives back its text."
    }

    fn parameters_schema(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"]
        })
    }

    async fn execute(
        &self,
        arguments: serde_json::Value,
        _: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let text = arguments.get("text").and_then(|text| text.as_str());
        let text = text.ok_or_else(|| ToolError::InvalidArgs("no text".into()))?;
        Ok(ToolResult {
            content: vec![Content::Text { text: text.into() }],
            details: serde_json::Value::Null,
        })
    }
}

struct Ready {
    agent: Agent,
    calls: Arc<AtomicUsize>,
}

/// Measures yoagent in one workload.
pub(crate) fn run(workload: &Workload) -> Option<Cell> {
    if workload.kind == Kind::Build || workload.hooks > 0 {
        return None;
    }
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let history = history(workload);
    let prepare = || {
        let mut ready = ready(workload, history.clone());
        if workload.warm {
            turn(&runtime, &mut ready);
        }
        ready
    };
    Some(measure("yoagent 0.26.6", workload, prepare, |ready| {
        if workload.kind == Kind::Cancel {
            return cancel(&runtime, workload, ready);
        }
        let (mut seen, sample) = turn(&runtime, ready);
        seen.model_calls -= workload.model_calls_before();
        (seen, sample)
    }))
}

fn ready(workload: &Workload, history: Vec<AgentMessage>) -> Ready {
    let calls = Arc::new(AtomicUsize::new(0));
    let scripted = Scripted {
        workload: workload.clone(),
        calls: Arc::clone(&calls),
    };
    Ready {
        agent: Agent::from_provider(scripted, ModelConfig::mock())
            .with_api_key("x")
            .with_system_prompt("s")
            .with_retry_config(RetryConfig::none())
            .without_context_management()
            .with_tools(vec![Box::new(Echo)])
            .with_messages(history),
        calls,
    }
}

fn turn(runtime: &Runtime, ready: &mut Ready) -> (Seen, Sample) {
    let mut seen = Seen::default();
    let started = Started::now();
    runtime.block_on(async {
        let mut events = ready.agent.prompt("go").await;
        while let Some(event) = events.recv().await {
            match event {
                AgentEvent::MessageUpdate {
                    delta: StreamDelta::Text { .. },
                    ..
                } => seen.deltas += 1,
                AgentEvent::ToolExecutionEnd { is_error, .. } => {
                    seen.tool_results += usize::from(!is_error);
                }
                AgentEvent::MessageEnd {
                    message: AgentMessage::Llm(Message::Assistant { content, .. }),
                } => {
                    let texts = content.iter().map(|part| match part {
                        Content::Text { text } => text.len(),
                        _ => 0,
                    });
                    seen.text_bytes = texts.sum();
                }
                _ => {}
            }
        }
        ready.agent.finish().await;
    });
    let sample = started.sample();
    seen.model_calls = ready.calls.load(Ordering::Relaxed);
    (seen, sample)
}

fn cancel(runtime: &Runtime, workload: &Workload, ready: &mut Ready) -> (Seen, Sample) {
    let mut seen = workload.expected();
    let sample = runtime.block_on(async {
        let mut events = ready.agent.prompt("go").await;
        let mut deltas = 0;
        let mut started = Started::now();
        while let Some(event) = events.recv().await {
            match event {
                AgentEvent::MessageUpdate {
                    delta: StreamDelta::Text { delta },
                    ..
                } => {
                    assert_eq!(delta, DELTA);
                    deltas += 1;
                    if deltas == workload.deltas {
                        // Time for the provider to reach its wait.
                        tokio::task::yield_now().await;
                        tokio::task::yield_now().await;
                        started = Started::now();
                        ready.agent.abort();
                    }
                }
                AgentEvent::AgentEnd { .. } => {
                    seen.deltas = deltas;
                    break;
                }
                _ => {}
            }
        }
        let sample = started.sample();
        ready.agent.finish().await;
        sample
    });
    (seen, sample)
}

fn history(workload: &Workload) -> Vec<AgentMessage> {
    (0..workload.history)
        .map(|number| {
            if workload.image && number == 2 {
                let image = Content::Image {
                    data: image_data(),
                    mime_type: "image/png".into(),
                };
                Message::User {
                    content: vec![image],
                    timestamp: 1,
                }
                .into()
            } else if number % 2 == 0 {
                Message::user(history_text()).into()
            } else {
                let content = vec![Content::Text {
                    text: history_text(),
                }];
                Message::assistant(content, StopReason::Stop, "mock", "mock", Usage::default())
                    .into()
            }
        })
        .collect()
}

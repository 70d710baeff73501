//! rig-agent with a transport that follows the script.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bench_harness::{
    Cell, Item, Kind, Sample, Script, Seen, Started, Workload, history_text, image_data, measure,
};
use futures_util::{Stream, StreamExt as _};
use rig_agent::agent::{Agent, AgentBuilder, MultiTurnStreamItem};
use rig_core::completion::{CompletionRequest, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::error::ProviderError;
use rig_core::message::{ImageMediaType, Message, UserContent};
use rig_core::streaming::{Item as StreamItem, StreamEvent};
use rig_core::test_utils::{MockFrame, MockScript, MockStreamEvent};
use rig_core::tool::PortableTool;
use tokio::runtime::{Builder, Runtime};

#[derive(Clone)]
struct Scripted {
    workload: Workload,
    calls: Arc<AtomicUsize>,
}

impl Transport<MockScript> for Scripted {
    fn send(&self, _: CompletionRequest, _: Exchange) -> Opening<MockFrame> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Opening::ready(Opened::new(Frames(Script::new(&self.workload, number))))
    }
}

struct Frames(Script);

impl Stream for Frames {
    type Item = Result<MockFrame, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|item| {
            let event = match item? {
                Item::Delta(text) => MockStreamEvent::text(text),
                Item::Call { id, arguments } => {
                    let arguments = serde_json::from_str(&arguments).expect("arguments are JSON");
                    MockStreamEvent::tool_call(id.clone(), "echo", arguments).with_call_id(id)
                }
                Item::End => MockStreamEvent::final_response(Usage::default()),
            };
            Some(Ok(MockFrame::Event(event)))
        })
    }
}

#[derive(serde::Deserialize)]
struct Arguments {
    text: String,
}

struct Echo;

impl PortableTool for Echo {
    const NAME: &'static str = "echo";
    type Args = Arguments;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Gives back its text.".into()
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"]
        })
    }

    async fn call(&self, arguments: Arguments) -> Result<String, Infallible> {
        Ok(arguments.text)
    }
}

struct Ready {
    agent: Agent,
    calls: Arc<AtomicUsize>,
    /// Taken by the measured turn: rig wants a copy of its own per prompt.
    history: Vec<Message>,
}

/// Measures rig in one workload. It has neither hooks that cost nothing to compare with, nor a
/// cancel that is answered by an event.
pub(crate) fn run(workload: &Workload) -> Option<Cell> {
    if workload.kind != Kind::Turn || workload.hooks > 0 {
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
            turn(&runtime, workload, &mut ready);
            ready.history = history.clone();
        }
        ready
    };
    Some(measure("rig-agent 0.44.0", workload, prepare, |ready| {
        let (mut seen, sample) = turn(&runtime, workload, ready);
        seen.model_calls -= workload.model_calls_before();
        (seen, sample)
    }))
}

fn ready(workload: &Workload, history: Vec<Message>) -> Ready {
    let calls = Arc::new(AtomicUsize::new(0));
    let scripted = Scripted {
        workload: workload.clone(),
        calls: Arc::clone(&calls),
    };
    let model = Model::new(MockScript::default(), scripted);
    Ready {
        agent: AgentBuilder::new(model).preamble("s").tool(Echo).build(),
        calls,
        history,
    }
}

fn turn(runtime: &Runtime, workload: &Workload, ready: &mut Ready) -> (Seen, Sample) {
    let history = std::mem::take(&mut ready.history);
    let mut seen = Seen::default();
    let started = Started::now();
    runtime.block_on(async {
        let mut events = ready
            .agent
            .prompt("go")
            .history(history)
            .max_turns(workload.model_calls())
            .tool_concurrency(16)
            .stream();
        while let Some(event) = events.next().await {
            match event.expect("rig answers") {
                MultiTurnStreamItem::StreamAssistantItem(StreamItem::Event(
                    StreamEvent::Text { .. },
                )) => seen.deltas += 1,
                MultiTurnStreamItem::ToolResult { tool_result } => {
                    seen.tool_results += usize::from(!tool_result.is_error);
                }
                MultiTurnStreamItem::FinalResponse(response) => {
                    seen.text_bytes = response.output().len();
                }
                _ => {}
            }
        }
    });
    let sample = started.sample();
    seen.model_calls = ready.calls.load(Ordering::Relaxed);
    (seen, sample)
}

fn history(workload: &Workload) -> Vec<Message> {
    (0..workload.history)
        .map(|number| {
            if workload.image && number == 2 {
                let image =
                    UserContent::image_base64(image_data(), Some(ImageMediaType::PNG), None);
                Message::User {
                    content: vec![image],
                }
            } else if number % 2 == 0 {
                Message::user(history_text())
            } else {
                Message::assistant(history_text())
            }
        })
        .collect()
}

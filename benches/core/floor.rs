//! The floor: the smallest loop that streams from a boxed model, honours a cancel token, runs
//! each tool in a task with a time limit, keeps results in order and shares the history. No
//! hooks, no storage, no validation, no replay: a limit, not a product.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bench_harness::{
    Cell, Item, Kind, Sample, Script, Seen, Started, Workload, history_text, image_data, measure,
};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[expect(dead_code, reason = "events carry what a consumer would read")]
enum Event {
    Started {
        sequence: u64,
    },
    Delta {
        sequence: u64,
        delta: String,
    },
    CallStart {
        sequence: u64,
        id: String,
        input: Value,
    },
    CallEnd {
        sequence: u64,
        id: String,
        output: String,
    },
    Cancelled {
        sequence: u64,
    },
    Done {
        sequence: u64,
        text: String,
    },
}

#[expect(dead_code, reason = "messages carry what a model would read")]
enum Message {
    User(String),
    Image(String),
    Assistant { text: String, calls: Vec<Call> },
    Tool { id: String, output: String },
}

#[derive(Clone)]
struct Call {
    id: String,
    arguments: String,
}

#[expect(dead_code, reason = "a request carries what a model would read")]
struct Request {
    shared: Arc<[Arc<Message>]>,
    tail: Vec<Arc<Message>>,
    cancel: CancellationToken,
    tools: Arc<[Value]>,
}

trait Model: Send + Sync {
    fn stream(&self, request: Request) -> BoxFuture<'_, BoxStream<'static, Item>>;
}

struct Scripted {
    workload: Workload,
    calls: AtomicUsize,
}

impl Model for Scripted {
    fn stream(&self, request: Request) -> BoxFuture<'_, BoxStream<'static, Item>> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let script = Script::new(&self.workload, number).map(move |item| {
            let _ = &request;
            item
        });
        Box::pin(async move { script.boxed() })
    }
}

trait Tool: Send + Sync {
    fn call(&self, input: Value, cancel: CancellationToken) -> BoxFuture<'static, String>;
}

struct Echo;

impl Tool for Echo {
    fn call(&self, input: Value, _cancel: CancellationToken) -> BoxFuture<'static, String> {
        Box::pin(async move {
            let text = input.get("text").and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        })
    }
}

struct Loop {
    model: Arc<dyn Model>,
    tool: Arc<dyn Tool>,
    tools: Arc<[Value]>,
}

impl Loop {
    async fn turn(
        &self,
        shared: Arc<[Arc<Message>]>,
        events: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) {
        let mut sequence = 0;
        let mut next = || {
            sequence += 1;
            sequence
        };
        let mut tail = vec![Arc::new(Message::User("go".into()))];
        let _ = events.send(Event::Started { sequence: next() }).await;
        loop {
            let request = Request {
                shared: Arc::clone(&shared),
                tail: tail.clone(),
                cancel: cancel.clone(),
                tools: Arc::clone(&self.tools),
            };
            let mut stream = self.model.stream(request).await;
            let (mut text, mut calls) = (String::new(), Vec::new());
            loop {
                let item = tokio::select! {
                    biased;
                    () = cancel.cancelled() => {
                        let _ = events.send(Event::Cancelled { sequence: next() }).await;
                        return;
                    }
                    item = stream.next() => item,
                };
                match item {
                    Some(Item::Delta(delta)) => {
                        text.push_str(&delta);
                        let _ = events
                            .send(Event::Delta {
                                sequence: next(),
                                delta,
                            })
                            .await;
                    }
                    Some(Item::Call { id, arguments }) => calls.push(Call { id, arguments }),
                    Some(Item::End) | None => break,
                }
            }
            drop(stream);
            tail.push(Arc::new(Message::Assistant {
                text: text.clone(),
                calls: calls.clone(),
            }));
            if calls.is_empty() {
                let _ = events
                    .send(Event::Done {
                        sequence: next(),
                        text,
                    })
                    .await;
                return;
            }
            let mut running = Vec::with_capacity(calls.len());
            for call in &calls {
                let input: Value = serde_json::from_str(&call.arguments).unwrap();
                let start = Event::CallStart {
                    sequence: next(),
                    id: call.id.clone(),
                    input: input.clone(),
                };
                let _ = events.send(start).await;
                let tool = self.tool.call(input, cancel.child_token());
                running.push(tokio::spawn(tokio::time::timeout(
                    Duration::from_secs(120),
                    tool,
                )));
            }
            for (task, call) in running.into_iter().zip(calls) {
                let output = task.await.unwrap().unwrap();
                let end = Event::CallEnd {
                    sequence: next(),
                    id: call.id.clone(),
                    output: output.clone(),
                };
                let _ = events.send(end).await;
                tail.push(Arc::new(Message::Tool {
                    id: call.id,
                    output,
                }));
            }
        }
    }
}

struct Ready {
    model: Arc<Scripted>,
    turn: Arc<Loop>,
    history: Arc<[Arc<Message>]>,
}

/// Measures the floor in one workload.
pub(crate) fn run(workload: &Workload) -> Cell {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let history = history(workload);
    let prepare = || {
        let ready = ready(workload, &history);
        if workload.warm {
            turn(&runtime, &ready);
        }
        ready
    };
    match workload.kind {
        Kind::Turn => measure("floor", workload, prepare, |ready| {
            let (mut seen, sample) = turn(&runtime, ready);
            seen.model_calls -= workload.model_calls_before();
            (seen, sample)
        }),
        Kind::Cancel => measure("floor", workload, prepare, |ready| {
            cancel(&runtime, workload, ready)
        }),
        Kind::Build => measure(
            "floor",
            workload,
            || (),
            |()| {
                let started = Started::now();
                let _ready = ready(workload, &history);
                (workload.expected(), started.sample())
            },
        ),
    }
}

fn ready(workload: &Workload, history: &Arc<[Arc<Message>]>) -> Ready {
    let model = Arc::new(Scripted {
        workload: workload.clone(),
        calls: AtomicUsize::new(0),
    });
    let turn = Arc::new(Loop {
        model: Arc::clone(&model) as Arc<dyn Model>,
        tool: Arc::new(Echo),
        tools: vec![json!({ "type": "object" })].into(),
    });
    Ready {
        model,
        turn,
        history: Arc::clone(history),
    }
}

fn turn(runtime: &Runtime, ready: &Ready) -> (Seen, Sample) {
    let mut seen = Seen::default();
    let started = Started::now();
    runtime.block_on(async {
        let (sender, mut events) = mpsc::channel(64);
        let (turn, history) = (Arc::clone(&ready.turn), Arc::clone(&ready.history));
        let task = tokio::spawn(async move {
            turn.turn(history, sender, CancellationToken::new()).await;
        });
        while let Some(event) = events.recv().await {
            match event {
                Event::Delta { .. } => seen.deltas += 1,
                Event::CallEnd { .. } => seen.tool_results += 1,
                Event::Done { text, .. } => seen.text_bytes = text.len(),
                _ => {}
            }
        }
        task.await.unwrap();
    });
    let sample = started.sample();
    seen.model_calls = ready.model.calls.load(Ordering::Relaxed);
    (seen, sample)
}

fn cancel(runtime: &Runtime, workload: &Workload, ready: &mut Ready) -> (Seen, Sample) {
    let mut seen = workload.expected();
    let sample = runtime.block_on(async {
        let (sender, mut events) = mpsc::channel(64);
        let (turn, history) = (Arc::clone(&ready.turn), Arc::clone(&ready.history));
        let token = CancellationToken::new();
        let cancel = token.clone();
        let task = tokio::spawn(async move { turn.turn(history, sender, cancel).await });
        let mut deltas = 0;
        let mut started = Started::now();
        while let Some(event) = events.recv().await {
            match event {
                Event::Delta { .. } => {
                    deltas += 1;
                    if deltas == workload.deltas {
                        tokio::task::yield_now().await;
                        started = Started::now();
                        token.cancel();
                    }
                }
                Event::Cancelled { .. } => seen.deltas = deltas,
                _ => {}
            }
        }
        let sample = started.sample();
        task.await.unwrap();
        sample
    });
    (seen, sample)
}

fn history(workload: &Workload) -> Arc<[Arc<Message>]> {
    (0..workload.history)
        .map(|number| {
            Arc::new(if workload.image && number == 2 {
                Message::Image(image_data())
            } else if number % 2 == 0 {
                Message::User(history_text())
            } else {
                Message::Assistant {
                    text: history_text(),
                    calls: Vec::new(),
                }
            })
        })
        .collect()
}

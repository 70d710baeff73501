//! A raw server on loopback, and what it takes to speak with it through the crate.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatEvent, ChatRequest, ContentBlock, Message, ModelProvider,
    ProviderData, ProviderError, ToolResultMessage, UserMessage, UserOrigin,
};
use youyou_agent_providers::{Endpoint, Providers};

/// How the bytes of a body come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// In one piece.
    Whole,
    /// One byte per chunk.
    Bytes,
}

/// What the server answers.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
    /// The connection is cut after the body, in the middle of the transfer.
    pub(crate) is_cut: bool,
    /// The connection stays open after the body.
    pub(crate) hangs: bool,
}

impl Reply {
    /// A stream of events as it is on the wire.
    pub(crate) fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::new("200 OK", "text/event-stream", body)
    }

    pub(crate) fn new(status: &'static str, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![format!("content-type: {media_type}")],
            body: body.into(),
            is_cut: false,
            hangs: false,
        }
    }

    pub(crate) fn json(status: &'static str, body: &str) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(crate) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    pub(crate) fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }

    pub(crate) fn header(mut self, line: &str) -> Self {
        self.headers.push(line.to_owned());
        self
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// A server that gives its replies in order; the last one again and again.
pub(crate) struct Server {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Recorded>>>,
    /// Told when the other side left a reply that hangs.
    left: Arc<Notify>,
}

impl Server {
    pub(crate) fn start(pace: Pace, replies: Vec<Reply>) -> Self {
        Self::answering(pace, move |_, count| {
            replies[count.min(replies.len() - 1)].clone()
        })
    }

    /// A server whose replies depend on the path.
    pub(crate) fn answering(
        pace: Pace,
        reply: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Recorded>>>::default();
        let left = Arc::<Notify>::default();
        let (all, reply, seen) = (requests.clone(), Arc::new(reply), left.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, reply, seen) = (all.clone(), reply.clone(), seen.clone());
                // Whoever goes away in the middle of an answer does no harm.
                thread::spawn(move || {
                    stream.and_then(|stream| serve(stream, pace, &all, &seen, &*reply))
                });
            }
        });
        Self {
            address,
            requests,
            left,
        }
    }

    /// Waits until the other side left a reply that hangs.
    pub(crate) async fn gone(&self) {
        self.left.notified().await;
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn serve(
    mut stream: TcpStream,
    pace: Pace,
    all: &Mutex<Vec<Recorded>>,
    left: &Notify,
    reply: &(dyn Fn(&Recorded, usize) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let request = receive(&mut stream)?;
    let count = {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(request.clone());
        all.len() - 1
    };
    let reply = reply(&request, count);
    let mut head = format!("HTTP/1.1 {}\r\n", reply.status);
    for header in &reply.headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str("connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let size = match pace {
        Pace::Whole => reply.body.len().max(1),
        Pace::Bytes => 1,
    };
    for chunk in reply.body.chunks(size) {
        let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
        stream.write_all(&framed)?;
    }
    if reply.hangs {
        // Until the other side goes.
        let _ = stream.read(&mut [0; 1]);
        left.notify_one();
    }
    if !reply.is_cut {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

fn receive(stream: &mut TcpStream) -> std::io::Result<Recorded> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let lower = head.to_lowercase();
    let length = lower
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let length: usize = length
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    while bytes.len() < end + length {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
    Ok(Recorded {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        head: lower,
        body: serde_json::from_slice(&bytes[end..]).unwrap_or(Value::Null),
    })
}

/// The one provider of an endpoint.
pub(crate) fn provider(endpoint: Endpoint) -> Arc<dyn ModelProvider> {
    // Clones share the client, which reads all certificates of the system when it is made.
    static NONE: LazyLock<Providers> = LazyLock::new(|| Providers::new().keys(|_: &str| None));
    let mut all = NONE.clone().endpoint(endpoint).into_iter();
    all.next().unwrap()
}

/// Something a user says.
pub(crate) fn user(text: &str) -> Message {
    Message::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        origin: UserOrigin::Input,
    })
}

/// All of an answer: its events, and the error that ended it.
pub(crate) async fn ask(
    provider: &Arc<dyn ModelProvider>,
    request: ChatRequest,
) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let mut events = Vec::new();
    let mut stream = match provider.chat(request, CancellationToken::new()).await {
        Ok(stream) => stream,
        Err(error) => return (events, Err(error)),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Err(error)),
        }
    }
    (events, Ok(()))
}

/// The events with neighbours of one kind joined, as the agent does: how a text is cut says
/// nothing.
pub(crate) fn joined(events: Vec<ChatEvent>) -> Vec<ChatEvent> {
    let mut all: Vec<ChatEvent> = Vec::new();
    let mut is_closed = true;
    for event in events {
        let closes = match &event {
            ChatEvent::TextDelta { provider_data, .. }
            | ChatEvent::ReasoningDelta { provider_data, .. } => provider_data.is_some(),
            _ => true,
        };
        match (all.last_mut(), event) {
            (
                Some(ChatEvent::TextDelta {
                    text,
                    provider_data,
                }),
                ChatEvent::TextDelta {
                    text: more,
                    provider_data: data,
                },
            )
            | (
                Some(ChatEvent::ReasoningDelta {
                    text,
                    provider_data,
                }),
                ChatEvent::ReasoningDelta {
                    text: more,
                    provider_data: data,
                },
            ) if !is_closed => {
                text.push_str(&more);
                *provider_data = data;
            }
            (_, event) => all.push(event),
        }
        is_closed = closes;
    }
    all
}

/// What the agent keeps of an answer.
pub(crate) fn message(events: &[ChatEvent]) -> AssistantMessage {
    let mut provider_data = None;
    let mut parts = Vec::new();
    for event in joined(events.to_vec()) {
        match event {
            ChatEvent::TextDelta {
                text,
                provider_data,
            } => {
                parts.push(AssistantPart::Text {
                    text: text.into(),
                    provider_data,
                });
            }
            ChatEvent::ReasoningDelta {
                text,
                provider_data,
            } => {
                parts.push(AssistantPart::Reasoning {
                    text: text.into(),
                    provider_data,
                });
            }
            ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                provider_data,
            } => {
                let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
                let arguments = if arguments.is_object() {
                    arguments
                } else {
                    serde_json::json!({})
                };
                parts.push(AssistantPart::ToolCall {
                    call_id: call_id.into(),
                    tool_name: tool_name.into(),
                    arguments: Arc::new(arguments),
                    provider_data,
                });
            }
            ChatEvent::Done(end) => provider_data = end.provider_data,
            _ => {}
        }
    }
    AssistantMessage {
        parts,
        provider_data,
    }
}

/// The conversation that follows an answer: it, the results of its calls, or the user's next
/// word.
pub(crate) fn follow_up(model: &str, events: &[ChatEvent]) -> ChatRequest {
    let answer = message(events);
    let results: Vec<Message> = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::ToolCall {
                call_id, tool_name, ..
            } => Some(Message::ToolResult(ToolResultMessage {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                content: "done".into(),
                is_error: false,
            })),
            _ => None,
        })
        .collect();
    let mut messages = vec![user("Hi"), Message::Assistant(answer)];
    if results.is_empty() {
        messages.push(user("Go on"));
    }
    messages.extend(results);
    ChatRequest::new(model, messages)
}

/// The events without the data that goes back, which is told apart by what goes back.
pub(crate) fn bare(events: Vec<ChatEvent>) -> Vec<ChatEvent> {
    let none: Option<ProviderData> = None;
    let mut all = Vec::new();
    for event in joined(events) {
        all.push(match event {
            ChatEvent::TextDelta { text, .. } => ChatEvent::text(text),
            // Opaque data alone shows nothing.
            ChatEvent::ReasoningDelta { text, .. } if text.is_empty() => continue,
            ChatEvent::ReasoningDelta { text, .. } => ChatEvent::reasoning(text),
            ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                ..
            } => ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                provider_data: none.clone(),
            },
            ChatEvent::Done(mut end) => {
                end.provider_data = None;
                ChatEvent::Done(end)
            }
            other => other,
        });
    }
    all
}

/// Chunks of Chat Completions as events, without an end mark.
pub(crate) fn chunks(deltas: &[&str]) -> String {
    deltas
        .iter()
        .map(|delta| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"))
        .collect()
}

/// The chunk with a finish reason and the end mark.
pub(crate) fn finish(reason: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

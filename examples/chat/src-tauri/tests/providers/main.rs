//! The provider over HTTP, against servers that behave as real ones do at their worst.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

mod calls;
mod failures;
mod live;
mod local;
mod server;
mod streams;
mod vendors;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    ChatEvent, ChatRequest, ChatStream, Message, Messages, ModelProvider, ProviderError, ToolSpec,
    UserMessage, UserOrigin,
};
use youyou_chat::providers::{GenaiProvider, Line, VENDORS};
use youyou_chat::settings::Settings;

use server::Server;

/// One way to servers for all tests: reading the system's certificates takes its time.
fn line() -> Line {
    static LINE: std::sync::OnceLock<Line> = std::sync::OnceLock::new();
    LINE.get_or_init(|| Line::on_this_computer().unwrap())
        .clone()
}

/// The provider of a vendor, sent to the test's server.
fn provider(vendor: &str, url: &str) -> GenaiProvider {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        serde_json::json!({ "keys": { vendor: "sk-test" }, "endpoints": { vendor: url } });
    std::fs::write(folder.path().join("settings.json"), settings.to_string()).unwrap();
    let settings = Settings::load(folder.path(), |_| None).unwrap();
    let vendor = VENDORS.iter().find(|known| known.id == vendor).unwrap();
    GenaiProvider::new(vendor, Arc::new(settings), line())
}

fn user(text: &str) -> Message {
    Message::User(UserMessage {
        content: vec![youyou_agent::ContentBlock::text(text)],
        origin: UserOrigin::Input,
    })
}

fn request(model: &str, messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        model_id: model.into(),
        system: Arc::new([]),
        messages: messages.into_iter().collect::<Messages>(),
        tools: Arc::new([ToolSpec {
            name: "echo".into(),
            description: "Echoes.".into(),
            parameters: serde_json::json!({ "type": "object", "properties": {} }),
        }]),
        temperature: None,
        max_tokens: None,
        reasoning_effort: None,
    }
}

async fn open(provider: &GenaiProvider, request: ChatRequest) -> ChatStream {
    provider
        .chat(request, CancellationToken::new())
        .await
        .unwrap()
}

/// All events of one call, deltas of one kind joined.
async fn call(provider: &GenaiProvider, request: ChatRequest) -> Vec<ChatEvent> {
    let stream = open(provider, request).await;
    let events = tokio::time::timeout(Duration::from_secs(10), stream.collect::<Vec<_>>())
        .await
        .expect("the stream does not end");
    joined(events)
}

fn joined(events: Vec<ChatEvent>) -> Vec<ChatEvent> {
    let mut all: Vec<ChatEvent> = Vec::new();
    for event in events {
        match (all.last_mut(), &event) {
            (Some(ChatEvent::TextDelta { text }), ChatEvent::TextDelta { text: more }) => {
                text.push_str(more)
            }
            (
                Some(ChatEvent::ReasoningDelta { text, .. }),
                ChatEvent::ReasoningDelta { text: more, .. },
            ) => {
                text.push_str(more);
            }
            _ => all.push(event),
        }
    }
    all
}

/// What the OpenAI provider makes of one scripted answer.
async fn openai(script: Vec<server::Step>) -> Vec<ChatEvent> {
    let server = Server::start(vec![script]).await;
    call(
        &provider("openai", &server.url),
        request("gpt-4.1", vec![user("hi")]),
    )
    .await
}

/// The error that a call ends with, and nothing before it.
fn only_error(events: Vec<ChatEvent>) -> ProviderError {
    match <[ChatEvent; 1]>::try_from(events) {
        Ok([ChatEvent::Error(error)]) => error,
        other => panic!("expected one error, got {other:?}"),
    }
}

fn done(stop: youyou_agent::StopReason) -> ChatEvent {
    ChatEvent::Done {
        usage: None,
        stop_reason: Some(stop),
        provider_data: None,
    }
}

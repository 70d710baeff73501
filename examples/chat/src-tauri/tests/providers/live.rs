//! A real model server (llama.cpp), as `npm run test:live` starts it. Not part of the other
//! tests: a hundred megabytes of model come with it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use youyou_agent::{
    AgentBuilder, AgentConfig, ChatEvent, ChatRequest, ModelProvider, ProviderErrorKind,
    SendOptions, SessionConfig, StopReason, TurnStatus,
};
use youyou_chat::providers::{Dialect, GenaiProvider, LocalProvider, LocalServer};

use super::{joined, line, open, provider, request, user};

/// Where it listens.
const ADDRESS: &str = "YOUYOU_CHAT_LIVE";
/// A small model on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(300);

fn address() -> String {
    std::env::var(ADDRESS).expect("npm run test:live starts the server and runs these tests")
}

fn vendor(name: &str) -> GenaiProvider {
    provider(name, &format!("{}/v1/", address()))
}

fn local() -> LocalProvider {
    let server = LocalServer {
        id: "llamacpp",
        name: "llama.cpp",
        address: address(),
        address_variable: "",
        dialect: Dialect::LlamaCpp,
    };
    LocalProvider::new(server, line(), None)
}

/// The model cannot call tools.
fn ask(text: &str, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        tools: Arc::new([]),
        max_tokens: Some(max_tokens),
        ..request("smollm2", vec![user(text)])
    }
}

async fn answer(provider: &GenaiProvider, request: ChatRequest) -> Vec<ChatEvent> {
    let events = open(provider, request).await.collect();
    tokio::time::timeout(PATIENCE, events)
        .await
        .expect("the answer does not end")
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_text_streams_and_ends_with_its_usage_in_both_protocols() {
    for name in ["openai", "anthropic"] {
        let events = answer(&vendor(name), ask("Count from one to five.", 40)).await;
        let pieces = events.len() - 1;
        assert!(pieces > 3, "{name}: {events:?}");
        let all = joined(events);
        let [
            ChatEvent::TextDelta { text },
            ChatEvent::Done {
                usage: Some(usage),
                stop_reason: Some(StopReason::EndTurn | StopReason::Length),
                ..
            },
        ] = all.as_slice()
        else {
            panic!("{name}: {all:?}")
        };
        assert!(!text.trim().is_empty());
        let output = usage.output_tokens.unwrap();
        assert!(usage.input_tokens.unwrap() > 5, "{name}: {usage:?}");
        assert!((4..=41).contains(&output), "{name}: {usage:?}");
    }
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_cut_answer_says_that_it_was_cut() {
    let events = answer(&vendor("openai"), ask("Tell a long story.", 8)).await;
    assert!(
        matches!(
            events.last(),
            Some(ChatEvent::Done {
                stop_reason: Some(StopReason::Length),
                ..
            })
        ),
        "{events:?}"
    );
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_conversation_that_is_too_long_is_told_by_its_kind() {
    let events = answer(&vendor("openai"), ask(&"many words ".repeat(3_000), 8)).await;
    let [ChatEvent::Error(error)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(error.kind, ProviderErrorKind::ContextLengthExceeded);
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn dropping_the_stream_frees_the_server() {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/slots", address());
    let is_busy = async || {
        let slots = http.get(&url).send().await.unwrap().text().await.unwrap();
        let slots: Value = serde_json::from_str(&slots).unwrap();
        slots[0]["is_processing"].as_bool().unwrap()
    };
    let provider = vendor("openai");
    // Without the drop it would speak until its window is full.
    let mut events = open(&provider, ask("Tell a very long story.", 1_900)).await;
    let first = tokio::time::timeout(PATIENCE, events.next()).await.unwrap();
    assert!(
        matches!(first, Some(ChatEvent::TextDelta { .. })),
        "{first:?}"
    );
    assert!(is_busy().await);
    drop(events);
    let free = async { while is_busy().await {} };
    tokio::time::timeout(Duration::from_secs(5), free)
        .await
        .expect("the server goes on though nobody listens");
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn the_server_is_found_and_holds_a_conversation_with_the_agent() {
    let provider = local();
    provider.look().await;
    let models = provider.models();
    let [model] = models.as_slice() else {
        panic!("{models:?}")
    };
    assert_eq!(
        (model.id.as_str(), model.context_window),
        ("llamacpp:smollm2", 2_048)
    );
    let agent = AgentBuilder::new(AgentConfig::new(model.id.clone()))
        .provider(provider)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    // More than its window holds: the model itself writes the summary that makes room.
    for turn in 0..4 {
        let text = format!("Message {turn}. {}", "Some words to remember. ".repeat(120));
        let options = SendOptions {
            max_tokens: Some(30),
            ..SendOptions::default()
        };
        let turn = session.send_with(text, options).unwrap();
        let outcome = tokio::time::timeout(PATIENCE, turn.outcome())
            .await
            .unwrap();
        assert_eq!(outcome.status, TurnStatus::Completed, "{:?}", outcome.error);
        assert!(!outcome.assistant_output.trim().is_empty());
        assert!(outcome.usage.input_tokens.unwrap() > 100);
    }
    agent.shutdown().await;
}

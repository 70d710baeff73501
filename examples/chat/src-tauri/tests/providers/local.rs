//! Servers on this computer: found with what they can do, gone when they stop.

use serde_json::json;
use youyou_agent::{Capabilities, ChatEvent, ModelProvider, StopReason};
use youyou_chat::providers::{Dialect, LocalProvider, LocalServer};

use super::server::{DONE, Server, finish, refusal, stream, text};
use super::{done, line, request, user};

fn local(server: &Server, dialect: Dialect) -> LocalProvider {
    let server = LocalServer {
        id: "here",
        name: "Here",
        address: server.url.trim_end_matches("/v1/").to_owned(),
        address_variable: "",
        dialect,
    };
    LocalProvider::new(server, line(), None)
}

fn ok(body: serde_json::Value) -> Vec<super::server::Step> {
    refusal("200 OK", "", &body.to_string())
}

#[tokio::test]
async fn ollama_models_come_with_their_abilities_and_loaded_window() {
    let server = Server::start(vec![
        ok(json!({ "models": [{ "name": "qwen3:8b" }, { "name": "nomic-embed" }] })),
        ok(json!({ "models": [{ "name": "qwen3:8b", "context_length": 32768 }] })),
        ok(json!({ "capabilities": ["completion", "tools", "thinking"] })),
        ok(json!({ "capabilities": ["embedding"] })),
    ])
    .await;
    let provider = local(&server, Dialect::Ollama);
    provider.look().await;
    let models = provider.models();
    let [model] = models.as_slice() else {
        panic!("{models:?}")
    };
    assert_eq!(
        (model.id.as_str(), model.context_window),
        ("here:qwen3:8b", 32_768)
    );
    let can = Capabilities {
        reasoning: true,
        ..Capabilities::default()
    };
    assert_eq!(model.capabilities, can);
}

#[tokio::test]
async fn lm_studio_offers_its_language_models_only() {
    let server = Server::start(vec![ok(json!({ "data": [
        { "id": "org/small", "type": "vlm", "loaded_context_length": 4096, "capabilities": ["tool_use"] },
        { "id": "embed", "type": "embeddings" },
    ] }))])
    .await;
    let provider = local(&server, Dialect::LmStudio);
    provider.look().await;
    let models = provider.models();
    let [model] = models.as_slice() else {
        panic!("{models:?}")
    };
    assert_eq!(
        (model.display_name.as_str(), model.context_window),
        ("small", 4_096)
    );
    assert!(model.capabilities.vision && model.capabilities.tool_use);
}

#[tokio::test]
async fn a_llama_cpp_model_is_called_by_its_own_name_and_is_gone_with_its_server() {
    let server = Server::start(vec![
        ok(json!({ "data": [{ "id": "SmolLM2.gguf" }] })),
        ok(json!({ "default_generation_settings": { "n_ctx": 2048 }, "modalities": { "vision": false } })),
        vec![stream(text("hi") + &finish("stop") + DONE)],
        refusal("503 Service Unavailable", "", "{}"),
    ])
    .await;
    let provider = local(&server, Dialect::LlamaCpp);
    provider.look().await;
    let models = provider.models();
    let [model] = models.as_slice() else {
        panic!("{models:?}")
    };
    assert_eq!(
        (model.display_name.as_str(), model.context_window),
        ("SmolLM2", 2_048)
    );
    let stream = provider
        .chat(request(&model.id, vec![user("hi")]), Default::default())
        .await
        .unwrap();
    let events: Vec<ChatEvent> = futures_util::StreamExt::collect(stream).await;
    assert_eq!(events, [ChatEvent::text("hi"), done(StopReason::EndTurn)]);
    assert_eq!(server.body(2)["model"], "SmolLM2.gguf");
    provider.look().await;
    assert_eq!(provider.models(), []);
}

#[tokio::test]
async fn listing_models_looks_in_the_background_and_never_waits() {
    // A server that takes the connection and says nothing.
    let server = Server::start(vec![vec![super::server::Step::Hold]]).await;
    let silent = LocalServer {
        id: "here",
        name: "Here",
        address: server.url.trim_end_matches("/v1/").to_owned(),
        address_variable: "",
        dialect: Dialect::LlamaCpp,
    };
    let runtime = Some(tokio::runtime::Handle::current());
    let provider = LocalProvider::new(silent, line(), runtime);
    let start = std::time::Instant::now();
    assert_eq!(provider.models(), []);
    assert!(start.elapsed().as_millis() < 500);
    // The look gives up by itself.
    server.until_closed().await;
    assert_eq!(provider.models(), []);
    assert_eq!(server.requests().len(), 1);
}

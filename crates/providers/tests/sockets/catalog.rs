//! What servers have: lists, local servers, the check of a settings dialog.

use youyou_agent::{Capabilities, ModelInfo, ProviderErrorKind as Kind};
use youyou_agent_providers::{Endpoint, Providers};

use super::support::{Pace, Recorded, Reply, Server};

async fn models(endpoint: Endpoint) -> Vec<ModelInfo> {
    let providers = Providers::new()
        .keys(|_: &str| Some("k".to_owned()))
        .endpoint(endpoint);
    providers.refresh().await;
    providers.into_iter().next().unwrap().models()
}

fn local(
    id: &str,
    answer: impl Fn(&Recorded) -> Option<&'static str> + Send + Sync + 'static,
) -> (Server, Endpoint) {
    let server = Server::answering(Pace::Whole, move |request, _| match answer(request) {
        Some(body) => Reply::json("200 OK", body),
        None => Reply::json("404 Not Found", "{}"),
    });
    let endpoint = Endpoint::local_server(id, &server.address).unwrap();
    (server, endpoint)
}

// P23
#[tokio::test]
async fn the_users_own_server_offers_what_it_lists() {
    let server = Server::start(
        Pace::Whole,
        vec![Reply::json(
            "200 OK",
            r#"{"data":[{"id":"qwen3-coder"},{"id":"my-model-instruct"}]}"#,
        )],
    );
    let found = models(Endpoint::openai_compatible(
        "own",
        format!("{}/v1", server.address),
    ))
    .await;
    let ids: Vec<&str> = found.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["my-model-instruct", "qwen3-coder"]);
    assert_eq!(server.requests()[0].path, "/v1/models");
}

// P19
#[tokio::test]
async fn the_window_of_a_model_that_is_not_loaded_is_what_its_parameters_say() {
    let (_server, endpoint) = local("ollama", |request| match request.path.as_str() {
        "/api/tags" => Some(
            r#"{"models":[{"name":"qwen3:8b"},{"name":"nomic-embed"},{"name":"big"},{"name":"loaded"}]}"#,
        ),
        "/api/ps" => Some(r#"{"models":[{"name":"loaded","context_length":16384}]}"#),
        "/api/show" => Some(match request.body["model"].as_str().unwrap() {
            "qwen3:8b" | "loaded" => {
                r#"{"parameters":"num_ctx                        2048\nstop \"x\"","capabilities":["completion","tools","thinking"],"model_info":{"qwen3.context_length":40960}}"#
            }
            "nomic-embed" => r#"{"capabilities":["embedding"]}"#,
            _ => r#"{"model_info":{"llama.context_length":131072}}"#,
        }),
        _ => None,
    });
    let found = models(endpoint).await;
    let windows: Vec<_> = found
        .iter()
        .map(|model| (model.id.as_str(), model.context_window))
        .collect();
    assert_eq!(
        windows,
        [
            ("ollama:qwen3:8b", 2048),
            ("ollama:big", 4096),
            ("ollama:loaded", 16_384)
        ]
    );
    let can = Capabilities {
        reasoning: true,
        ..Capabilities::default()
    };
    assert_eq!(found[0].capabilities, can);
}

#[tokio::test]
async fn lm_studio_and_llama_cpp_tell_the_window_that_is_loaded() {
    let (_server, endpoint) = local("lmstudio", |request| {
        (request.path == "/api/v0/models").then_some(
            r#"{"data":[{"id":"a","type":"llm","loaded_context_length":5000,"max_context_length":99999,"capabilities":["tool_use"]},
                {"id":"e","type":"embeddings"},{"id":"v","type":"vlm"}]}"#,
        )
    });
    let found: Vec<_> = models(endpoint)
        .await
        .into_iter()
        .map(|model| (model.id, model.context_window))
        .collect();
    assert_eq!(
        found,
        [
            ("lmstudio:a".to_owned(), 5000),
            ("lmstudio:v".to_owned(), 4096)
        ]
    );
    let (_server, endpoint) = local("llamacpp", |request| match request.path.as_str() {
        "/v1/models" => Some(r#"{"data":[{"id":"/models/Qwen.gguf"}]}"#),
        "/props" => {
            Some(r#"{"default_generation_settings":{"n_ctx":3000},"modalities":{"vision":true}}"#)
        }
        _ => None,
    });
    let can = Capabilities {
        vision: true,
        ..Capabilities::default()
    };
    assert_eq!(
        models(endpoint).await,
        [ModelInfo::new(
            "llamacpp:/models/Qwen.gguf",
            "Qwen",
            3000,
            can
        )]
    );
}

#[tokio::test]
async fn a_local_server_that_does_not_run_has_nothing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for id in ["ollama", "lmstudio", "llamacpp", "vllm"] {
        assert_eq!(
            models(Endpoint::local_server(id, format!("http://{free}")).unwrap()).await,
            []
        );
    }
}

#[tokio::test]
async fn a_check_says_whether_key_and_address_work() {
    let works = Server::start(
        Pace::Whole,
        vec![Reply::json("200 OK", r#"{"data":[{"id":"a"}]}"#)],
    );
    let refuses = Server::start(
        Pace::Whole,
        vec![Reply::json(
            "401 Unauthorized",
            r#"{"error":{"message":"no"}}"#,
        )],
    );
    let elsewhere = Server::start(
        Pace::Whole,
        vec![Reply::new("404 Not Found", "text/html", "<html>")],
    );
    let only_chats = Server::answering(Pace::Whole, |request, _| match request.path.as_str() {
        "/chat/completions" => Reply::stream("data: [DONE]\n\n"),
        _ => Reply::json("404 Not Found", "{}"),
    });
    let model = ModelInfo::new("m", "m", 1000, Capabilities::default());
    let providers = Providers::new()
        .keys(|_: &str| None)
        .endpoint(Endpoint::openai_compatible("works", &works.address))
        .endpoint(Endpoint::openai_compatible("refuses", &refuses.address).key("k"))
        .endpoint(Endpoint::openai_compatible("elsewhere", &elsewhere.address))
        .endpoint(Endpoint::openai_compatible("chats", &only_chats.address).model(model.clone()));
    let found = providers.check("works").await.unwrap();
    assert_eq!(found.first().map(|model| model.id.as_str()), Some("a"));
    assert_eq!(
        providers.check("refuses").await.unwrap_err().kind,
        Kind::Auth
    );
    let error = providers.check("elsewhere").await.unwrap_err();
    assert!(
        error.message.contains("check the address"),
        "{}",
        error.message
    );
    assert_eq!(providers.check("chats").await, Ok(vec![model]));
    assert_eq!(
        providers.check("nobody").await.unwrap_err().kind,
        Kind::InvalidRequest
    );
}

#[tokio::test]
async fn a_public_list_is_no_proof_of_a_key() {
    let server = Server::answering(Pace::Whole, |request, _| match request.path.as_str() {
        "/models" => Reply::json("200 OK", r#"{"data":[{"id":"a/b"}]}"#),
        _ => Reply::json("401 Unauthorized", "{}"),
    });
    let endpoint = Endpoint::vendor("openrouter")
        .unwrap()
        .address(&server.address)
        .key("wrong");
    let error = Providers::new()
        .endpoint(endpoint)
        .check("openrouter")
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::Auth);
}

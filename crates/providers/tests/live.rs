//! A real model server (llama.cpp), as `npm run test:live` starts it. Not part of the other
//! tests: a hundred megabytes of model come with it.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use youyou_agent::{
    AgentBuilder, AgentConfig, CancellationToken, ChatEvent, ChatRequest, Completion, ContentBlock,
    Message, ModelProvider, ProviderError, ProviderErrorKind, SessionConfig, StopReason,
    TurnStatus, UserMessage, UserOrigin,
};
use youyou_agent_providers::{Endpoint, Providers};

/// Where it listens.
const ADDRESS: &str = "YOUYOU_LIVE";
/// A small model on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(300);
const MODEL: &str = "smollm2";

fn address() -> String {
    std::env::var(ADDRESS).expect("npm run test:live starts the server and runs these tests")
}

fn only(endpoint: Endpoint) -> Arc<dyn ModelProvider> {
    let mut all = Providers::new().endpoint(endpoint).into_iter();
    all.next().expect("one server")
}

/// The server's address in each protocol it speaks.
fn protocols() -> [(&'static str, Arc<dyn ModelProvider>); 3] {
    let root = address();
    [
        (
            "chat completions",
            only(Endpoint::openai_compatible("live", format!("{root}/v1"))),
        ),
        (
            "responses",
            only(Endpoint::openai_responses("live", format!("{root}/v1"))),
        ),
        (
            "messages",
            only(Endpoint::anthropic_compatible("live", root)),
        ),
    ]
}

/// The model cannot call tools.
fn ask(text: &str, max_tokens: u32) -> ChatRequest {
    let question = Message::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        origin: UserOrigin::Input,
    });
    let mut request = ChatRequest::new(MODEL, [question]);
    request.max_tokens = Some(max_tokens);
    request
}

/// The text, and how it ended.
async fn answer(
    provider: &dyn ModelProvider,
    request: ChatRequest,
) -> Result<(String, Completion), ProviderError> {
    let all = async {
        let mut events = provider.chat(request, CancellationToken::new()).await?;
        let mut said = String::new();
        while let Some(event) = events.next().await {
            match event? {
                ChatEvent::TextDelta { text, .. } => said.push_str(&text),
                ChatEvent::Done(completion) => return Ok((said, completion)),
                _ => {}
            }
        }
        panic!("the stream ended without its end")
    };
    tokio::time::timeout(PATIENCE, all)
        .await
        .expect("the answer does not end")
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_text_ends_with_its_usage_in_every_protocol() {
    for (name, provider) in protocols() {
        let asked = ask("Count from one to five.", 40);
        let (said, completion) = answer(&*provider, asked).await.expect(name);
        assert!(!said.trim().is_empty(), "{name}");
        assert!(
            matches!(
                completion.stop_reason,
                Some(StopReason::EndTurn | StopReason::Length)
            ),
            "{name}: {completion:?}"
        );
        let usage = completion.usage.expect(name);
        assert!(usage.input_tokens.unwrap() > 5, "{name}: {usage:?}");
        let output = usage.output_tokens.unwrap();
        assert!((4..=41).contains(&output), "{name}: {usage:?}");
    }
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_cut_answer_says_that_it_was_cut() {
    for (name, provider) in protocols() {
        let asked = ask("Tell a long story.", 8);
        let (_, completion) = answer(&*provider, asked).await.expect(name);
        assert_eq!(completion.stop_reason, Some(StopReason::Length), "{name}");
    }
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn a_conversation_that_is_too_long_is_told_by_its_kind() {
    for (name, provider) in protocols() {
        let asked = ask(&"many words ".repeat(3_000), 8);
        let error = answer(&*provider, asked).await.expect_err(name);
        assert_eq!(
            error.kind,
            ProviderErrorKind::ContextLengthExceeded,
            "{name}: {error}"
        );
    }
}

#[tokio::test]
#[ignore = "needs a model server: npm run test:live"]
async fn the_server_is_found_and_holds_a_conversation_with_the_agent() {
    let server = Endpoint::local_server("llamacpp", address()).expect("a known server");
    let providers = Providers::new().endpoint(server);
    providers.refresh().await;
    let models = only_models(&providers);
    let [(id, window)] = models.as_slice() else {
        panic!("{models:?}")
    };
    assert_eq!((id.as_str(), *window), ("llamacpp:smollm2", 2_048));
    let agent = AgentBuilder::new(AgentConfig::new(id.clone()))
        .providers(&providers)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    for text in ["Say hello.", "Say it again."] {
        let outcome = session.send(text).unwrap().outcome().await;
        assert_eq!(outcome.status, TurnStatus::Completed, "{:?}", outcome.error);
        assert!(!outcome.assistant_output.trim().is_empty());
    }
    agent.shutdown().await;
}

fn only_models(providers: &Providers) -> Vec<(String, u32)> {
    providers
        .into_iter()
        .flat_map(|provider| provider.models())
        .map(|model| (model.id, model.context_window))
        .collect()
}

//! Requirements 6.2 and 10: an accepted turn ends, whatever becomes of its runtime.

use std::time::Duration;

use youyou_agent::testing::{InMemorySessions, collect, text, vision_model, wait};
use youyou_agent::{
    AgentBuilder, AgentEventKind, ChatEvent, ChatRequest, ChatStream, ErrorCode, ModelInfo,
    ModelProvider, ProviderError, SessionConfig, TurnStatus,
};

use crate::rig::{MODEL, config, provider};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn a_turn_whose_runtime_goes_away_ends_and_says_so() {
    // C29
    for in_mid_turn in [false, true] {
        let provider = provider().reply([text("half"), wait()]);
        let agents = runtime();
        let agent = agents
            .block_on(
                AgentBuilder::new(config())
                    .provider(provider.clone())
                    .session_storage(InMemorySessions::new())
                    .build(),
            )
            .unwrap();
        let session = agents
            .block_on(agent.create_session(SessionConfig::default()))
            .unwrap();
        let turn = if in_mid_turn {
            let turn = session.send("hi").unwrap();
            agents.block_on(provider.asked(1));
            agents.shutdown_timeout(Duration::from_secs(5));
            turn
        } else {
            agents.shutdown_timeout(Duration::from_secs(5));
            session.send("hi").unwrap()
        };
        let readers = runtime();
        let outcome = readers.block_on(turn.outcome());
        assert_eq!(outcome.status, TurnStatus::Failed);
        assert_eq!(outcome.error.unwrap().code, ErrorCode::AgentShutDown);
        let events = readers.block_on(collect(turn));
        assert!(events.last().unwrap().kind.is_terminal());
    }
}

/// A provider whose answer is always ready.
struct Flood(usize);

#[async_trait::async_trait]
impl ModelProvider for Flood {
    fn id(&self) -> &str {
        "flood"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![vision_model(MODEL)]
    }

    async fn chat(
        &self,
        _: ChatRequest,
        _: tokio_util::sync::CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let deltas = (0..self.0).map(|_| ChatEvent::text("x"));
        Ok(ChatEvent::stream(deltas.chain([ChatEvent::done()])))
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_model_that_is_always_ready_is_read_while_it_streams_and_can_be_cancelled() {
    // C33
    use futures_util::StreamExt as _;
    let agent = AgentBuilder::new(config())
        .provider(Flood(300_000))
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let mut turn = session.send("hi").unwrap();
    while let Some(event) = turn.next().await {
        if matches!(event.kind, AgentEventKind::TextDelta { .. }) {
            break;
        }
    }
    assert!(turn.cancel());
    let rest = collect(turn).await;
    assert!(matches!(
        rest.last().unwrap().kind,
        AgentEventKind::TurnCancelled { .. }
    ));
    let shown: usize = rest
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::TextDelta { delta, .. } => Some(delta.len()),
            _ => None,
        })
        .sum();
    assert!(
        shown < 300_000,
        "{shown} deltas came before the cancel counted"
    );
}

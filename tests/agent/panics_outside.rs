//! Requirements 10: a panic in a provider or a storage is contained, whatever its payload does.

use std::num::NonZeroUsize;
use std::task::Poll;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{done, text, vision_model};
use youyou_agent::{
    AgentBuilder, AgentConfig, ChatRequest, ChatStream, ErrorCode, ListPage, Memory, MemoryStorage,
    ModelInfo, ModelProvider, ProviderError, SendOptions, SessionConfig, SessionEvent, SessionLog,
    SessionStorage, SessionSummary, StorageError, TurnStatus,
};

use crate::panics::{Bomb, Bomber, FAULT, explode};
use crate::rig::{MODEL, Rig, config, provider};
use crate::told::told;

/// Where a provider explodes.
#[derive(Debug, Clone, Copy)]
enum Where {
    Models,
    Chat,
    Stream,
    End,
}

#[async_trait]
impl ModelProvider for Where {
    fn id(&self) -> &str {
        "bomber"
    }

    fn models(&self) -> Vec<ModelInfo> {
        match self {
            Self::Models => explode(),
            _ => vec![vision_model("bomb-1")],
        }
    }

    async fn chat(
        &self,
        _: ChatRequest,
        _: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let armed = match self {
            Self::Chat => explode(),
            Self::End => Some(Bomb::new()),
            _ => None,
        };
        Ok(Box::pin(futures_util::stream::poll_fn(move |_| {
            match &armed {
                // It ends without an end mark, and the bomb goes off when it is dropped.
                Some(_) => Poll::Ready(None),
                None => explode(),
            }
        })))
    }
}

#[async_trait]
impl SessionStorage for Bomber {
    async fn append(&self, _: &str, _: &[SessionEvent]) -> Result<(), StorageError> {
        explode()
    }

    async fn load(&self, _: &str) -> Result<Option<SessionLog>, StorageError> {
        explode()
    }

    async fn summary(&self, _: &str) -> Result<Option<SessionSummary>, StorageError> {
        explode()
    }

    async fn list(&self, _: Option<&str>, _: NonZeroUsize) -> Result<ListPage, StorageError> {
        explode()
    }

    async fn find(&self, _: &str) -> Result<Vec<SessionSummary>, StorageError> {
        explode()
    }

    async fn rename(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        explode()
    }

    async fn delete(&self, _: &str) -> Result<bool, StorageError> {
        explode()
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_panic_panics_fails_its_turn_alone() {
    // C24
    for place in [Where::Chat, Where::Stream, Where::End] {
        let settings = AgentConfig {
            max_retries: 0,
            ..config()
        };
        let rig = Rig::with(provider(), settings, |builder| builder.provider(place)).await;
        let bombed = SendOptions {
            model_id: Some("bomb-1".into()),
            ..SendOptions::default()
        };
        let turn = rig.session.send_with("hi", bombed).unwrap();
        let outcome = turn.outcome().await;
        assert_eq!(outcome.status, TurnStatus::Failed, "{place:?}");
        let error = outcome.error.unwrap();
        assert_eq!(error.code, ErrorCode::ProviderError, "{place:?} {error:?}");
        let well = SendOptions {
            model_id: Some(MODEL.into()),
            ..SendOptions::default()
        };
        rig.provider.queue([text("well"), done()]);
        let outcome = rig
            .session
            .send_with("again", well)
            .unwrap()
            .outcome()
            .await;
        assert_eq!(*outcome.assistant_output, *"well", "{place:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_explodes_when_it_is_asked_for_its_models_fails_the_build() {
    // C24
    let built = AgentBuilder::new(config()).provider(Where::Models).build();
    let error = built.await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidDefaultModel, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_storage_whose_panic_panics_fails_what_it_was_asked_for() {
    // C24
    let agent = AgentBuilder::new(config())
        .provider(provider().always(|_| [text("ok"), done()]))
        .session_storage(Bomber)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    for _ in 0..2 {
        let outcome = session.send("hi").unwrap().outcome().await;
        let error = outcome.error.unwrap();
        assert_eq!(error.code, ErrorCode::StorageError);
        assert!(error.message.contains(FAULT), "{}", error.message);
    }
    let history = agent.session_history("other", None, None).await;
    assert_eq!(history.unwrap_err().code, ErrorCode::StorageError);
    let resumed = agent.resume_session("other", Default::default()).await;
    assert_eq!(resumed.unwrap_err().code, ErrorCode::SessionBusy);
    session.close().await.unwrap();
    let resumed = agent.resume_session("other", Default::default()).await;
    assert_eq!(resumed.unwrap_err().code, ErrorCode::StorageError);
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.close().await.unwrap();
}

#[async_trait]
impl MemoryStorage for Bomber {
    async fn load(&self, _: &str) -> Result<Vec<Memory>, StorageError> {
        explode()
    }

    async fn upsert(&self, _: Memory) -> Result<(), StorageError> {
        explode()
    }

    async fn delete(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        explode()
    }

    async fn search(&self, _: &str, _: &str, _: NonZeroUsize) -> Result<Vec<Memory>, StorageError> {
        explode()
    }
}

#[tokio::test(start_paused = true)]
async fn memories_whose_storage_explodes_are_gone_without() {
    // C24
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| builder.memory_storage(Bomber),
    )
    .await;
    assert_eq!(told(&rig.send("hi").await).last().unwrap(), "completed: ok");
    rig.epilogue().await;
}

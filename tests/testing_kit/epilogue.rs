//! The epilogue passes a session that lives and fails one that does not.

use futures_util::FutureExt as _;
use youyou_agent::testing::{
    FaultySessions, InMemorySessions, ScriptedProvider, SessionOperation, When, collect, done,
    epilogue, error, text, text_model,
};
use youyou_agent::{Agent, AgentBuilder, AgentConfig, ProviderErrorKind, Session, SessionConfig};

async fn agent(
    provider: &ScriptedProvider,
    storage: &FaultySessions<InMemorySessions>,
) -> (Agent, Session) {
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(provider.clone())
        .session_storage(storage.clone())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    (agent, session)
}

// INV-7
#[tokio::test]
async fn a_living_session_passes() {
    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m1"))
        .reply([text("half"), error(ProviderErrorKind::Network, "cut")])
        .reply([text("left over"), done()]);
    let storage = FaultySessions::new(InMemorySessions::new());
    let (agent, session) = agent(&provider, &storage).await;
    collect(session.send("hello").unwrap()).await;
    let resumed = epilogue(&agent, &session, &provider).await;
    assert_eq!(resumed.id(), session.id());
    // Three questions and three answers, one of them cut.
    let messages = storage.inner().events(session.id());
    assert_eq!(
        messages.iter().filter(|event| event.is_message()).count(),
        6
    );
}

#[tokio::test]
async fn a_dead_session_fails_and_the_step_is_named() {
    let provider = ScriptedProvider::new("scripted").model(text_model("m1"));
    let storage = FaultySessions::new(InMemorySessions::new());
    let (agent, session) = agent(&provider, &storage).await;
    storage.faults().fail(SessionOperation::Load, When::Always);
    let attempt = std::panic::AssertUnwindSafe(epilogue(&agent, &session, &provider))
        .catch_unwind()
        .await;
    let message = attempt.err().unwrap();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("cannot resume the session"), "{message}");

    provider.remove_model("m1");
    storage.faults().heal();
    let attempt = std::panic::AssertUnwindSafe(epilogue(&agent, &session, &provider))
        .catch_unwind()
        .await;
    let message = attempt.err().unwrap();
    assert!(
        message
            .downcast_ref::<String>()
            .unwrap()
            .contains("cannot send a text")
    );
}

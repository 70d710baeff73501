//! The most useful check after any fault: the session can still be used.

use super::{ScriptedProvider, assert_event_invariants, collect, done, text, text_of};
use crate::{Agent, AgentError, AgentEventKind, ResumeOptions, Session, TurnStatus};

/// What the provider answers in the epilogue.
const ANSWER: &str = "Still here.";

/// Asserts that a session is alive: with a healthy provider it answers; closed and
/// resumed, it answers again. The agent must have a session storage that works, and
/// `provider` must serve the session's model. Gives back the resumed session.
///
/// Every request that the provider got so far must have been valid.
///
/// # Panics
/// When the session is dead, saying at which step.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{
///     InMemorySessions, ScriptedProvider, collect, epilogue, error, text, text_model,
/// };
/// use youyou_agent::{AgentBuilder, AgentConfig, ProviderErrorKind, SessionConfig};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let provider = ScriptedProvider::new("scripted")
///     .model(text_model("m1"))
///     .reply([text("half an ans"), error(ProviderErrorKind::Network, "connection lost")]);
/// let agent = AgentBuilder::new(AgentConfig::new("m1"))
///     .provider(provider.clone())
///     .session_storage(InMemorySessions::new())
///     .build()
///     .await?;
/// let session = agent.create_session(SessionConfig::default()).await?;
/// collect(session.send("hello")?).await;
///
/// epilogue(&agent, &session, &provider).await;
/// # Ok::<(), youyou_agent::AgentError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn epilogue(agent: &Agent, session: &Session, provider: &ScriptedProvider) -> Session {
    assert_answers(session, provider).await;
    must("close the session", session.close().await);
    let resumed = agent
        .resume_session(session.id(), ResumeOptions::default())
        .await;
    let resumed = must("resume the session", resumed);
    assert_answers(&resumed, provider).await;
    resumed
}

/// Asserts that a session answers a plain text when the provider is healthy: the part of
/// [`epilogue`] for agents without a session storage. Queued scripts are forgotten.
///
/// # Panics
/// When it does not.
pub async fn assert_answers(session: &Session, provider: &ScriptedProvider) {
    provider.forget_scripts();
    provider.fall_back(|_| [text(ANSWER), done()]);
    let turn = must("send a text", session.send("Are you still there?"));
    let events = collect(turn).await;
    assert_event_invariants(&events);
    let completed = events.last().is_some_and(|event| {
        matches!(
            event.kind,
            AgentEventKind::TurnComplete {
                status: TurnStatus::Completed,
                ..
            }
        )
    });
    assert!(
        completed && text_of(&events) == ANSWER,
        "the session does not answer a plain text: {events:#?}"
    );
    let violations = provider.violations();
    assert!(
        violations.is_empty(),
        "the provider was sent invalid requests:\n- {}",
        violations.join("\n- ")
    );
}

#[track_caller]
#[expect(clippy::panic, reason = "a dead session fails the test that asks")]
fn must<T>(what: &str, answer: Result<T, AgentError>) -> T {
    match answer {
        Ok(value) => value,
        Err(error) => panic!("cannot {what} after the fault: {error}"),
    }
}

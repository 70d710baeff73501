//! Requirements 7: a reader never waits for what cannot come, and a turn can be awaited.

use futures_util::{FutureExt as _, StreamExt as _};
use youyou_agent::testing::{ScriptedProvider, call, collect, done, error, reasoning, text, wait};
use youyou_agent::{
    AgentConfig, AgentEvent, Coalescing, ErrorCode, ProviderErrorKind, SessionConfig, TurnStatus,
};

use crate::rig::{Rig, config, provider};
use crate::told::{read_until, told};

fn friendly() -> ScriptedProvider {
    provider().always(|_| [text("ok"), done()])
}

#[tokio::test(start_paused = true)]
async fn subscriptions_end_at_the_shutdown_after_what_was_told() {
    // C32
    let rig = Rig::new(friendly()).await;
    let everything = rig.agent.subscribe();
    let of_session = rig.session.subscribe(None);
    let events = rig.send("hi").await;
    let waiting = tokio::spawn(rig.agent.subscribe().collect::<Vec<AgentEvent>>());
    tokio::task::yield_now().await;
    assert_eq!(rig.agent.shutdown().await.problems, Vec::<String>::new());
    assert_eq!(collect(everything).await, events);
    assert_eq!(collect(of_session).await, events);
    assert_eq!(waiting.await.unwrap(), []);
    assert_eq!(
        rig.agent.subscribe().next().await,
        None,
        "one that comes later"
    );
    assert_eq!(rig.session.subscribe(None).next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_shutdown_cancels_is_told_to_its_end() {
    // C32
    let rig = Rig::new(provider().reply([text("half"), wait()])).await;
    let everything = rig.agent.subscribe();
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: half").await;
    rig.agent.shutdown().await;
    let events = collect(everything).await;
    assert_eq!(told(&events), ["started", "text 0: half", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_when_nobody_has_the_agent_any_more() {
    let Rig { agent, session, .. } = Rig::new(friendly()).await;
    let everything = agent.subscribe();
    let turn = session.send("hi").unwrap();
    let events = collect(turn).await;
    drop((agent, session));
    assert_eq!(collect(everything).await, events);
}

#[tokio::test(start_paused = true)]
async fn a_session_opened_again_goes_on_for_its_subscribers_and_not_for_those_before() {
    let mut rig = Rig::new(friendly()).await;
    rig.send("stored").await;
    let mut before = rig.session.subscribe(None);
    rig.reopen().await;
    let mut after = rig.session.subscribe(None);
    let events = rig.send("hi").await;
    assert_eq!(before.next().now_or_never(), Some(None));
    rig.session.close().await.unwrap();
    let next = SessionConfig::default();
    rig.session = rig.agent.create_session(next).await.unwrap();
    let read: Vec<AgentEvent> = std::iter::from_fn(|| after.try_next()).collect();
    assert_eq!(read, events);
    assert_eq!(after.next().now_or_never(), Some(None));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_awaited_for_its_outcome_or_its_text() {
    let provider = friendly()
        .reply([
            reasoning("hm"),
            text("first "),
            call("c1", "none", "{}"),
            done(),
        ])
        .reply([text("last"), done()]);
    let rig = Rig::new(provider).await;
    let turn = rig.session.send("hi").unwrap();
    assert_eq!(turn.text().await.unwrap(), "last", "of the last response");
    let events = collect(rig.agent.turn(turn.id()).unwrap()).await;
    let outcome = turn.await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Completed);
    assert_eq!(outcome.last_sequence, events.last().unwrap().sequence);
    assert_eq!(*outcome.assistant_output, *"last");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_is_an_error_where_it_is_awaited_and_an_outcome_where_that_is_asked_for() {
    let config = AgentConfig {
        max_retries: 0,
        ..config()
    };
    let provider = friendly().reply([
        text("half"),
        error(ProviderErrorKind::Network, "it is gone"),
    ]);
    let rig = Rig::with(provider, config, |builder| builder).await;
    let turn = rig.session.send("hi").unwrap();
    let outcome = turn.outcome().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, ErrorCode::ProviderError);
    assert_eq!(turn.text().await.unwrap_err(), error);
    assert_eq!(turn.await.unwrap_err(), error);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_is_no_error_and_its_text_is_what_was_shown() {
    let provider = friendly()
        .reply([text("one "), call("c1", "none", "{}"), done()])
        .reply([reasoning("hm"), text("two"), wait()]);
    let rig = Rig::new(provider).await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 1: two").await;
    assert!(turn.cancel());
    assert_eq!(turn.text().await.unwrap(), "one two");
    assert!(!turn.cancel(), "it is over");
    let outcome = turn.await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_coalesces_always_where_that_is_asked_for() {
    let pieces = ["a", "b", "c"].map(text).into_iter().chain([done()]);
    let rig = Rig::new(friendly().reply(pieces)).await;
    let turn = rig.session.send("hi").unwrap();
    turn.outcome().await;
    let again = rig.agent.turn(turn.id()).unwrap();
    let events = collect(again.coalescing(Coalescing::Always)).await;
    assert_eq!(told(&events), ["started", "text 0: abc", "completed: abc"]);
    let events = collect(turn).await;
    assert_eq!(told(&events)[1..4], ["text 0: a", "text 0: b", "text 0: c"]);
    rig.epilogue().await;
}

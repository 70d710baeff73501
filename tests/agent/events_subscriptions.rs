//! Chapter 7: any number of readers, early, late and slow.

use futures_util::{FutureExt as _, StreamExt as _};
use youyou_agent::testing::{assert_event_invariants, collect, done, text, text_of, wait};
use youyou_agent::{AgentEvent, Coalescing, Session, SessionConfig, Subscription, TurnStatus};

use crate::rig::{Rig, provider};
use crate::told::{cancel_at, read_until, told};

fn there(subscription: &mut Subscription) -> Vec<AgentEvent> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

fn talkative() -> youyou_agent::testing::ScriptedProvider {
    provider().always(|request| [text(format!("answer {}", request.messages.len())), done()])
}

#[tokio::test(start_paused = true)]
async fn every_reader_of_a_turn_gets_the_same_events_whenever_it_comes() {
    let rig = Rig::new(provider()).await;
    let answer = rig.provider.manual();
    let mut first = rig.session.send("hi").unwrap();
    answer.text("one");
    let mut events = read_until(&mut first, "text 0: one").await;
    let second = rig.agent.turn(first.id()).unwrap();
    answer.text(" two");
    answer.done();
    events.extend(collect(first).await);
    assert_eq!(collect(second).await, events);
    let third = rig.agent.turn(&events[0].turn_id).unwrap();
    assert_eq!(third.session_id(), rig.session.id());
    assert_eq!(collect(third).await, events);
    assert!(rig.agent.turn("no-such-turn").is_none());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_eight_turns_stay_readable() {
    let rig = Rig::new(talkative()).await;
    let mut turns = Vec::new();
    for number in 0..10 {
        let events = rig.send(format!("{number}")).await;
        turns.push(events);
    }
    for (number, events) in turns.iter().enumerate() {
        let turn = rig.agent.turn(&events[0].turn_id);
        match turn {
            None => assert!(number < 2, "turn {number} is forgotten"),
            Some(turn) => {
                assert!(number >= 2, "turn {number} is kept");
                let outcome = turn.outcome().await;
                assert_eq!(outcome.status, TurnStatus::Completed);
                assert_eq!(outcome.last_sequence, events.last().unwrap().sequence);
                assert_eq!(&collect(turn).await, events);
            }
        }
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_turn_does_not_cancel_it() {
    let rig = Rig::new(provider()).await;
    let answer = rig.provider.manual();
    let turn = rig.session.send("hi").unwrap();
    let id = turn.id().to_owned();
    drop(turn);
    answer.text("on and on");
    answer.done();
    let outcome = rig.agent.turn(&id).unwrap().outcome().await;
    assert_eq!(outcome.status, TurnStatus::Completed);
    assert_eq!(*outcome.assistant_output, *"on and on");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_subscriber_gets_this_and_later_turns_until_the_close() {
    let rig = Rig::new(talkative()).await;
    let subscription = rig.session.subscribe(None);
    let mut expected = rig.send("1").await;
    expected.extend(rig.send("2").await);
    rig.session.close().await.unwrap();
    let events: Vec<AgentEvent> = subscription.collect().await;
    assert_eq!(events, expected);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_comes_in_mid_turn_gets_that_turn_from_its_start() {
    let rig = Rig::new(talkative()).await;
    rig.send("before").await;
    rig.provider.queue([text("AB"), wait()]);
    let mut turn = rig.session.send("now").unwrap();
    let mut expected = read_until(&mut turn, "text 0: AB").await;
    let mut late = rig.session.subscribe(None);
    assert_eq!(there(&mut late), expected);
    assert!(turn.cancel());
    expected = collect(turn).await;
    assert_eq!(there(&mut late), expected);
    // Between turns a new one starts with what comes next.
    let mut later = rig.session.subscribe(None);
    assert!(later.try_next().is_none());
    let next = rig.send("next").await;
    assert_eq!(there(&mut later), next);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_goes_on_after_any_event_without_gap_or_double() {
    let rig = Rig::new(talkative()).await;
    let mut all = rig.send("1").await;
    all.extend(rig.send("2").await);
    for seen in 0..=all.len() {
        let after = u64::try_from(seen).unwrap();
        let mut subscription = rig.session.subscribe(Some(after));
        assert_eq!(there(&mut subscription), all[seen..], "after {seen}");
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_goes_on_in_the_middle_of_coalesced_deltas() {
    let pieces = (0..1_000).map(|n| text(format!("{n},"))).chain([done()]);
    let rig = Rig::new(provider().reply(pieces)).await;
    let whole = text_of(&rig.send("hi").await);
    for after in [1_u64, 2, 3, 65, 500, 999, 1_000] {
        let mut subscription = rig
            .session
            .subscribe(Some(after))
            .coalescing(Coalescing::Always);
        let events = there(&mut subscription);
        // Event 1 is the start of the turn, event n + 2 says "n,".
        let start = whole.find(&format!("{},", after - 1)).unwrap();
        assert_eq!(text_of(&events), whole[start..], "after {after}");
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn coalescing_always_gives_what_is_there_as_one() {
    let rig = Rig::new(provider()).await;
    let answer = rig.provider.manual();
    let mut turn = rig.session.send("hi").unwrap();
    let mut paced = rig.session.subscribe(None).coalescing(Coalescing::Always);
    for piece in ["a", "b", "c"] {
        answer.text(piece);
        read_until(&mut turn, &format!("text 0: {piece}")).await;
    }
    assert_eq!(told(&there(&mut paced)), ["started", "text 0: abc"]);
    answer.done();
    collect(turn).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_to_the_agent_gets_all_sessions() {
    let mut rig = Rig::new(talkative()).await;
    let everything = rig.agent.subscribe();
    let mut expected = rig.send("1").await;
    let config = SessionConfig {
        replace: true,
        ..SessionConfig::default()
    };
    rig.session = rig.agent.create_session(config).await.unwrap();
    expected.extend(rig.send("2").await);
    let mut everything = everything;
    let events = there(&mut everything);
    assert_eq!(events, expected);
    assert_event_invariants(&events);
    assert_ne!(events[0].session_id, events.last().unwrap().session_id);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_subscriber_gets_nothing_of_other_sessions() {
    let rig = Rig::new(talkative()).await;
    rig.send("1").await;
    let old: Session = rig.session.clone();
    let mut subscription = old.subscribe(None);
    let config = SessionConfig {
        replace: true,
        ..SessionConfig::default()
    };
    let session = rig.agent.create_session(config).await.unwrap();
    collect(session.send("2").unwrap()).await;
    assert_eq!(
        subscription.next().now_or_never(),
        Some(None),
        "it ended with its session"
    );
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_to_a_resumed_session_gets_what_was_before_and_what_comes() {
    let mut rig = Rig::new(talkative()).await;
    let mut expected = rig.send("1").await;
    rig.reopen().await;
    expected.extend(rig.send("2").await);
    rig.reopen().await;
    let mut subscription = rig.session.subscribe(Some(0));
    expected.extend(rig.send("3").await);
    assert_eq!(there(&mut subscription), expected);
    rig.session.close().await.unwrap();
    assert_eq!(subscription.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_to_a_closed_session_ends_after_what_is_kept() {
    let rig = Rig::new(talkative()).await;
    let events = rig.send("1").await;
    rig.session.close().await.unwrap();
    let kept: Vec<AgentEvent> = rig.session.subscribe(Some(0)).collect().await;
    assert_eq!(kept, events);
    let none: Vec<AgentEvent> = rig.session.subscribe(None).collect().await;
    assert_eq!(none, []);
    // Also when others went on.
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    collect(session.send("2").unwrap()).await;
    let none: Vec<AgentEvent> = rig.session.subscribe(None).collect().await;
    assert_eq!(none, []);
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_gives_nothing_after_its_last_event() {
    let rig = Rig::new(provider().reply([text("AB"), wait()])).await;
    let turn = rig.session.send("hi").unwrap();
    let id = turn.id().to_owned();
    cancel_at(turn, "AB").await;
    let mut again = rig.agent.turn(&id).unwrap();
    while again.next().await.is_some() {}
    assert_eq!(again.next().await, None);
    rig.epilogue().await;
}

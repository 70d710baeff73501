//! Chapter 6.2: replacing the session that is open, or being opened.

use std::time::Duration;

use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemoryMemories, InMemorySessions, SessionOperation, When, done,
    text, wait,
};
use youyou_agent::{Agent, AgentBuilder, ErrorCode, SessionConfig, SessionState, TurnStatus};

use crate::histories::{STORED, storage_with};
use crate::lifecycle::{reopening, replacing, talkative};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::said::stored_lines;
use crate::told::read_until;

#[tokio::test(start_paused = true)]
async fn replace_closes_the_open_session_first_and_cancels_its_turn() {
    let rig = Rig::new(provider().reply([text("AB"), wait()])).await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: AB").await;
    let second = rig.agent.create_session(replacing()).await.unwrap();
    assert_eq!(turn.outcome().await.status, TurnStatus::Cancelled);
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        ["assistant: AB (Cancelled)"]
    );
    assert_eq!(rig.session.info().state, SessionState::Closed);
    let refused = rig.session.send("too late").unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionNotFound);
    assert_eq!(rig.agent.current_session().unwrap().id(), second.id());

    // Back to the first, and once more to the same.
    for _ in 0..2 {
        let first = rig
            .agent
            .resume_session(rig.session.id(), reopening())
            .await
            .unwrap();
        assert_eq!(first.id(), rig.session.id());
        rig.provider.queue([text("ok"), done()]);
        first.send("go on").unwrap().outcome().await;
    }
    let session = rig.agent.current_session().unwrap();
    assert_eq!(session.info().message_count, 6);
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_that_replace_at_once_the_last_one_stays_open() {
    for resumes in [false, true] {
        let door = Gate::closed();
        let agent = AgentBuilder::new(config())
            .provider(talkative())
            .session_storage(storage_with([]))
            .plugin(Probe::holding(&door))
            .build()
            .await
            .unwrap();
        let opening = |agent: &Agent| {
            let agent = agent.clone();
            tokio::spawn(async move {
                if resumes {
                    agent.resume_session(STORED, reopening()).await
                } else {
                    agent.create_session(replacing()).await
                }
            })
        };
        let first = opening(&agent);
        door.arrived(1).await;
        let second = opening(&agent);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!second.is_finished(), "it waits for the first");
        door.open();
        let first = first.await.unwrap().unwrap();
        let second = second.await.unwrap().unwrap();
        assert_eq!(first.info().state, SessionState::Closed);
        assert_eq!(second.info().state, SessionState::Idle);
        assert_eq!(agent.current_session().unwrap().id(), second.id());
        let turn = second.send("hi").unwrap();
        assert_eq!(*turn.outcome().await.assistant_output, *"ok");
        agent.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_replace_an_open_session_have_it_in_the_order_they_came() {
    for _ in 0..20 {
        let rig = Rig::new(provider().reply([text("AB"), wait()])).await;
        let mut turn = rig.session.send("hi").unwrap();
        read_until(&mut turn, "text 0: AB").await;
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let agent = rig.agent.clone();
            waiting.push(tokio::spawn(async move {
                agent.create_session(replacing()).await
            }));
            tokio::task::yield_now().await;
        }
        let mut ids = Vec::new();
        for replaced in waiting {
            ids.push(replaced.await.unwrap().unwrap().id().to_owned());
        }
        let session = rig.agent.current_session().unwrap();
        assert_eq!(session.id(), ids[3], "{ids:?}");
        Rig { session, ..rig }.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resume_goes_on_from_what_a_close_wrote_while_it_was_read() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(talkative(), config(), inner, storage, |builder| builder).await;
    rig.send("one").await;
    rig.provider.queue([text("cut"), wait()]);
    let mut turn = rig.session.send("two").unwrap();
    read_until(&mut turn, "text 0: cut").await;
    let door = Gate::closed();
    faults.inject(
        SessionOperation::Summary,
        When::Nth(1),
        Fault::Gate(door.clone()),
    );
    let resuming = tokio::spawn({
        let (agent, id) = (rig.agent.clone(), rig.session.id().to_owned());
        async move { agent.resume_session(&id, reopening()).await }
    });
    door.arrived(1).await;
    rig.session.close().await.unwrap();
    door.open();
    let session = resuming.await.unwrap().unwrap();
    let rig = Rig { session, ..rig };
    rig.send("three").await;
    assert_eq!(
        stored_lines(&rig.stored())[3..],
        [
            "user: two",
            "assistant: cut (Cancelled)",
            "user: three",
            "assistant: ok"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_that_nobody_answers_has_its_limit_once_somebody_replaces_it() {
    let door = Gate::closed();
    let agent = AgentBuilder::new(config())
        .provider(talkative())
        .plugin(Probe::holding(&door))
        .build()
        .await
        .unwrap();
    let stuck = tokio::spawn({
        let agent = agent.clone();
        async move { agent.create_session(SessionConfig::default()).await }
    });
    door.arrived(1).await;
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert!(!stuck.is_finished(), "it asks a person");
    let refused = agent.create_session(SessionConfig::default()).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::SessionBusy);
    let began = tokio::time::Instant::now();
    let replacing = tokio::spawn({
        let agent = agent.clone();
        async move { agent.create_session(replacing()).await }
    });
    let first = stuck.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 30);
    door.open();
    let session = replacing.await.unwrap().unwrap();
    assert_eq!(first.info().state, SessionState::Closed);
    let turn = session.send("hi").unwrap();
    assert_eq!(*turn.outcome().await.assistant_output, *"ok");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_replaces_a_session_does_not_wait_for_its_memories() {
    let provider = provider().reply([text("ok"), done()]).reply([wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("I like tea").await;
    let began = tokio::time::Instant::now();
    let session = rig.agent.create_session(replacing()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    rig.provider.asked(2).await;
    assert_eq!(rig.session.info().state, SessionState::Closed);
    Rig { session, ..rig }.epilogue().await;
}

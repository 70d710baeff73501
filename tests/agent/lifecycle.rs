//! Chapter 6.2: creating, resuming and replacing the one session.

use std::sync::Arc;
use std::time::Duration;

use youyou_agent::testing::{
    FaultySessions, Gate, InMemoryMemories, InMemorySessions, SessionOperation, When, collect,
    done, text, wait,
};
use youyou_agent::{
    Agent, AgentBuilder, ErrorCode, HookOutcome, ResumeOptions, SessionConfig, SessionStart,
    SessionState, Tap, TurnEnding,
};

use crate::histories::{STORED, storage_with};
use crate::look::system;
use crate::probe::{Lines, Probe};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::told;

fn replacing() -> SessionConfig {
    SessionConfig {
        replace: true,
        ..SessionConfig::default()
    }
}

fn reopening() -> ResumeOptions {
    ResumeOptions {
        replace: true,
        ..ResumeOptions::default()
    }
}

fn talkative() -> youyou_agent::testing::ScriptedProvider {
    provider().always(|_| [text("ok"), done()])
}

#[tokio::test(start_paused = true)]
async fn a_new_session_says_what_it_is() {
    let rig = Rig::new(talkative()).await;
    let info = rig.session.info();
    assert_eq!(info.session_id, rig.session.id());
    assert_eq!(info.title, None);
    assert_eq!(info.model_id, MODEL);
    assert_eq!(info.state, SessionState::Idle);
    assert_eq!(info.turn_id, None);
    assert_eq!((info.last_sequence, info.message_count), (0, 0));
    assert_eq!(info.context_window, 128_000);
    assert!(info.created_at > 1_600_000_000_000);
    let current = rig.agent.current_session().unwrap();
    assert_eq!(current.info(), info);

    rig.send("first words").await;
    let info = rig.session.info();
    assert_eq!(info.title.as_deref(), Some("first words"));
    assert_eq!((info.last_sequence, info.message_count), (3, 2));
    assert!(info.context_tokens > 0);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn while_a_session_is_open_no_other_is_created_or_resumed() {
    let mut rig = Rig::new(talkative()).await;
    rig.send("hi").await;
    let id = rig.session.id().to_owned();
    for _ in 0..2 {
        let refused = rig
            .agent
            .create_session(SessionConfig::default())
            .await
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::SessionBusy);
        assert!(refused.message.contains(&id), "{refused}");
        for other in [&*id, "another"] {
            let refused = rig
                .agent
                .resume_session(other, ResumeOptions::default())
                .await;
            assert_eq!(refused.unwrap_err().code, ErrorCode::SessionBusy);
        }
    }
    assert_eq!(rig.agent.current_session().unwrap().id(), id);
    rig.reopen().await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn replace_closes_the_open_session_first_and_cancels_its_turn() {
    let rig = Rig::new(provider().reply([text("AB"), wait()])).await;
    let mut turn = rig.session.send("hi").unwrap();
    crate::told::read_until(&mut turn, "text 0: AB").await;
    let second = rig.agent.create_session(replacing()).await.unwrap();
    assert_eq!(turn.outcome().await.status, TurnEnding::Cancelled);
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
        crate::told::read_until(&mut turn, "text 0: AB").await;
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
    crate::told::read_until(&mut turn, "text 0: cut").await;
    let door = Gate::closed();
    faults.inject(
        SessionOperation::Find,
        When::Nth(1),
        youyou_agent::testing::Fault::Gate(door.clone()),
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

#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_closes_nothing() {
    let rig = Rig::new(talkative()).await;
    let config = SessionConfig {
        model_id: Some("no-such-model".into()),
        ..replacing()
    };
    let refused = rig.agent.create_session(config).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    let refused = rig
        .agent
        .resume_session("no-such-session", reopening())
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionNotFound);
    assert!(refused.message.contains("no-such-session"), "{refused}");
    assert_eq!(rig.session.info().state, SessionState::Idle);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_loaded_leaves_the_slot_free() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(talkative(), config(), inner, storage, |builder| builder).await;
    rig.send("hi").await;
    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();
    faults.fail(SessionOperation::Load, When::Nth(1));
    let failed = rig
        .agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap_err();
    assert_eq!(failed.code, ErrorCode::StorageError);
    let missing = rig
        .agent
        .resume_session("missing", ResumeOptions::default())
        .await;
    assert_eq!(missing.unwrap_err().code, ErrorCode::SessionNotFound);
    assert!(rig.agent.current_session().is_none());
    let session = rig
        .agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap();
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_eight_racing_creates_one_wins() {
    // Chapter 10
    let rig = Rig::new(talkative()).await;
    rig.session.close().await.unwrap();
    for round in 0..100 {
        let barrier = Arc::new(tokio::sync::Barrier::new(8));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (agent, barrier) = (rig.agent.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    agent.create_session(SessionConfig::default()).await
                })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            match task.await.unwrap() {
                Ok(session) => winners.push(session),
                Err(refused) => assert_eq!(refused.code, ErrorCode::SessionBusy),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        winners.remove(0).close().await.unwrap();
    }
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_resume_that_fails_takes_the_place_of_nobody() {
    // A resume that is still loading does not hold the slot.
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(talkative(), config(), inner, storage, |builder| builder).await;
    rig.session.close().await.unwrap();
    let door = Gate::closed();
    faults.inject(
        SessionOperation::Load,
        When::Nth(1),
        youyou_agent::testing::Fault::Gate(door.clone()),
    );
    let resuming = tokio::spawn({
        let agent = rig.agent.clone();
        async move {
            agent
                .resume_session("missing", ResumeOptions::default())
                .await
        }
    });
    door.arrived(1).await;
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    door.open();
    let refused = resuming.await.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionNotFound);
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_start_leaves_the_slot_free_and_ends_nothing() {
    // 3.5: SessionStart aborts, for a new session and for a resumed one.
    let lines = Lines::default();
    let plugin = {
        let lines = lines.clone();
        Probe::tapping("guard", move |hooks| {
            let (starts, ends) = (lines.clone(), lines.clone());
            hooks.session_start("start", move |start: SessionStart| {
                let lines = starts.clone();
                async move {
                    lines.add(format!("start resumed={}", start.resumed));
                    Ok(match lines.all().len() {
                        1 | 4 => HookOutcome::Abort("not today".into()),
                        _ => HookOutcome::Continue,
                    })
                }
            });
            hooks.session_end("end", move |_| {
                ends.add("end");
                async { Ok(HookOutcome::Continue) }
            });
        })
    };
    let storage = InMemorySessions::new();
    let agent = AgentBuilder::new(config())
        .provider(talkative())
        .session_storage(storage.clone())
        .plugin(plugin)
        .build()
        .await
        .unwrap();
    let refused = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::HookAborted);
    assert!(refused.message.contains("guard") && refused.message.contains("not today"));
    assert!(agent.current_session().is_none());
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.send("hi").unwrap().outcome().await;
    session.close().await.unwrap();
    let refused = agent
        .resume_session(session.id(), ResumeOptions::default())
        .await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::HookAborted);
    agent
        .resume_session(session.id(), ResumeOptions::default())
        .await
        .unwrap();
    assert_eq!(
        lines.all(),
        [
            "start resumed=false",
            "start resumed=false",
            "end",
            "start resumed=true",
            "start resumed=true"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_may_have_its_own_prompt_environment_and_title() {
    let config = youyou_agent::AgentConfig {
        system_instructions: vec!["The agent's.".into()],
        personality: Some("Calm.".into()),
        environment: Some("OS: agent's".into()),
        ..config()
    };
    let rig = Rig::with(talkative(), config, |builder| builder).await;
    rig.send("hi").await;
    let prompt = system(&rig.request(1));
    for said in ["The agent's.", "Calm.", "OS: agent's"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    let own = SessionConfig {
        title: Some("A title".into()),
        system_instructions: Some(vec!["The session's.".into(), "And more.".into()]),
        personality: Some("Merry.".into()),
        environment: Some("OS: session's".into()),
        ..replacing()
    };
    let session = rig.agent.create_session(own).await.unwrap();
    let mut rig = Rig { session, ..rig };
    rig.send("hi").await;
    let prompt = system(&rig.request(2));
    for said in ["The session's.", "And more.", "Merry.", "OS: session's"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    assert!(
        !prompt.contains("agent's") && !prompt.contains("Calm."),
        "{prompt}"
    );
    assert_eq!(rig.session.info().title.as_deref(), Some("A title"));

    // Overrides are stored; the environment is taken anew on resume.
    rig.reopen().await;
    rig.send("again").await;
    let prompt = system(&rig.request(3));
    for said in ["The session's.", "And more.", "Merry.", "OS: agent's"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    rig.session.close().await.unwrap();
    let anew = ResumeOptions {
        environment: Some("OS: resumed".into()),
        ..ResumeOptions::default()
    };
    rig.session = rig
        .agent
        .resume_session(rig.session.id(), anew)
        .await
        .unwrap();
    rig.send("again").await;
    assert!(system(&rig.request(4)).contains("OS: resumed"));
    assert_eq!(said(&rig.request(4)).len(), 5);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_hook_that_hangs_holds_up_the_create_for_its_limit() {
    let plugin = Probe::tapping("slow", |hooks| {
        let tap = Tap::named("start").limit(Duration::from_millis(200));
        hooks.session_start(tap, |_: SessionStart| std::future::pending());
    });
    let began = tokio::time::Instant::now();
    let rig = Rig::with(talkative(), config(), |builder| builder.plugin(plugin)).await;
    assert_eq!(began.elapsed().as_millis() / 100, 2);
    let events = collect(rig.session.send("hi").unwrap()).await;
    assert_eq!(told(&events), ["started", "text 0: ok", "completed: ok"]);
    rig.epilogue().await;
}

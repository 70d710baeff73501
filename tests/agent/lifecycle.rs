//! Chapter 6.2: creating, resuming and replacing the one session.

use std::sync::Arc;
use std::time::Duration;

use youyou_agent::testing::{
    FaultySessions, Gate, InMemorySessions, SessionOperation, When, collect, done, text,
};
use youyou_agent::{
    AgentBuilder, ErrorCode, HookOutcome, ResumeOptions, SessionConfig, SessionStart, SessionState,
    Tap,
};

use crate::look::system;
use crate::probe::{Lines, Probe};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::said;
use crate::told::told;

pub(crate) fn replacing() -> SessionConfig {
    SessionConfig {
        replace: true,
        ..SessionConfig::default()
    }
}

pub(crate) fn reopening() -> ResumeOptions {
    ResumeOptions {
        replace: true,
        ..ResumeOptions::default()
    }
}

pub(crate) fn talkative() -> youyou_agent::testing::ScriptedProvider {
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
    rig.anew().await.epilogue().await;
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

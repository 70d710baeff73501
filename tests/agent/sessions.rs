//! Chapter 3.6: titles, counts, deleting, and one thing at a time.

use std::num::NonZeroUsize;
use std::sync::Arc;

use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, RecordingTool, SessionOperation, When, call,
    collect, done, error, kinds, text, user_message, wait,
};
use youyou_agent::{
    AgentBuilder, ContentBlock, ErrorCode, ProviderErrorKind, ResumeOptions, SessionConfig,
    SessionState,
};

use crate::compaction_limits::picture;
use crate::histories::{STORED, storage_with};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::said::said;

#[tokio::test(start_paused = true)]
async fn the_open_session_cannot_be_deleted() {
    // D13
    let rig = Rig::new(provider().reply([text("par"), wait()])).await;
    let id = rig.session.id().to_owned();
    let refused = rig.agent.delete_session(&id).await.unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::SessionBusy,
        "before its first message"
    );
    let turn = rig.session.send("q").unwrap();
    rig.provider.asked(1).await;
    let before = rig.stored();
    let refused = rig.agent.delete_session(&id).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionBusy);
    assert!(
        refused.message.contains("close"),
        "it says what to do: {}",
        refused.message
    );
    assert_eq!(rig.stored(), before);
    assert!(turn.cancel());
    turn.outcome().await;
    assert_eq!(
        rig.agent.delete_session(&id).await.unwrap_err().code,
        ErrorCode::SessionBusy,
        "while it is idle"
    );
    rig.session.close().await.unwrap();
    rig.agent.delete_session(&id).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    assert_eq!(
        rig.storage.session_ids(),
        Vec::<String>::new(),
        "nothing brings it back"
    );
    let gone = rig.agent.delete_session(&id).await.unwrap_err();
    assert_eq!(gone.code, ErrorCode::SessionNotFound);
    let gone = rig
        .agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap_err();
    assert_eq!(gone.code, ErrorCode::SessionNotFound);
    rig.anew().await.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_resumed_cannot_be_deleted() {
    // D13
    let door = Gate::closed();
    let storage = storage_with([user_message(0, "hello")]);
    let provider = provider().always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(config())
        .provider(provider.clone())
        .session_storage(storage.clone())
        .plugin(Probe::holding(&door))
        .build()
        .await
        .unwrap();
    let resuming = tokio::spawn({
        let agent = agent.clone();
        async move { agent.resume_session(STORED, ResumeOptions::default()).await }
    });
    door.arrived(1).await;
    let refused = agent.delete_session(STORED).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionBusy);
    door.open();
    let session = resuming.await.unwrap().unwrap();
    assert_eq!(storage.events(STORED).len(), 2);
    Rig {
        agent,
        provider,
        storage,
        session,
    }
    .epilogue()
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_deleted_does_not_open() {
    // D13
    for replace in [false, true] {
        let inner = storage_with([user_message(0, "hello")]);
        let faulty = FaultySessions::new(inner.clone());
        let faults = faulty.faults().clone();
        let door = Gate::closed();
        faults.inject(
            SessionOperation::Delete,
            When::Nth(1),
            Fault::Gate(door.clone()),
        );
        let provider = provider().always(|_| [text("ok"), done()]);
        let rig = Rig::over(provider, config(), inner, faulty, |builder| builder).await;
        rig.session.close().await.unwrap();
        let deleting = tokio::spawn({
            let agent = rig.agent.clone();
            async move { agent.delete_session(STORED).await }
        });
        door.arrived(1).await;
        let resuming = tokio::spawn({
            let agent = rig.agent.clone();
            let options = ResumeOptions {
                replace,
                ..ResumeOptions::default()
            };
            async move { agent.resume_session(STORED, options).await }
        });
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!resuming.is_finished());
        door.open();
        deleting.await.unwrap().unwrap();
        let gone = resuming.await.unwrap().unwrap_err();
        assert_eq!(gone.code, ErrorCode::SessionNotFound);
        rig.anew().await.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_deleted_while_it_is_read_does_not_open() {
    // D13
    let inner = storage_with([user_message(0, "hello")]);
    let faulty = FaultySessions::new(inner.clone());
    let faults = faulty.faults().clone();
    let door = Gate::closed();
    faults.inject(
        SessionOperation::Summary,
        When::Nth(1),
        Fault::Gate(door.clone()),
    );
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::over(provider, config(), inner, faulty, |builder| builder).await;
    rig.session.close().await.unwrap();
    let resuming = tokio::spawn({
        let agent = rig.agent.clone();
        async move { agent.resume_session(STORED, ResumeOptions::default()).await }
    });
    door.arrived(1).await;
    rig.agent.delete_session(STORED).await.unwrap();
    door.open();
    let gone = resuming.await.unwrap().unwrap_err();
    assert_eq!(gone.code, ErrorCode::SessionNotFound);
    rig.anew().await.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_is_not_brought_back_by_what_could_not_be_stored() {
    // D13
    let storage = InMemorySessions::new();
    let faulty = FaultySessions::new(storage.clone());
    let faults = faulty.faults().clone();
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, faulty, |builder| builder).await;
    faults.fail(SessionOperation::Append, When::From(2));
    rig.send("q").await;
    let lost = rig.session.close().await.unwrap_err();
    assert_eq!(lost.code, ErrorCode::StorageError);
    rig.agent.delete_session(rig.session.id()).await.unwrap();
    faults.heal();
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    assert_eq!(rig.storage.session_ids(), Vec::<String>::new());
    rig.anew().await.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_messages_at_one_instant_one_is_accepted() {
    // D14
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    for round in 0..500 {
        let before = rig.stored().len();
        let start = Arc::new(tokio::sync::Barrier::new(2));
        let sends: Vec<_> = (0..2)
            .map(|n| {
                let (session, start) = (rig.session.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    session.send(format!("round {round} sender {n}").as_str())
                })
            })
            .collect();
        let mut accepted = Vec::new();
        for send in sends {
            match send.await.unwrap() {
                Ok(turn) => accepted.push(turn),
                Err(refused) => assert_eq!(refused.code, ErrorCode::SessionBusy),
            }
        }
        // Both may be accepted, one after the other, where the first turn has ended already.
        assert!(!accepted.is_empty());
        let turns = accepted.len();
        for turn in accepted {
            let events = collect(turn).await;
            assert_eq!(kinds(&events), ["turnStarted", "textDelta", "turnComplete"]);
        }
        let created = usize::from(round == 0);
        assert_eq!(
            rig.stored().len() - before,
            2 * turns + created,
            "a refusal stores nothing"
        );
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_while_a_turn_is_cancelling_leaves_no_trace() {
    // D14
    let gate = Gate::closed();
    let provider = provider().reply([call("c1", "mu_gate", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::mutating("mu_gate").gated(&gate))
    })
    .await;
    let turn = rig.session.send("q").unwrap();
    gate.arrived(1).await;
    for cancelled in [false, true] {
        if cancelled {
            assert!(turn.cancel());
            assert_eq!(rig.session.info().state, SessionState::Cancelling);
        }
        let before = rig.stored();
        let refused = rig.session.send("too early").unwrap_err();
        assert_eq!(refused.code, ErrorCode::SessionBusy);
        assert_eq!(
            rig.session.retry_turn().unwrap_err().code,
            ErrorCode::SessionBusy
        );
        assert_eq!(
            rig.session.compact().await.unwrap_err().code,
            ErrorCode::SessionBusy
        );
        assert_eq!(rig.stored(), before);
    }
    gate.open();
    let events = collect(turn).await;
    assert_eq!(
        kinds(&events),
        [
            "turnStarted",
            "toolCallStart",
            "toolCallEnd",
            "turnCancelled"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_title_is_the_users_own_first_words() {
    // D16
    let long = "这是第一行\n\n第二行 还有\t很多字".repeat(400);
    let cases: Vec<(Vec<ContentBlock>, String)> = vec![
        (
            vec![ContentBlock::text("/commit 修复登录")],
            "/commit 修复登录".to_owned(),
        ),
        (vec![picture()], "Image".to_owned()),
        (
            vec![picture(), ContentBlock::text(" \n")],
            "Image".to_owned(),
        ),
        (
            vec![picture(), ContentBlock::text(" see  this ")],
            "see this".to_owned(),
        ),
        (
            vec![ContentBlock::file("a.rs", "fn main() {}")],
            "a.rs".to_owned(),
        ),
        (
            vec![ContentBlock::text(long.as_str())],
            "这是第一行 第二行 还有 很多字这是第一行 第二行 还有 很多字这是第一行 第…".to_owned(),
        ),
        (
            vec![ContentBlock::text("😀".repeat(100))],
            "😀".repeat(39) + "…",
        ),
        (
            vec![
                ContentBlock::file("a.rs", "fn main() {}"),
                ContentBlock::text("a\u{202e}b\u{0} c\u{2066}"),
            ],
            "ab c".to_owned(),
        ),
    ];
    for (content, title) in cases {
        let skill = youyou_agent::SkillDefinition {
            name: "commit".to_owned(),
            display_name: "Commit".to_owned(),
            description: "Commits.".to_owned(),
            prompt: "INJECTED".to_owned(),
            required_tools: Vec::new(),
            allow_implicit_invocation: false,
        };
        let provider = provider().always(|_| [text("ok"), done()]);
        let mut rig = Rig::with(provider, config(), |builder| builder.skill(skill)).await;
        assert_eq!(rig.session.info().title, None);
        rig.send(content).await;
        assert_eq!(rig.session.info().title.as_deref(), Some(&*title));
        rig.send("later words").await;
        rig.reopen().await;
        rig.send("and later").await;
        assert_eq!(rig.session.info().title.as_deref(), Some(&*title));
        let listed = rig
            .agent
            .list_sessions(None, NonZeroUsize::new(10))
            .await
            .unwrap()
            .sessions;
        assert_eq!(listed[0].title, title);
        rig.agent
            .rename_session(rig.session.id(), " New \n name ")
            .await
            .unwrap();
        assert_eq!(rig.session.info().title.as_deref(), Some("New name"));
        rig.reopen().await;
        assert_eq!(rig.session.info().title.as_deref(), Some("New name"));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_blank_first_message_makes_no_session() {
    // D16
    let rig = Rig::new(provider()).await;
    for blank in ["", "  ", "\n\t\u{3000}"] {
        assert_eq!(
            rig.session.send(blank).unwrap_err().code,
            ErrorCode::InvalidInput
        );
    }
    assert_eq!(rig.storage.session_ids(), Vec::<String>::new());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn without_storage_there_is_one_session_and_no_list() {
    let provider = provider().always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(config())
        .provider(provider.clone())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.send("one").unwrap().outcome().await;
    session.send("two").unwrap().outcome().await;
    let last = provider.last_request().unwrap();
    assert_eq!(said(&last), ["user: one", "assistant: ok", "user: two"]);
    assert!(
        agent
            .list_sessions(None, NonZeroUsize::new(10))
            .await
            .unwrap()
            .sessions
            .is_empty()
    );
    assert!(agent.find_sessions("one").await.unwrap().is_empty());
    let id = session.id().to_owned();
    let history = agent.session_history(&id, None, None).await.unwrap();
    assert_eq!(
        history
            .events
            .iter()
            .filter(|event| event.is_message())
            .count(),
        4
    );
    session.close().await.unwrap();
    let gone = agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap_err();
    assert_eq!(gone.code, ErrorCode::SessionNotFound);
    let gone = agent.delete_session(&id).await.unwrap_err();
    assert_eq!(gone.code, ErrorCode::SessionNotFound);
    assert!(agent.create_session(SessionConfig::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn message_counts_agree_in_the_list_and_in_the_session() {
    let tool = RecordingTool::read_only("ro_echo");
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .reply([text("ok"), done()])
        .reply([done()])
        .reply([text("par"), error(ProviderErrorKind::Other, "broken")]);
    let mut rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    for (message, count) in [("tools", 3), ("silence", 4), ("failure", 6)] {
        rig.send(message).await;
        let listed = rig
            .agent
            .list_sessions(None, NonZeroUsize::new(10))
            .await
            .unwrap()
            .sessions;
        assert_eq!(listed[0].message_count, count, "{message}");
        assert_eq!(rig.session.info().message_count, count, "{message}");
        rig.reopen().await;
        assert_eq!(rig.session.info().message_count, count, "{message}");
    }
    rig.epilogue().await;
}

//! Chapter 3.6: what is stored when, and what a resume makes of it.

use std::sync::Arc;

use serde_json::json;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, RecordingTool, SessionOperation, When,
    assistant_message, at, call, call_part, collect, cut_message, done, error, kinds, metadata,
    session_created, text, text_part, tool_call_stored, tool_result_stored, user_message,
    vision_model, wait,
};
use youyou_agent::{
    AgentBuilder, AgentEventKind, ContentBlock, ErrorCode, Interruption, MessageStatus,
    ProviderErrorKind, ResumeOptions, SessionConfig, SessionEventKind, SessionMetadata,
    SessionState,
};

use crate::compaction_limits::picture;
use crate::histories::{STORED, marked_turns, storage_with};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};

#[tokio::test(start_paused = true)]
async fn a_call_that_was_running_when_the_process_ended_is_not_run_again() {
    // D3
    let history = vec![
        user_message(0, "q"),
        assistant_message(
            0,
            [
                call_part("c1", "ro_echo", json!({})),
                call_part("c2", "mu_write", json!({})),
            ],
        ),
        tool_call_stored(0, "c1", "ro_echo", json!({})),
        tool_result_stored(0, "c1", "ro_echo", "one"),
        tool_call_stored(0, "c2", "mu_write", json!({})),
    ];
    for retry in [false, true] {
        let tool = RecordingTool::mutating("mu_write");
        let runs = tool.log().clone();
        let provider = provider().always(|_| [text("ok"), done()]);
        let storage = storage_with(history.clone());
        let mut rig = Rig::resumed(provider, config(), storage, STORED, |builder| {
            builder.tool(tool).tool(RecordingTool::read_only("ro_echo"))
        })
        .await;
        if retry {
            rig.session.retry_turn().unwrap().outcome().await;
        } else {
            rig.send("next").await;
        }
        let lines = said(&rig.request(1));
        assert_eq!(
            lines[1..3],
            ["assistant: <c1 ro_echo> <c2 mu_write>", "result c1: one"]
        );
        assert!(
            lines[3].starts_with("error c2: [outcome unknown]"),
            "{lines:?}"
        );
        assert_eq!(lines[4], "note: [此消息因程序中断而未完成]");
        for _ in 0..3 {
            rig.reopen().await;
            rig.send("again").await;
            let later = said(&rig.provider.last_request().unwrap());
            assert_eq!(later[..5], lines[..5], "the same for ever, each thing once");
        }
        assert!(runs.inputs().is_empty());
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_followed_by_its_note_once_however_often_it_is_resumed() {
    // D4
    let notes = [
        (Interruption::Cancelled, "note: [此消息因用户取消而中断]"),
        (Interruption::Failed, "note: [此消息因错误而中断]"),
        (
            Interruption::ProcessEnded,
            "note: [此消息因程序中断而未完成]",
        ),
    ];
    for (why, note) in notes {
        let history = vec![user_message(0, "q"), cut_message(0, "half an ans", why)];
        let provider = provider().always(|_| [text("ok"), done()]);
        let mut rig = Rig::resumed(
            provider,
            config(),
            storage_with(history),
            STORED,
            |builder| builder,
        )
        .await;
        for _ in 0..3 {
            rig.reopen().await;
        }
        rig.send("go on").await;
        assert_eq!(
            said(&rig.request(1)),
            ["user: q", "assistant: half an ans", note, "user: go on"]
        );
        let notes_stored = rig
            .stored()
            .iter()
            .filter(|event| matches!(event.kind, SessionEventKind::SystemMessage { .. }))
            .count();
        assert_eq!(notes_stored, 0, "the note is never stored");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_looks_the_same_live_and_resumed() {
    // D4, A5
    for (ending, why, note) in [
        (
            wait(),
            Interruption::Cancelled,
            "note: [此消息因用户取消而中断]",
        ),
        (
            error(ProviderErrorKind::Other, "broken"),
            Interruption::Failed,
            "note: [此消息因错误而中断]",
        ),
    ] {
        let mut rig = Rig::new(provider().reply([text("ha"), text("lf"), ending])).await;
        let turn = rig.session.send("q").unwrap();
        rig.provider.asked(1).await;
        if why == Interruption::Cancelled {
            // Until the text was read the stream has not come to its silence.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            assert!(turn.cancel());
        }
        let events = collect(turn).await;
        assert!(
            !format!("{events:?}").contains("中断"),
            "the note is never streamed"
        );
        rig.provider.fall_back(|_| [text("ok"), done()]);
        rig.send("live").await;
        let live = said(&rig.request(2));
        assert_eq!(live, ["user: q", "assistant: half", note, "user: live"]);
        rig.reopen().await;
        rig.send("resumed").await;
        assert_eq!(said(&rig.request(3))[..4], live);
        let stored = rig.stored();
        let SessionEventKind::AssistantMessage {
            status,
            interruption,
            ..
        } = &stored[2].kind
        else {
            panic!("{stored:?}");
        };
        assert_eq!(
            (*status, *interruption),
            (MessageStatus::Incomplete, Some(why))
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_stored_when_it_happened() {
    // D5
    let gate = Gate::closed();
    let tool = RecordingTool::mutating("mu_write").gated(&gate);
    let provider = provider()
        .reply([text("look"), call("c1", "mu_write", "{}"), done()])
        .reply([wait()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("q").unwrap();
    gate.arrived(1).await;
    let before_the_tool = stored_lines(&rig.stored());
    assert_eq!(
        before_the_tool,
        [
            "created: q",
            "user: q",
            "assistant: look <c1 mu_write>",
            "call c1"
        ]
    );
    gate.open();
    rig.provider.asked(2).await;
    // The process ends: nothing is closed, nothing is shut down.
    let storage = InMemorySessions::new();
    storage.preload(STORED, rig.stored());
    drop((turn, rig));
    let provider = crate::rig::provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    let mut expected = before_the_tool;
    expected.push("result c1: ok".to_owned());
    assert_eq!(stored_lines(&rig.stored()), expected);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(1)),
        [
            "user: q",
            "assistant: look <c1 mu_write>",
            "result c1: ok",
            "note: [此消息因程序中断而未完成]",
            "user: next"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_message_is_stored_before_the_model_is_asked() {
    let storage = InMemorySessions::new();
    let faulty = FaultySessions::new(storage.clone());
    let gate = Gate::closed();
    faulty.faults().inject(
        SessionOperation::Append,
        When::Nth(1),
        Fault::Gate(gate.clone()),
    );
    let provider = provider().reply([text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, faulty, |builder| builder).await;
    let turn = rig.session.send("q").unwrap();
    gate.arrived(1).await;
    assert_eq!(rig.provider.request_count(), 0);
    gate.open();
    turn.outcome().await;
    assert_eq!(rig.provider.request_count(), 1);
    rig.epilogue().await;
}

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
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    Rig { session, ..rig }.epilogue().await;
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
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    Rig { session, ..rig }.epilogue().await;
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
            long.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(40)
                .collect(),
        ),
        (vec![ContentBlock::text("😀".repeat(100))], "😀".repeat(40)),
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
        let listed = rig.agent.list_sessions(None, 10).await.unwrap().sessions;
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
async fn a_session_whose_model_is_gone_is_opened_only_on_a_model_that_is_named() {
    // D18
    let storage = storage_with(marked_turns(1, 10));
    let before = storage.events(STORED);
    let provider = youyou_agent::testing::ScriptedProvider::new("scripted")
        .model(vision_model("m2"))
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(youyou_agent::AgentConfig::new("m2"))
        .provider(provider.clone())
        .session_storage(storage.clone())
        .build()
        .await
        .unwrap();
    let refused = agent
        .resume_session(STORED, ResumeOptions::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    assert!(refused.message.contains(MODEL), "{}", refused.message);
    assert!(agent.current_session().is_none());
    assert_eq!(storage.events(STORED), before);
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.close().await.unwrap();
    let on = |model: &str| ResumeOptions {
        model_id: Some(model.to_owned()),
        ..ResumeOptions::default()
    };
    let refused = agent.resume_session(STORED, on("m3")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    let session = agent.resume_session(STORED, on("m2")).await.unwrap();
    assert_eq!(session.info().model_id, "m2");
    let rig = Rig {
        agent,
        provider,
        storage,
        session,
    };
    rig.send("next").await;
    assert_eq!(&*rig.request(1).model_id, "m2");
    // From now on the session is one of m2.
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_run_again_on_another_model_moves_the_session_to_it() {
    // D18
    let mut history = marked_turns(1, 10);
    history.push(user_message(0, "unanswered"));
    let storage = storage_with(history);
    let provider = youyou_agent::testing::ScriptedProvider::new("scripted")
        .model(vision_model("m2"))
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(youyou_agent::AgentConfig::new("m2"))
        .provider(provider.clone())
        .session_storage(storage.clone())
        .build()
        .await
        .unwrap();
    let on_m2 = ResumeOptions {
        model_id: Some("m2".to_owned()),
        ..ResumeOptions::default()
    };
    let session = agent.resume_session(STORED, on_m2).await.unwrap();
    session.retry_turn().unwrap().outcome().await;
    session.close().await.unwrap();
    let session = agent
        .resume_session(STORED, ResumeOptions::default())
        .await
        .unwrap();
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
async fn opening_a_session_and_doing_nothing_changes_nothing() {
    // D20
    let answered = marked_turns(2, 10);
    let mut unanswered = marked_turns(2, 10);
    unanswered.push(user_message(0, "unanswered"));
    let mut cut = marked_turns(2, 10);
    cut.push(user_message(0, "q"));
    cut.push(cut_message(0, "half", Interruption::ProcessEnded));
    for history in [answered, unanswered, cut] {
        let storage = storage_with(history.into_iter().map(|event| at(1_000, event)));
        let before = storage.events(STORED);
        let provider = provider().always(|_| [text("[]"), done()]);
        let mut rig = Rig::resumed(provider, config(), storage, STORED, |builder| {
            builder.memory_storage(youyou_agent::testing::InMemoryMemories::new())
        })
        .await;
        for _ in 0..5 {
            rig.reopen().await;
        }
        assert_eq!(rig.stored(), before);
        let listed = rig.agent.list_sessions(None, 10).await.unwrap().sessions;
        assert_eq!(listed[0].updated_at, 1_000);
        assert_eq!(rig.provider.request_count(), 0, "nothing is extracted");
        // A new session that is opened and closed does not exist.
        rig.session.close().await.unwrap();
        rig.session = rig
            .agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        rig.session.close().await.unwrap();
        assert_eq!(rig.storage.session_ids(), [STORED]);
        rig.session = rig
            .agent
            .resume_session(STORED, ResumeOptions::default())
            .await
            .unwrap();
        rig.provider.forget_scripts();
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn overrides_come_back_on_resume_and_the_environment_is_taken_anew() {
    let provider = provider().always(|_| [text("ok"), done()]);
    let mut rig = Rig::new(provider).await;
    rig.session.close().await.unwrap();
    let overrides = SessionConfig {
        system_instructions: Some(vec!["OWN RULE".to_owned()]),
        personality: Some("OWN PERSON".to_owned()),
        environment: Some("OLD PLACE".to_owned()),
        ..SessionConfig::default()
    };
    rig.session = rig.agent.create_session(overrides).await.unwrap();
    rig.send("q").await;
    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();
    let options = ResumeOptions {
        environment: Some("NEW PLACE".to_owned()),
        ..ResumeOptions::default()
    };
    rig.session = rig.agent.resume_session(&id, options).await.unwrap();
    rig.send("q").await;
    let system = |n: usize| -> String {
        let request = rig.request(n);
        request
            .system
            .iter()
            .map(|block| block.text.to_string())
            .collect()
    };
    for part in ["OWN RULE", "OWN PERSON", "OLD PLACE"] {
        assert!(system(1).contains(part));
    }
    for part in ["OWN RULE", "OWN PERSON", "NEW PLACE"] {
        assert!(system(2).contains(part), "{}", system(2));
    }
    assert!(!system(2).contains("OLD PLACE"));
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
            .list_sessions(None, 10)
            .await
            .unwrap()
            .sessions
            .is_empty()
    );
    assert!(agent.find_sessions("one").await.unwrap().is_empty());
    let id = session.id().to_owned();
    let history = agent.session_history(&id, None, 0).await.unwrap();
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
        let listed = rig.agent.list_sessions(None, 10).await.unwrap().sessions;
        assert_eq!(listed[0].message_count, count, "{message}");
        assert_eq!(rig.session.info().message_count, count, "{message}");
        rig.reopen().await;
        assert_eq!(rig.session.info().message_count, count, "{message}");
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn stored_records_that_cannot_be_read_are_left_out_and_the_rest_loads() {
    // D19
    let history = marked_turns(4, 10);
    for broken in 1..=8_u64 {
        let storage = storage_with(history.clone());
        assert!(storage.corrupt(STORED, broken));
        let provider = provider().always(|_| [text("ok"), done()]);
        let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
        rig.send("next").await;
        let lines = said(&rig.request(1)).join("\n");
        let expected: Vec<usize> = (1..=8).filter(|n| *n as u64 != broken).collect();
        assert_eq!(crate::histories::markers(&lines), expected);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_lost_its_first_record_still_resumes() {
    // D19
    let storage = storage_with(marked_turns(2, 10));
    assert!(storage.corrupt(STORED, 0));
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    assert_eq!(rig.session.info().model_id, MODEL, "the default model");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_leaves_no_message() {
    let mut rig = Rig::new(provider().reply([done()])).await;
    let events = rig.send("q").await;
    assert_eq!(kinds(&events), ["turnStarted", "turnComplete"]);
    let AgentEventKind::TurnComplete {
        assistant_output, ..
    } = &events[1].kind
    else {
        panic!("{events:?}");
    };
    assert_eq!(assistant_output, "");
    assert_eq!(rig.provider.request_count(), 1, "no hidden second prompt");
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: q", "user: q", "silence"]
    );
    rig.reopen().await;
    let refused = rig.session.retry_turn().unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::InvalidInput,
        "the turn was answered"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_stored_compaction_that_cannot_be_read_leaves_the_one_before() {
    // D19, C11
    let record = |summary: &str, boundary: u64| {
        SessionMetadata::Compacted(youyou_agent::CompactionRecord {
            method: youyou_agent::CompactMethod::Summarized,
            summary: Some(summary.to_owned()),
            boundary,
            pinned: None,
            shortened: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
        })
    };
    let mut history = marked_turns(2, 10);
    history.push(metadata(0, record("FIRST", 3)));
    history.extend(marked_turns(1, 10));
    history.push(metadata(0, record("SECOND", 6)));
    history.push(user_message(0, "later"));
    let storage = storage_with(history);
    assert!(storage.corrupt(STORED, 8));
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    rig.send("next").await;
    let lines = said(&rig.request(1));
    assert_eq!(lines[0], "summary: FIRST");
    assert_eq!(crate::histories::markers(&lines.join("\n")), [3, 4, 1, 2]);
    assert!(lines.contains(&"user: later".to_owned()));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_gives_records_twice_or_out_of_order_is_read_all_the_same() {
    // D19
    struct Shuffled(InMemorySessions);

    #[async_trait::async_trait]
    impl youyou_agent::SessionStorage for Shuffled {
        async fn append(
            &self,
            session_id: &str,
            events: &[youyou_agent::SessionEvent],
        ) -> Result<(), youyou_agent::StorageError> {
            self.0.append(session_id, events).await
        }

        async fn load(
            &self,
            session_id: &str,
        ) -> Result<Option<youyou_agent::SessionLog>, youyou_agent::StorageError> {
            Ok(self.0.load(session_id).await?.map(|mut log| {
                let again = log.events.clone();
                log.events.extend(again);
                log.events.reverse();
                log
            }))
        }

        async fn list(
            &self,
            cursor: Option<&str>,
            limit: usize,
        ) -> Result<youyou_agent::ListPage, youyou_agent::StorageError> {
            self.0.list(cursor, limit).await
        }

        async fn find(
            &self,
            query: &str,
        ) -> Result<Vec<youyou_agent::SessionSummary>, youyou_agent::StorageError> {
            self.0.find(query).await
        }

        async fn rename(
            &self,
            session_id: &str,
            title: &str,
        ) -> Result<bool, youyou_agent::StorageError> {
            self.0.rename(session_id, title).await
        }

        async fn delete(&self, session_id: &str) -> Result<bool, youyou_agent::StorageError> {
            self.0.delete(session_id).await
        }
    }

    let storage = InMemorySessions::new();
    let shuffled = Shuffled(storage.clone());
    let provider = provider().always(|_| [text("ok"), done()]);
    let mut rig = Rig::over(provider, config(), storage, shuffled, |builder| builder).await;
    rig.send("one").await;
    rig.send("two").await;
    rig.reopen().await;
    rig.send("three").await;
    assert_eq!(
        said(&rig.request(3)),
        [
            "user: one",
            "assistant: ok",
            "user: two",
            "assistant: ok",
            "user: three"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_of_an_unknown_id_is_not_found_and_the_slot_stays_free() {
    let rig = Rig::new(provider()).await;
    rig.session.close().await.unwrap();
    for id in ["nope", "", " ", "创"] {
        let gone = rig
            .agent
            .resume_session(id, ResumeOptions::default())
            .await
            .unwrap_err();
        assert_eq!(gone.code, ErrorCode::SessionNotFound);
        assert_eq!(
            rig.agent
                .session_history(id, None, 0)
                .await
                .unwrap_err()
                .code,
            ErrorCode::SessionNotFound
        );
    }
    rig.storage
        .preload("other", [session_created(0, "t", MODEL)]);
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    Rig { session, ..rig }.epilogue().await;
}

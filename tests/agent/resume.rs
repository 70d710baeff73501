//! Chapters 3.6 and 6.2: what a resume makes of what was stored.

use serde_json::json;
use std::num::NonZeroUsize;
use youyou_agent::testing::{
    InMemoryMemories, RecordingTool, ScriptedProvider, assistant_message, at, call_part, collect,
    cut_message, done, error, session_created, text, tool_call_stored, tool_result_stored,
    user_message, vision_model, wait,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ErrorCode, Interruption, MessageStatus, ProviderErrorKind,
    ResumeOptions, SessionConfig, SessionEventKind,
};

use crate::histories::{STORED, marked_turns, storage_with};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::said;

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
        let note = "note: [此消息因程序中断而未完成]";
        assert_eq!(
            lines.get(4).is_some_and(|line| line == note),
            !retry,
            "{lines:?}"
        );
        for _ in 0..3 {
            rig.reopen().await;
            rig.send("again").await;
            let later = said(&rig.provider.last_request().unwrap());
            let same = lines.len().min(5);
            assert_eq!(
                later[..same],
                lines[..same],
                "the same for ever, each thing once"
            );
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
async fn a_session_whose_model_is_gone_is_opened_only_on_a_model_that_is_named() {
    // D18
    let storage = storage_with(marked_turns(1, 10));
    let before = storage.events(STORED);
    let provider = ScriptedProvider::new("scripted")
        .model(vision_model("m2"))
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m2"))
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
    let provider = ScriptedProvider::new("scripted")
        .model(vision_model("m2"))
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m2"))
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
            builder.memory_storage(InMemoryMemories::new())
        })
        .await;
        for _ in 0..5 {
            rig.reopen().await;
        }
        assert_eq!(rig.stored(), before);
        let listed = rig
            .agent
            .list_sessions(None, NonZeroUsize::new(10))
            .await
            .unwrap()
            .sessions;
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
                .session_history(id, None, None)
                .await
                .unwrap_err()
                .code,
            ErrorCode::SessionNotFound
        );
    }
    rig.storage
        .preload("other", [session_created(0, "t", MODEL)]);
    rig.anew().await.epilogue().await;
}

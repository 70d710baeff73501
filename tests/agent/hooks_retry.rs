//! Requirements 3.5 and 5.1: what a TurnStart handler changes holds when the turn runs again.

use std::num::NonZeroUsize;

use youyou_agent::testing::{
    Fault, FaultySessions, InMemoryMemories, InMemorySessions, ScriptedProvider, SessionOperation,
    When, collect, done, error, text,
};
use youyou_agent::{
    AgentBuilder, ContentBlock, ErrorOrigin, HookOutcome, ProviderErrorKind, SessionConfig,
    SkillDefinition, TurnOrigin, TurnStart, TurnStartChange,
};

use crate::look::warnings;
use crate::memory::{answering, extractions};
use crate::probe::{Lines, Probe};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{all_said, said, stored_lines};
use crate::told::told;

/// A plugin that notes each origin and takes secrets out of messages that run again.
fn redacting(origins: &Lines) -> Probe {
    let origins = origins.clone();
    Probe::tapping("redact", move |hooks| {
        let origins = origins.clone();
        hooks.turn_start("secrets", move |turn: TurnStart| {
            origins.add(format!("{:?}", turn.origin));
            async move {
                if turn.origin == TurnOrigin::Send {
                    return Ok(HookOutcome::Continue);
                }
                let words = turn.user_input.iter().filter_map(ContentBlock::as_text);
                let redacted =
                    words.map(|words| ContentBlock::text(words.replace("hunter2", "***")));
                Ok(HookOutcome::ContinueWith(TurnStartChange {
                    user_input: Some(redacted.collect()),
                    ..TurnStartChange::default()
                }))
            }
        });
    })
}

/// Fails the first turn and answers the next one.
fn failing_once() -> ScriptedProvider {
    provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([text("ok"), done()])
}

async fn retried(rig: &Rig) -> Vec<String> {
    told(&collect(rig.session.retry_turn().unwrap()).await)
}

const OK: [&str; 3] = ["started", "text 0: ok", "completed: ok"];

#[tokio::test(start_paused = true)]
async fn a_change_is_stored_at_the_index_of_the_message_before_the_model_is_asked() {
    for resumed in [false, true] {
        let origins = Lines::default();
        let mut rig = Rig::with(failing_once(), config(), |builder| {
            builder.plugin(redacting(&origins))
        })
        .await;
        rig.send("it is hunter2").await;
        let before = rig.stored();
        if resumed {
            rig.reopen().await;
        }
        assert_eq!(retried(&rig).await, OK);
        assert_eq!(origins.all(), ["Send", "Retry"]);
        assert_eq!(said(&rig.request(2)), ["user: it is ***"]);
        assert_eq!(
            stored_lines(&rig.stored()),
            [
                "created: it is hunter2",
                "user: it is ***",
                "interrupted: Failed",
                "head: 1",
                "assistant: ok"
            ]
        );
        // Nothing but the content is another one.
        let (old, new) = (&before[1], &rig.stored()[1]);
        assert_eq!(
            (old.index, old.timestamp, &old.turn_id),
            (new.index, new.timestamp, &new.turn_id)
        );
        assert_eq!(rig.session.info().message_count, 2);
        rig.reopen().await;
        rig.provider.queue([text("and on"), done()]);
        rig.send("next").await;
        assert_eq!(
            said(&rig.request(3)),
            ["user: it is ***", "assistant: ok", "user: next"]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_stored_fails_the_turn_and_changes_nothing() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let origins = Lines::default();
    let mut rig = Rig::over(failing_once(), config(), inner, storage, |builder| {
        builder.plugin(redacting(&origins))
    })
    .await;
    rig.send("it is hunter2").await;
    for resumed in [false, true] {
        let before = (rig.stored(), rig.session.info().message_count);
        for fault in [
            Fault::Error("down".to_owned()),
            Fault::Panic("broken".to_owned()),
            Fault::Hang,
        ] {
            faults.inject(SessionOperation::Append, When::Nth(1), fault);
            assert_eq!(
                retried(&rig).await,
                ["started", "error STORAGE_ERROR", "failed STORAGE_ERROR"]
            );
            assert_eq!((rig.stored(), rig.session.info().message_count), before);
        }
        assert_eq!(rig.provider.request_count(), 1);
        if !resumed {
            rig.reopen().await;
        }
    }
    assert_eq!(retried(&rig).await, OK);
    assert_eq!(said(&rig.request(2)), ["user: it is ***"]);
    assert_eq!(stored_lines(&rig.stored())[1], "user: it is ***");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_first_write_leaves_what_waited_for_a_message() {
    // A session that ended with its process, without an answer: the note waits.
    let storage = InMemorySessions::new();
    storage.preload(
        "s1",
        [
            youyou_agent::testing::session_created(0, "A title", MODEL),
            youyou_agent::testing::user_message(1, "it is hunter2"),
        ],
    );
    let faulty = FaultySessions::new(storage.clone());
    let faults = faulty.faults().clone();
    let agent = AgentBuilder::new(config())
        .provider(provider().always(|_| [text("ok"), done()]))
        .session_storage(faulty)
        .plugin(redacting(&Lines::default()))
        .build()
        .await
        .unwrap();
    let session = agent
        .resume_session("s1", Default::default())
        .await
        .unwrap();
    faults.fail(SessionOperation::Append, When::Nth(1));
    let lines = told(&collect(session.retry_turn().unwrap()).await);
    assert_eq!(lines.last().unwrap(), "failed STORAGE_ERROR");
    session.send("instead").unwrap().outcome().await;
    assert_eq!(
        stored_lines(&storage.events("s1")),
        [
            "created: A title",
            "user: it is hunter2",
            "interrupted: ProcessEnded",
            "user: instead",
            "assistant: ok"
        ]
    );
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_changes_nothing_writes_nothing_anew() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(failing_once(), config(), inner, storage, |builder| {
        builder.plugin(redacting(&Lines::default()))
    })
    .await;
    rig.send("no secret").await;
    let before = faults.calls().len();
    assert_eq!(retried(&rig).await, OK);
    let written: Vec<Vec<u64>> = faults.calls()[before..]
        .iter()
        .map(|call| call.indices.clone())
        .collect();
    assert_eq!(written, [[3], [4]], "the head, and the answer");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_another_process_wrote_keeps_its_words_in_the_storage_and_that_is_told() {
    let rig = Rig::new(failing_once()).await;
    rig.send("it is hunter2").await;
    let (id, storage) = (rig.session.id().to_owned(), rig.storage.clone());
    rig.session.close().await.unwrap();

    let provider = provider().reply([text("ok"), done()]);
    let other = storage.another_writer();
    let mut rig = Rig::resumed(provider, config(), other, &id, |builder| {
        builder.plugin(redacting(&Lines::default()))
    })
    .await;
    let events = collect(rig.session.retry_turn().unwrap()).await;
    let [(ErrorOrigin::Storage, warning)] = &warnings(&events)[..] else {
        panic!("{events:?}")
    };
    assert!(warning.contains("until the session is closed"), "{warning}");
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    assert_eq!(said(&rig.request(1)), ["user: it is ***"]);
    rig.provider.queue([text("and on"), done()]);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(2)),
        ["user: it is ***", "assistant: ok", "user: next"]
    );
    let stored = [
        "created: it is hunter2",
        "user: it is hunter2",
        "interrupted: Failed",
        "head: 1",
        "assistant: ok",
        "user: next",
        "assistant: and on",
    ];
    assert_eq!(
        stored_lines(&rig.stored()),
        stored,
        "everything else is stored"
    );
    rig.reopen().await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_storage_shows_the_change_in_its_history() {
    let agent = AgentBuilder::new(config())
        .provider(failing_once())
        .plugin(redacting(&Lines::default()))
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.send("it is hunter2").unwrap().outcome().await;
    session.retry_turn().unwrap().outcome().await;
    let page = agent
        .session_history(session.id(), None, NonZeroUsize::new(10))
        .await
        .unwrap();
    assert_eq!(
        stored_lines(&page.events),
        ["created: it is hunter2", "user: it is ***", "assistant: ok"]
    );
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn memories_are_made_of_the_changed_words() {
    let provider = answering("[]");
    provider.queue([error(ProviderErrorKind::Auth, "no key")]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .plugin(redacting(&Lines::default()))
            .memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("it is hunter2").await;
    assert_eq!(retried(&rig).await, OK);
    rig.session.close().await.unwrap();
    let [extraction] = &extractions(&rig.provider)[..] else {
        panic!("one extraction")
    };
    let read = all_said(extraction);
    assert!(
        read.contains("it is ***") && !read.contains("hunter2"),
        "{read}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_skill_of_a_changed_message_counts_again() {
    let skill = SkillDefinition::new("commit", "MARK: write a commit message.");
    let rig = Rig::with(failing_once(), config(), |builder| {
        builder.skill(skill).plugin(redacting(&Lines::default()))
    })
    .await;
    rig.send("/commit hunter2").await;
    assert_eq!(retried(&rig).await, OK);
    let lines = said(&rig.request(2));
    assert!(
        lines[0].starts_with("skill: ") && lines[0].contains("MARK"),
        "{lines:?}"
    );
    assert!(!lines.join("").contains("hunter2"), "{lines:?}");
    assert_eq!(lines[1], "user: /commit ***");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_never_stored_comes_to_the_handlers_as_it_was_sent() {
    let storage = FaultySessions::new(InMemorySessions::new());
    storage
        .faults()
        .fail(SessionOperation::Append, When::Nth(1));
    let inner = storage.inner().clone();
    let origins = Lines::default();
    let provider = provider().reply([text("ok"), done()]);
    let rig = Rig::over(provider, config(), inner, storage, |builder| {
        builder.plugin(redacting(&origins))
    })
    .await;
    assert_eq!(
        told(&rig.send("lost").await).last().unwrap(),
        "failed STORAGE_ERROR"
    );
    assert_eq!(retried(&rig).await, OK);
    assert_eq!(origins.all(), ["Send", "Send"]);
    rig.epilogue().await;
}

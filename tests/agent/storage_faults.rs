//! Chapter 3.6: a storage that fails, hangs, panics, or does what it says it did not.

use std::num::NonZeroUsize;
use std::time::Duration;

use youyou_agent::testing::{
    Fault, Faults, FaultySessions, Gate, InMemorySessions, RecordingTool, ScriptedProvider,
    SessionOperation, When, call, done, gate, kinds, text,
};
use youyou_agent::{
    AgentError, AgentEvent, AgentEventKind, CompactionMethod, ErrorCode, ErrorOrigin,
    ResumeOptions, SessionConfig,
};

use crate::histories::{compacting, compactions, marked, well_summarised};
use crate::rig::{Rig, provider};
use crate::said::{said, stored_lines};

/// A rig whose storage goes wrong as the faults say.
pub(crate) async fn faulty(provider: ScriptedProvider) -> (Rig, Faults<SessionOperation>) {
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let faults = wrapped.faults().clone();
    let rig = Rig::over(provider, compacting(), storage, wrapped, |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo").echo())
            .tool(RecordingTool::mutating("mu_write"))
    })
    .await;
    (rig, faults)
}

fn errors(events: &[AgentEvent]) -> Vec<&AgentError> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::Error { error } => Some(error),
            _ => None,
        })
        .collect()
}

pub(crate) fn storage_errors(events: &[AgentEvent]) -> usize {
    let errors = errors(events);
    errors
        .iter()
        .filter(|error| error.code == ErrorCode::StorageError)
        .count()
}

/// Whether the first write of the turn failed, so that nothing of it is kept.
pub(crate) fn was_not_begun(events: &[AgentEvent]) -> bool {
    kinds(events) == ["turnStarted", "error", "turnComplete"] && storage_errors(events) == 1
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_is_not_kept_and_can_be_sent_again() {
    // D7
    let ways = every_fault()
        .into_iter()
        .flat_map(|fault| [(fault.clone(), false), (fault, true)]);
    for (fault, again) in ways {
        let (rig, faults) = faulty(provider().always(|_| [text("ok"), done()])).await;
        rig.send("one").await;
        let before = stored_lines(&rig.stored());
        faults.inject(SessionOperation::Append, When::Nth(1), fault.clone());
        let events = rig.send("two").await;
        assert!(was_not_begun(&events), "{fault:?}: {:?}", kinds(&events));
        let failure = errors(&events)[0];
        assert_eq!(failure.origin, ErrorOrigin::Storage);
        assert!(failure.retryable);
        assert_eq!(rig.provider.request_count(), 1, "the model is not asked");
        assert_eq!(rig.session.info().message_count, 2);
        if again {
            rig.session.retry_turn().unwrap().outcome().await;
        } else {
            rig.send("two").await;
        }
        assert_eq!(
            said(&rig.request(2)),
            ["user: one", "assistant: ok", "user: two"]
        );
        let mut expected = before;
        expected.extend(["user: two".to_owned(), "assistant: ok".to_owned()]);
        assert_eq!(stored_lines(&rig.stored()), expected, "{fault:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_cannot_be_stored_changes_nothing_and_can_be_asked_for_again() {
    for fault in every_fault() {
        let provider = well_summarised(provider()).always(|_| [text("ok"), done()]);
        let (mut rig, faults) = faulty(provider).await;
        for n in 1..=20 {
            rig.send(marked(n, 40).as_str()).await;
        }
        let before = said(&rig.provider.last_request().unwrap());
        let tokens = rig.session.info().context_tokens;
        faults.inject(SessionOperation::Append, When::Nth(1), fault.clone());
        let refused = rig.session.compact().await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::StorageError, "{fault:?}");
        assert!(refused.retryable);
        assert_eq!(rig.session.info().context_tokens, tokens);
        rig.send("whole").await;
        let whole = said(&rig.provider.last_request().unwrap());
        assert_eq!(whole[..before.len()], before, "{fault:?}");
        let outcome = rig.session.compact().await.unwrap();
        assert_eq!(outcome.method, Some(CompactionMethod::Summarized));
        assert_eq!(compactions(&rig.stored()), 1, "{fault:?}");
        rig.send("live").await;
        let live = said(&rig.provider.last_request().unwrap());
        assert!(live.len() < whole.len(), "{live:?}");
        rig.reopen().await;
        rig.send("resumed").await;
        let resumed = said(&rig.provider.last_request().unwrap());
        assert_eq!(resumed[..live.len()], live, "{fault:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_fails_in_mid_turn_is_told_once_and_catches_up_in_order() {
    // D8
    for fault in every_fault() {
        let provider = provider()
            .reply([
                text("look"),
                call("c1", "mu_write", "{}"),
                call("c2", "ro_echo", "{}"),
                done(),
            ])
            .reply([text("done"), done()]);
        let (mut rig, faults) = faulty(provider).await;
        faults.inject(SessionOperation::Append, When::From(2), fault.clone());
        let events = rig.send("go").await;
        assert_eq!(
            kinds(&events),
            [
                "turnStarted",
                "textDelta",
                "error",
                "toolCallStart",
                "toolCallEnd",
                "toolCallStart",
                "toolCallEnd",
                "textDelta",
                "turnComplete"
            ],
            "{fault:?}"
        );
        assert_eq!(storage_errors(&events), 1);
        faults.heal();
        let calls_before = faults.calls().len();
        rig.provider.queue([text("ok"), done()]);
        rig.send("next").await;
        let calls = faults.calls();
        let written: Vec<u64> = calls[calls_before..]
            .iter()
            .flat_map(|call| call.indices.clone())
            .collect();
        assert_eq!(
            written,
            Vec::from_iter(2..=9),
            "the missing ones first, each once"
        );
        assert_eq!(
            stored_lines(&rig.stored()),
            [
                "created: go",
                "user: go",
                "assistant: look <c1 mu_write> <c2 ro_echo>",
                "call c1",
                "result c1: ok",
                "call c2",
                "result c2: {}",
                "assistant: done",
                "user: next",
                "assistant: ok"
            ]
        );
        let live = said(&rig.request(3));
        rig.reopen().await;
        rig.provider.queue([text("ok"), done()]);
        rig.send("resumed").await;
        assert_eq!(said(&rig.request(4))[..live.len()], live);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_is_down_costs_one_wait_and_is_probed_in_the_background() {
    let provider = provider()
        .reply([call("c1", "mu_write", "{}"), done()])
        .reply([call("c2", "mu_write", "{}"), done()])
        .reply([text("done"), done()]);
    let (rig, faults) = faulty(provider).await;
    faults.inject(SessionOperation::Append, When::From(2), Fault::Hang);
    let began = tokio::time::Instant::now();
    let events = rig.send("go").await;
    assert_eq!(storage_errors(&events), 1);
    assert_eq!(
        began.elapsed(),
        Duration::from_secs(10),
        "one storage_timeout_ms, not six"
    );
    let stored = rig.stored().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.stored().len(), stored);
    assert!(
        faults.count(SessionOperation::Append) < 10,
        "probes become rare"
    );
    faults.heal();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(rig.stored().len(), 9, "the probe wrote what was missing");
    let calls = faults.count(SessionOperation::Append);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(
        faults.count(SessionOperation::Append),
        calls,
        "and came to rest"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_the_storage_catches_up_is_not_lost() {
    let door = Gate::closed();
    let provider = provider()
        .reply([call("c1", "mu_write", "{}"), done()])
        .reply([text("done"), gate(&door), done()]);
    let (rig, faults) = faulty(provider).await;
    let catching_up = Gate::closed();
    faults.fail(SessionOperation::Append, When::Nth(2));
    faults.inject(
        SessionOperation::Append,
        When::Nth(3),
        Fault::Gate(catching_up.clone()),
    );
    let turn = rig.session.send("go").unwrap();
    // The probe has begun to write what is missing, and the turn goes on meanwhile.
    catching_up.arrived(1).await;
    door.open();
    turn.outcome().await;
    catching_up.open();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: go",
            "user: go",
            "assistant: <c1 mu_write>",
            "call c1",
            "result c1: ok",
            "assistant: done"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn closing_with_a_backlog_makes_one_last_attempt_and_says_what_is_lost() {
    for fault in every_fault() {
        let (mut rig, faults) = faulty(provider().always(|_| [text("ok"), done()])).await;
        let id = rig.session.id().to_owned();
        rig.send("one").await;
        faults.inject(SessionOperation::Append, When::From(2), fault.clone());
        rig.send("two").await;
        let attempts = faults.count(SessionOperation::Append);
        let lost = rig.session.close().await.unwrap_err();
        assert_eq!(lost.code, ErrorCode::StorageError);
        assert_eq!(lost.origin, ErrorOrigin::Storage);
        assert!(lost.message.contains("1 events"), "{}", lost.message);
        assert!(lost.message.contains("lost"), "{}", lost.message);
        assert_eq!(faults.count(SessionOperation::Append), attempts + 1);
        assert!(
            rig.agent.current_session().is_none(),
            "it is closed all the same"
        );
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            faults.count(SessionOperation::Append),
            attempts + 1,
            "nothing goes on"
        );
        faults.heal();
        rig.session = rig
            .agent
            .resume_session(&id, ResumeOptions::default())
            .await
            .unwrap();
        rig.send("three").await;
        let lines = said(&rig.provider.last_request().unwrap());
        assert_eq!(lines[..3], ["user: one", "assistant: ok", "user: two"]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_that_reaches_the_storage_again_loses_nothing() {
    let (mut rig, faults) = faulty(provider().always(|_| [text("ok"), done()])).await;
    rig.send("one").await;
    faults.fail(SessionOperation::Append, When::From(2));
    rig.send("two").await;
    faults.heal();
    rig.reopen().await;
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: one",
            "user: one",
            "assistant: ok",
            "user: two",
            "assistant: ok"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn every_call_of_a_storage_that_fails_is_an_error_that_says_what_failed() {
    for fault in every_fault() {
        let (rig, faults) = faulty(provider().always(|_| [text("ok"), done()])).await;
        rig.send("one").await;
        let id = rig.session.id().to_owned();
        rig.session.close().await.unwrap();
        for operation in [
            SessionOperation::Load,
            SessionOperation::LoadPage,
            SessionOperation::List,
            SessionOperation::Find,
            SessionOperation::Rename,
            SessionOperation::Delete,
        ] {
            faults.inject(operation, When::Always, fault.clone());
        }
        let agent = &rig.agent;
        let failures = [
            agent
                .resume_session(&id, ResumeOptions::default())
                .await
                .unwrap_err(),
            agent.session_history(&id, None, None).await.unwrap_err(),
            agent
                .list_sessions(None, NonZeroUsize::new(10))
                .await
                .unwrap_err(),
            agent.find_sessions("one").await.unwrap_err(),
            agent.rename_session(&id, "new").await.unwrap_err(),
            agent.delete_session(&id).await.unwrap_err(),
        ];
        for failure in failures {
            assert_eq!(
                failure.code,
                ErrorCode::StorageError,
                "{fault:?}: {failure:?}"
            );
            assert_eq!(failure.origin, ErrorOrigin::Storage);
            assert!(failure.message.contains("failed"), "{}", failure.message);
        }
        assert!(agent.current_session().is_none(), "the slot is free");
        faults.heal();
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        Rig { session, ..rig }.epilogue().await;
    }
}

pub(crate) fn every_fault() -> Vec<Fault> {
    vec![
        Fault::Error("down".to_owned()),
        Fault::ErrorAfter("connection lost".to_owned()),
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic("poisoned".to_owned()),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_first_message_was_never_stored_does_not_exist() {
    let (rig, faults) = faulty(provider().always(|_| [text("ok"), done()])).await;
    faults.fail(SessionOperation::Append, When::Always);
    for _ in 0..3 {
        assert!(was_not_begun(&rig.send("q").await));
    }
    assert_eq!(rig.session.info().title, None);
    rig.session.close().await.unwrap();
    faults.heal();
    assert_eq!(rig.storage.session_ids(), Vec::<String>::new());
    rig.anew().await.epilogue().await;
}

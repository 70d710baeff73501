//! Requirements 6.2: what a cancel means while a storage fails or hangs.

use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{Fault, SessionOperation, When, collect, done, kinds, text, wait};
use youyou_agent::{AgentEventKind, ErrorCode, TurnStatus};

use crate::rig::provider;
use crate::said::stored_lines;
use crate::storage_faults::{faulty, storage_errors};

/// The limit that a cancelled turn has to end in, whatever the storage does.
const AT_ONCE: Duration = Duration::from_secs(1);

fn faults() -> Vec<Fault> {
    vec![
        Fault::Error("down".into()),
        Fault::ErrorAfter("lost".into()),
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic("broke".into()),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_turn_within_a_second_whatever_the_storage_does() {
    for fault in faults() {
        for nth in 1..=3 {
            let (rig, planned) = faulty(provider().reply([text("par"), wait()])).await;
            planned.inject(SessionOperation::Append, When::From(nth), fault.clone());
            let turn = rig.session.send("hi").unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            let cancelled = Instant::now();
            let _in_time = turn.cancel();
            let events = collect(turn).await;
            assert!(
                cancelled.elapsed() <= AT_ONCE,
                "{fault:?} from write {nth}: {:?}",
                cancelled.elapsed()
            );
            let last = events.last().unwrap();
            assert!(last.kind.is_terminal(), "{last:?}");
            planned.heal();
            tokio::time::sleep(Duration::from_secs(20)).await;
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_never_hides_that_the_message_was_not_stored() {
    // C23
    for fault in [Fault::Hang, Fault::Error("down".into())] {
        let (rig, planned) = faulty(provider()).await;
        planned.inject(SessionOperation::Append, When::Nth(1), fault);
        let turn = rig.session.send("hi").unwrap();
        let _in_time = turn.cancel();
        let events = collect(turn).await;
        assert_eq!(storage_errors(&events), 1, "{:?}", kinds(&events));
        assert!(matches!(
            events.last().unwrap().kind,
            AgentEventKind::TurnCancelled { .. }
        ));
        assert!(rig.stored().is_empty());
        planned.heal();
        rig.provider.queue([text("ok"), done()]);
        rig.send("hi").await;
        assert_eq!(
            stored_lines(&rig.stored()),
            ["created: hi", "user: hi", "assistant: ok"]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hang_costs_one_limit_however_many_writes_wait_for_it() {
    let provider = provider()
        .reply([
            youyou_agent::testing::call("c1", "ro_echo", "{}"),
            youyou_agent::testing::call("c2", "ro_echo", "{}"),
            youyou_agent::testing::call("c3", "ro_echo", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let (rig, planned) = faulty(provider).await;
    planned.inject(SessionOperation::Append, When::From(2), Fault::Hang);
    let began = Instant::now();
    let events = rig.send("hi").await;
    assert!(
        began.elapsed() < Duration::from_secs(11),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(storage_errors(&events), 1);
    planned.heal();
    tokio::time::sleep(Duration::from_secs(20)).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_continued_elsewhere_is_told_and_writes_nothing_over() {
    // ST1
    let rig = crate::rig::Rig::new(provider().reply([text("one"), done()])).await;
    rig.send("first").await;
    let elsewhere = rig.storage.another_writer();
    let next = rig.stored().last().unwrap().index + 1;
    let theirs = youyou_agent::testing::user_message(next, "theirs");
    youyou_agent::SessionStorage::append(&elsewhere, rig.session.id(), &[theirs])
        .await
        .unwrap();
    let turn = rig.session.send("ours").unwrap();
    let outcome = turn.outcome().await;
    let error = outcome.error.unwrap();
    assert_eq!(
        (outcome.status, error.code, error.retryable),
        (TurnStatus::Failed, ErrorCode::StorageError, false)
    );
    assert!(error.message.contains("resume"), "{}", error.message);
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: first",
            "user: first",
            "assistant: one",
            "user: theirs"
        ]
    );
    let mut rig = rig;
    // Nothing of it is lost for the other one, and a resume goes on from there.
    let _told_again = rig.session.close().await;
    rig.session = rig
        .agent
        .resume_session(rig.session.id(), youyou_agent::ResumeOptions::default())
        .await
        .unwrap();
    rig.epilogue().await;
}

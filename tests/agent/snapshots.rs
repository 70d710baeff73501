//! Chapter 3.6: text that is still streaming is stored every now and then.

use std::time::Duration;

use youyou_agent::testing::{
    Fault, FaultySessions, InMemorySessions, Manual, SessionOperation, When, collect, done, text,
};
use youyou_agent::{ChatEvent, Interruption, SessionEventKind};

use crate::clock::{pass, settle};
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};

async fn streaming(rig: &Rig) -> (youyou_agent::Turn, Manual) {
    let answer = rig.provider.manual();
    let turn = rig.session.send("hi").unwrap();
    answer.started().await;
    (turn, answer)
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_mid_stream_loses_at_most_the_last_two_seconds() {
    let rig = Rig::new(provider()).await;
    let (_turn, answer) = streaming(&rig).await;
    for piece in ["a", "b", "c", "d", "e"] {
        answer.text(piece);
        pass(Duration::from_millis(1_000)).await;
    }
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "assistant: abcd (ProcessEnded)"]
    );

    // The process ends here: another agent goes on with what is stored.
    let id = rig.session.id().to_owned();
    let next = Rig::resumed(provider(), config(), rig.storage.clone(), &id, |builder| {
        builder
    })
    .await;
    next.provider.queue([text("ok"), done()]);
    next.send("next").await;
    assert_eq!(
        said(&next.request(1)),
        [
            "user: hi",
            "assistant: abcd",
            "note: [此消息因程序中断而未完成]",
            "user: next"
        ]
    );
    next.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_before_a_long_silence_is_stored() {
    let rig = Rig::new(provider()).await;
    let (turn, answer) = streaming(&rig).await;
    answer.text("shown");
    pass(Duration::from_millis(100)).await;
    assert_eq!(stored_lines(&rig.stored()).len(), 2, "not yet");
    pass(Duration::from_millis(2_000)).await;
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        ["assistant: shown (ProcessEnded)"]
    );
    answer.push(ChatEvent::reasoning("thought"));
    pass(Duration::from_millis(2_100)).await;
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        ["assistant: shown <thinks thought> (ProcessEnded)"]
    );
    answer.text(" more");
    answer.done();
    collect(turn).await;
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        ["assistant: shown <thinks thought>  more"],
        "the whole answer takes the place of its beginnings"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn snapshots_come_at_most_every_two_seconds() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(provider(), config(), inner, storage, |builder| builder).await;
    let (turn, answer) = streaming(&rig).await;
    let before = faults.count(SessionOperation::Append);
    for _ in 0..100 {
        answer.text("x");
        pass(Duration::from_millis(100)).await;
    }
    let snapshots = faults.count(SessionOperation::Append) - before;
    assert!((4..=5).contains(&snapshots), "{snapshots} in 10 s");
    // Nothing new, nothing stored.
    pass(Duration::from_millis(10_000)).await;
    assert!(faults.count(SessionOperation::Append) - before <= snapshots + 1);
    answer.done();
    collect(turn).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_hangs_or_fails_holds_up_no_delta_and_loses_nothing() {
    for fault in [
        Fault::Hang,
        Fault::HangAfter,
        Fault::Error("down".into()),
        Fault::Panic("broke".into()),
    ] {
        let storage = FaultySessions::new(InMemorySessions::new());
        let faults = storage.faults().clone();
        let inner = storage.inner().clone();
        let rig = Rig::over(provider(), config(), inner, storage, |builder| builder).await;
        let (turn, answer) = streaming(&rig).await;
        faults.inject(SessionOperation::Append, When::Nth(1), fault.clone());
        let mut reader = rig.session.subscribe(None);
        answer.text("a");
        pass(Duration::from_millis(2_100)).await;
        answer.text("b");
        pass(Duration::from_millis(10)).await;
        let shown: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
        assert_eq!(youyou_agent::testing::text_of(&shown), "ab", "{fault:?}");
        answer.done();
        let events = collect(turn).await;
        assert_eq!(crate::told::told(&events).last().unwrap(), "completed: ab");
        // One that hung counts as the storage being down: what is missing follows soon.
        pass(Duration::from_millis(1_000)).await;
        assert_eq!(
            stored_lines(&rig.stored())[2..],
            ["assistant: ab"],
            "{fault:?}"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_a_snapshot_takes_its_place() {
    let rig = Rig::new(provider()).await;
    let (turn, answer) = streaming(&rig).await;
    answer.text("AB");
    pass(Duration::from_millis(2_100)).await;
    answer.text("CD");
    settle().await;
    assert!(turn.cancel());
    collect(turn).await;
    let stored = rig.stored();
    assert_eq!(stored_lines(&stored)[2..], ["assistant: ABCD (Cancelled)"]);
    let SessionEventKind::AssistantMessage { interruption, .. } = &stored[2].kind else {
        panic!("{stored:?}");
    };
    assert_eq!(*interruption, Some(Interruption::Cancelled));
    drop(answer);
    rig.epilogue().await;
}

//! Chapters 5.1 and 6.2: a cancel, a send and the end of a turn at the same moment.

use youyou_agent::testing::{
    Gate, assert_event_invariants, collect, done, gate, kinds, text, yield_once,
};
use youyou_agent::{ErrorCode, Interruption, MessageStatus, SessionEventKind};

use crate::rig::{Rig, provider};
use crate::said::stored_lines;
use crate::told::told;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_that_races_with_the_end_has_one_winner_and_storage_agrees() {
    // A8
    let provider = provider();
    let rig = Rig::new(provider).await;
    for round in 0_u32..1_000 {
        let door = Gate::closed();
        rig.provider
            .queue([text("a"), gate(&door), yield_once(), done()]);
        let turn = rig.session.send(format!("round {round}")).unwrap();
        let handle = rig.agent.turn(turn.id()).unwrap();
        door.arrived(1).await;
        let opening = tokio::spawn({
            let door = door.clone();
            async move { door.open() }
        });
        let cancelling = tokio::spawn(async move {
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            handle.cancel()
        });
        let events = collect(turn).await;
        opening.await.unwrap();
        let cancelled = cancelling.await.unwrap();
        assert_event_invariants(&events);
        let last = if cancelled {
            "cancelled"
        } else {
            "completed: a"
        };
        assert_eq!(
            told(&events),
            ["started", "text 0: a", last],
            "round {round}"
        );
        let stored = rig.stored();
        let SessionEventKind::AssistantMessage {
            interruption,
            status,
            ..
        } = &stored.last().unwrap().kind
        else {
            panic!("round {round}: {:?}", stored.last());
        };
        let (expected, whole) = if cancelled {
            (Some(Interruption::Cancelled), MessageStatus::Incomplete)
        } else {
            (None, MessageStatus::Complete)
        };
        assert_eq!((*interruption, *status), (expected, whole), "round {round}");
    }
    rig.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_that_races_with_a_failure_leaves_one_story() {
    // A8
    let rig = Rig::new(provider()).await;
    for round in 0_u32..300 {
        let door = Gate::closed();
        let failure = youyou_agent::testing::error(youyou_agent::ProviderErrorKind::Other, "broke");
        rig.provider.queue([text("a"), gate(&door), failure]);
        let turn = rig.session.send("hi").unwrap();
        let handle = rig.agent.turn(turn.id()).unwrap();
        door.arrived(1).await;
        let opening = tokio::spawn(async move { door.open() });
        let cancelling = tokio::spawn(async move { handle.cancel() });
        let events = collect(turn).await;
        opening.await.unwrap();
        let cancelled = cancelling.await.unwrap();
        assert_event_invariants(&events);
        let (end, why) = if cancelled {
            (vec!["cancelled"], "assistant: a (Cancelled)")
        } else {
            (
                vec!["error PROVIDER_ERROR", "failed PROVIDER_ERROR"],
                "assistant: a (Failed)",
            )
        };
        assert_eq!(told(&events)[2..], end, "round {round}");
        assert_eq!(
            stored_lines(&rig.stored()).last().unwrap(),
            why,
            "round {round}"
        );
    }
    rig.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_send_right_after_the_last_event_is_never_refused() {
    // A14, INV-5
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    let mut turn = rig.session.send("first").unwrap();
    for round in 0..1_000 {
        if round % 2 == 0 {
            let _in_time = turn.cancel();
        }
        let events = collect(turn).await;
        assert_event_invariants(&events);
        turn = rig.session.send(format!("round {round}")).unwrap();
    }
    collect(turn).await;
    rig.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_finds_the_session_idle_finds_the_last_event_told() {
    // INV-2 over turns, INV-5: a sender that does not listen never overtakes the end.
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    let everything = rig.agent.subscribe();
    let mut last = None;
    for _ in 0..1_000 {
        last = loop {
            match rig.session.send("hi") {
                Ok(turn) => break Some(turn),
                Err(busy) => {
                    assert_eq!(busy.code, ErrorCode::SessionBusy);
                    tokio::task::yield_now().await;
                }
            }
        };
    }
    last.unwrap().outcome().await;
    let mut everything = everything;
    let events: Vec<_> = std::iter::from_fn(|| everything.try_next()).collect();
    assert_event_invariants(&events);
    assert_eq!(
        kinds(&events)
            .iter()
            .filter(|kind| **kind == "turnComplete")
            .count(),
        1_000
    );
    rig.epilogue().await;
}

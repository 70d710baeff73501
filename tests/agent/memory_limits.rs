//! Whatever goes wrong with memories, turns go on and sessions close in time.

use std::time::Duration;

use youyou_agent::testing::{
    Fault, FaultyMemories, InMemoryMemories, MemoryOperation, Step, When, done, error, gate, text,
    wait,
};
use youyou_agent::{AgentConfig, ProviderErrorKind, SessionConfig};

use crate::memory::{answering, contents, extracting, extractions, remembering};
use crate::rig::{Rig, config};
use crate::said::stored_lines;

#[tokio::test(start_paused = true)]
async fn closing_waits_for_an_extraction_at_most_for_its_limit() {
    // G21
    for seconds in [3, 15] {
        let settings = AgentConfig {
            memory_timeout_ms: seconds * 1_000,
            ..config()
        };
        let provider = extracting(|| vec![text("[{"), wait()]);
        let mut rig = Rig::with(provider, settings, |builder| {
            builder.memory_storage(InMemoryMemories::new())
        })
        .await;
        rig.send("q").await;
        let began = tokio::time::Instant::now();
        let session = rig.session.clone();
        let closing = tokio::spawn(async move { session.close().await });
        rig.provider.asked(2).await;
        // The slot is free before the extraction is over.
        let other = rig
            .agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        other.close().await.unwrap();
        closing.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(seconds));
        assert_eq!(rig.provider.streams_open(), 0, "the request is dropped");
        assert_eq!(rig.provider.dropped(), 1);
        rig.session = rig
            .agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_an_extraction_longer_than_its_own_limit() {
    // G21
    let provider = extracting(|| vec![wait()]);
    let rig = remembering(provider, InMemoryMemories::new()).await;
    rig.send("q").await;
    let began = tokio::time::Instant::now();
    rig.agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(rig.provider.streams_open(), 0);
    assert_eq!(
        stored_lines(&rig.stored())[..3],
        ["created: q", "user: q", "assistant: ok"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_extraction_that_fails_never_keeps_a_session_from_closing() {
    // G21
    let answers: [fn() -> Vec<Step>; 5] = [
        || vec![error(ProviderErrorKind::Auth, "wrong key")],
        || vec![error(ProviderErrorKind::Overloaded, "busy")],
        || vec![text("[{\"content\":\"tea\"}]")],
        || vec![youyou_agent::testing::panic_with("broken")],
        || vec![youyou_agent::testing::panic_in_chat("broken")],
    ];
    for answer in answers {
        let memories = InMemoryMemories::new();
        let mut rig = remembering(extracting(answer), memories.clone()).await;
        rig.send("q").await;
        rig.reopen().await;
        assert_eq!(extractions(&rig.provider).len(), 1, "not tried again");
        assert!(memories.all().is_empty());
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_storage_that_fails_anywhere_keeps_nothing_from_going_on() {
    // G21
    for fault in [
        Fault::Error("down".to_owned()),
        Fault::ErrorAfter("lost".to_owned()),
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic("poisoned".to_owned()),
    ] {
        for (operation, when) in [
            (MemoryOperation::Search, When::Always),
            (MemoryOperation::Load, When::Always),
            (MemoryOperation::Upsert, When::Nth(1)),
            (MemoryOperation::Upsert, When::Nth(2)),
            (MemoryOperation::Upsert, When::Always),
        ] {
            let memories = FaultyMemories::new(InMemoryMemories::new());
            let faults = memories.faults().clone();
            faults.inject(operation, when, fault.clone());
            let provider =
                answering(r#"[{"content":"one"},{"content":"two"},{"content":"three"}]"#);
            let inner = memories.inner().clone();
            let mut rig = remembering(provider, memories).await;
            let began = tokio::time::Instant::now();
            rig.send("q").await;
            assert!(
                began.elapsed() <= Duration::from_secs(2),
                "{operation:?} {fault:?}"
            );
            let began = tokio::time::Instant::now();
            rig.reopen().await;
            assert!(
                began.elapsed() <= Duration::from_secs(15),
                "{operation:?} {fault:?}"
            );
            if operation == MemoryOperation::Search {
                assert_eq!(contents(&inner), ["one", "three", "two"]);
            }
            faults.heal();
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_holds_up_no_turn_and_is_awaited_at_the_end() {
    let door = youyou_agent::testing::Gate::closed();
    let behind = door.clone();
    let settings = AgentConfig {
        memory_checkpoint_interval: 1,
        memory_timeout_ms: 60_000,
        ..config()
    };
    let memories = InMemoryMemories::new();
    let provider = extracting(move || vec![gate(&behind), text(r#"[{"content":"x"}]"#), done()]);
    let rig = Rig::with(provider, settings, |builder| {
        builder.memory_storage(memories.clone())
    })
    .await;
    for _ in 0..3 {
        rig.send("q").await;
    }
    assert_eq!(extractions(&rig.provider).len(), 1, "one at a time");
    let session = rig.session.clone();
    let closing = tokio::spawn(async move { session.close().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!closing.is_finished());
    door.open();
    closing.await.unwrap().unwrap();
    assert_eq!(extractions(&rig.provider).len(), 2);
    assert_eq!(contents(&memories), ["x"]);
    rig.anew().await.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_search_costs_its_own_short_limit_and_a_cancel_ends_it_at_once() {
    let memories = FaultyMemories::new(InMemoryMemories::new());
    let faults = memories.faults().clone();
    faults.inject(MemoryOperation::Search, When::Always, Fault::Hang);
    let rig = remembering(answering("[]"), memories).await;
    let began = tokio::time::Instant::now();
    let turn = rig.session.send("q").unwrap();
    faults.called(MemoryOperation::Search, 1).await;
    assert!(turn.cancel());
    turn.outcome().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    let began = tokio::time::Instant::now();
    rig.send("again").await;
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    let began = tokio::time::Instant::now();
    rig.send("and again").await;
    assert_eq!(began.elapsed(), Duration::ZERO, "not tried in every turn");
    rig.epilogue().await;
}

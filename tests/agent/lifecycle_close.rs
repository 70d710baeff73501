//! Chapter 6.2: the close of a session, once and in order.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemoryMemories, InMemorySessions, RecordingTool,
    SessionOperation, When, assert_event_invariants, call, collect, done, text, wait,
};
use youyou_agent::{
    AgentConfig, AgentEvent, ErrorCode, HookOutcome, SessionConfig, SessionEnd, SessionState,
    Subscription, TurnStatus,
};

use crate::clock::pass;
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::said::stored_lines;
use crate::told::{read_until, told};

fn talkative() -> youyou_agent::testing::ScriptedProvider {
    provider().always(|_| [text("ok"), done()])
}

/// A plugin that notes when sessions end, and what the agent had told by then.
fn noting_ends(lines: &Lines) -> Probe {
    let lines = lines.clone();
    Probe::tapping("p", move |hooks| {
        let lines = lines.clone();
        hooks.session_end("end", move |end: SessionEnd| {
            let lines = lines.clone();
            async move {
                lines.add(format!("ended with {} messages", end.message_count));
                Ok(HookOutcome::Continue)
            }
        });
    })
}

#[tokio::test(start_paused = true)]
async fn closing_in_mid_turn_is_a_cancel_and_then_a_close() {
    // A18
    let lines = Lines::default();
    let provider = provider().reply([text("AB"), wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin(noting_ends(&lines))
    })
    .await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: AB").await;
    let subscription = rig.session.subscribe(None);
    let began = Instant::now();
    rig.session.close().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let events: Vec<AgentEvent> = collect(subscription).await;
    assert_event_invariants(&events);
    assert_eq!(told(&events), ["started", "text 0: AB", "cancelled"]);
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "assistant: AB (Cancelled)"]
    );
    assert_eq!(lines.all(), ["ended with 2 messages"]);
    assert_eq!(rig.session.info().state, SessionState::Closed);
    assert!(rig.agent.current_session().is_none());
    rig.anew().await.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_event_of_a_turn_is_told_before_its_session_ends() {
    // A18: no event after SessionEnd, on any thread.
    let lines = Lines::default();
    let watched: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let plugin = {
        let (lines, watched) = (lines.clone(), Arc::clone(&watched));
        Probe::tapping("p", move |hooks| {
            let (lines, watched) = (lines.clone(), Arc::clone(&watched));
            hooks.session_end("end", move |_: SessionEnd| {
                if let Some(events) = watched.lock().unwrap().as_mut() {
                    let events: Vec<AgentEvent> =
                        std::iter::from_fn(|| events.try_next()).collect();
                    lines.add(told(&events).pop().unwrap_or_default());
                }
                async { Ok(HookOutcome::Continue) }
            });
        })
    };
    let provider = provider().always(|_| [text("AB"), wait()]);
    let mut rig = Rig::with(provider, config(), |builder| builder.plugin(plugin)).await;
    for _ in 0..300 {
        let mut turn = rig.session.send("hi").unwrap();
        read_until(&mut turn, "text 0: AB").await;
        *watched.lock().unwrap() = Some(rig.session.subscribe(None));
        rig.reopen().await;
    }
    assert_eq!(lines.all(), vec!["cancelled"; 300]);
    *watched.lock().unwrap() = None;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_running_tool() {
    // A18, A1
    let door = Gate::closed();
    let tool = RecordingTool::mutating("mu_gate")
        .gated(&door)
        .answering("written");
    let lines = Lines::default();
    let provider = provider().reply([call("c1", "mu_gate", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(tool).plugin(noting_ends(&lines))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    let closing = tokio::spawn({
        let session = rig.session.clone();
        async move { session.close().await }
    });
    pass(Duration::from_secs(1)).await;
    assert_eq!(rig.session.info().state, SessionState::Cancelling);
    assert_eq!(
        rig.session.send("no").unwrap_err().code,
        ErrorCode::SessionNotFound
    );
    let refused = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::SessionBusy,
        "the slot is not free yet"
    );
    assert_eq!(lines.all(), Vec::<String>::new());
    door.open();
    closing.await.unwrap().unwrap();
    assert_eq!(turn.outcome().await.status, TurnStatus::Cancelled);
    assert_eq!(lines.all(), ["ended with 2 messages"]);
    assert_eq!(
        stored_lines(&rig.stored())[4..],
        ["result c1: written", "interrupted: Cancelled"]
    );
}

#[tokio::test(start_paused = true)]
async fn closing_twice_or_at_once_is_one_close() {
    let lines = Lines::default();
    let rig = Rig::with(talkative(), config(), |builder| {
        builder.plugin(noting_ends(&lines))
    })
    .await;
    rig.send("hi").await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let session = rig.session.clone();
            tokio::spawn(async move { session.close().await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    rig.session.close().await.unwrap();
    assert_eq!(lines.all(), ["ended with 2 messages"]);
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    rig.session.close().await.unwrap();
    assert_eq!(
        rig.agent.current_session().unwrap().id(),
        session.id(),
        "the other stays open"
    );
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_whose_caller_gives_up_goes_on() {
    let door = Gate::closed();
    let tool = RecordingTool::mutating("mu_gate").gated(&door);
    let provider = provider().reply([call("c1", "mu_gate", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let _turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    let closing = tokio::time::timeout(Duration::from_secs(1), rig.session.close());
    assert!(closing.await.is_err());
    door.open();
    rig.session.close().await.unwrap();
    assert!(rig.agent.current_session().is_none());
}

#[tokio::test(start_paused = true)]
async fn everything_of_a_closed_session_says_that_it_is_closed() {
    let rig = Rig::new(talkative()).await;
    rig.send("hi").await;
    rig.session.close().await.unwrap();
    for refused in [
        rig.session.send("no").unwrap_err(),
        rig.session.retry_turn().unwrap_err(),
        rig.session.compact().await.unwrap_err(),
    ] {
        assert_eq!(refused.code, ErrorCode::SessionNotFound);
        assert!(refused.message.contains("closed"), "{refused}");
    }
    assert!(!rig.session.cancel(None));
    assert_eq!(rig.session.info().state, SessionState::Closed);
    assert_eq!(rig.session.info().message_count, 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_only_opened_stores_nothing() {
    // D20, section 12
    let lines = Lines::default();
    let memories = InMemoryMemories::new();
    let mut rig = Rig::with(talkative(), config(), |builder| {
        builder.plugin(noting_ends(&lines)).memory_storage(memories)
    })
    .await;
    rig.session.close().await.unwrap();
    assert!(rig.storage.session_ids().is_empty());
    assert_eq!(lines.all(), ["ended with 0 messages"]);
    let config = SessionConfig {
        title: Some("A title".into()),
        ..SessionConfig::default()
    };
    rig.session = rig.agent.create_session(config).await.unwrap();
    rig.send("hi").await;
    rig.reopen().await;
    let (stored, asked) = (rig.stored(), rig.provider.request_count());
    for _ in 0..5 {
        rig.reopen().await;
    }
    assert_eq!(rig.stored(), stored);
    assert_eq!(
        rig.provider.request_count(),
        asked,
        "nothing is extracted from nothing new"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_that_cannot_store_says_what_is_lost_and_closes_all_the_same() {
    // 3.6: closing with a backlog.
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let rig = Rig::over(talkative(), config(), inner, storage, |builder| builder).await;
    faults.inject(
        SessionOperation::Append,
        When::From(2),
        Fault::Error("the disk is full".into()),
    );
    let events = rig.send("hi").await;
    assert_eq!(
        told(&events),
        [
            "started",
            "text 0: ok",
            "error STORAGE_ERROR",
            "completed: ok"
        ]
    );
    let failed = rig.session.close().await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::StorageError);
    assert!(failed.message.contains("1 event") && failed.message.contains("the disk is full"));
    assert_eq!(rig.session.close().await.unwrap_err(), failed, "said again");
    faults.heal();
    rig.anew().await.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_slot_is_free_while_memories_are_still_extracted() {
    // 6.2: then the slot is free, then extraction, which close awaits within its limit.
    let config = AgentConfig {
        memory_timeout_ms: 3_000,
        ..config()
    };
    let provider = provider().reply([text("ok"), done()]).reply([wait()]);
    let rig = Rig::with(provider, config, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("I like tea").await;
    let began = Instant::now();
    let closing = tokio::spawn({
        let session = rig.session.clone();
        async move { session.close().await }
    });
    rig.provider.asked(2).await;
    let session = rig
        .agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    assert!(!closing.is_finished());
    closing.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_millis() / 100, 30);
    assert_eq!(rig.provider.streams_open(), 0, "the request is dropped");
    Rig { session, ..rig }.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_dropped_frees_what_was_registered() {
    // Also with a session open: nothing in it holds on to itself.
    struct Witness(Arc<()>);

    #[async_trait::async_trait]
    impl youyou_agent::Plugin for Witness {
        fn id(&self) -> &str {
            assert!(Arc::strong_count(&self.0) > 0);
            "witness"
        }

        fn apply(
            &self,
            _hooks: &mut youyou_agent::HookRegistry,
        ) -> Result<(), youyou_agent::PluginError> {
            Ok(())
        }
    }

    let alive = Arc::new(());
    let rig = Rig::with(talkative(), config(), |builder| {
        builder.plugin(Witness(Arc::clone(&alive)))
    })
    .await;
    rig.send("hi").await;
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(rig);
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn messages_are_counted_alike_everywhere() {
    // Section 12: user and assistant messages, the same in the list and in SessionEnd.
    let lines = Lines::default();
    let provider = provider()
        .reply([text("look"), call("c1", "ro_echo", "{}"), done()])
        .reply([text("found"), done()])
        .reply([done()])
        .reply([text("part"), wait()])
        .reply([wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo"))
            .plugin(noting_ends(&lines))
    })
    .await;
    rig.send("with a tool").await;
    rig.send("answered with nothing").await;
    crate::told::cancel_at(rig.session.send("cut").unwrap(), "part").await;
    let turn = rig.session.send("cut before a word").unwrap();
    rig.provider.asked(5).await;
    assert!(turn.cancel());
    turn.outcome().await;
    // Four of the user; look, found and part of the model.
    assert_eq!(rig.session.info().message_count, 7);
    let listed = rig
        .agent
        .list_sessions(None, NonZeroUsize::new(10))
        .await
        .unwrap();
    assert_eq!(listed.sessions[0].message_count, 7);
    rig.session.close().await.unwrap();
    assert_eq!(lines.all(), ["ended with 7 messages"]);
    let session = rig
        .agent
        .resume_session(rig.session.id(), Default::default())
        .await
        .unwrap();
    assert_eq!(session.info().message_count, 7);
    Rig { session, ..rig }.epilogue().await;
}

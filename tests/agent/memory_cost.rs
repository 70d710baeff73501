//! What extractions cost counts in the session, also where they fail, and after a resume.

use youyou_agent::testing::{
    Fault, FaultyMemories, InMemoryMemories, MemoryOperation, ScriptedProvider, Step, When, done,
    done_with, text,
};
use youyou_agent::{
    AgentConfig, AgentEvent, AgentEventKind, MemoryStorage, SessionEvent, SessionMetadata, Usage,
};

use crate::clock::settle;
use crate::memory::extracting;
use crate::rig::{Rig, config};
use crate::said::stored_lines;

/// An answer about memories that cost 100 in and 10 out.
fn paid(answer: &'static str) -> ScriptedProvider {
    extracting(move || vec![text(answer), done_with(Usage::new(100, 10), None)])
}

const TEA: &str = r#"[{"content":"tea"}]"#;

async fn after_every_turn(provider: ScriptedProvider, memories: impl MemoryStorage) -> Rig {
    let settings = AgentConfig {
        memory_checkpoint_interval: 1,
        ..config()
    };
    Rig::with(provider, settings, |builder| {
        builder.memory_storage(memories)
    })
    .await
}

/// Input tokens of the turn and of the session, as the last event tells them.
fn told_cost(events: &[AgentEvent]) -> (Option<u64>, Option<u64>) {
    match &events.last().unwrap().kind {
        AgentEventKind::TurnComplete {
            usage,
            session_usage,
            ..
        } => (usage.input_tokens, session_usage.input_tokens),
        other => panic!("{other:?}"),
    }
}

/// The costs that the stored session tells of beside its answers.
fn stored_costs(events: &[SessionEvent]) -> Vec<(&'static str, Option<Usage>)> {
    let cost = |event| match SessionEvent::metadata(event)? {
        SessionMetadata::MemoryCheckpoint { usage, .. } => Some(("checkpoint", *usage)),
        SessionMetadata::Spent { usage } => Some(("spent", Some(*usage))),
        _ => None,
    };
    events.iter().filter_map(cost).collect()
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_costs_the_session_and_not_the_turn_after_it() {
    let mut rig = after_every_turn(paid(TEA), InMemoryMemories::new()).await;
    rig.send("one").await;
    settle().await;
    let events = rig.send("two").await;
    assert_eq!(told_cost(&events), (None, Some(100)));
    let cost = Some(Usage::new(100, 10));
    assert_eq!(stored_costs(&rig.stored()), [("checkpoint", cost)]);
    settle().await;
    rig.reopen().await;
    assert_eq!(
        stored_costs(&rig.stored()),
        [("checkpoint", cost), ("checkpoint", cost)]
    );
    let events = rig.send("three").await;
    assert_eq!(told_cost(&events), (None, Some(200)), "kept over a resume");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_extraction_that_fails_after_its_call_costs_the_session_too() {
    let mut rig = after_every_turn(paid("no list"), InMemoryMemories::new()).await;
    rig.send("one").await;
    settle().await;
    let events = rig.send("two").await;
    assert_eq!(told_cost(&events), (None, Some(100)));
    let cost = Some(Usage::new(100, 10));
    assert_eq!(stored_costs(&rig.stored()), [("spent", cost)]);
    rig.reopen().await;
    // The checkpoint after the second turn, and what the close tried: told together.
    let costs = stored_costs(&rig.stored());
    assert_eq!(costs[1..], [("spent", Some(Usage::new(200, 20)))]);
    let events = rig.send("three").await;
    assert_eq!(told_cost(&events), (None, Some(300)));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_extraction_whose_storage_fails_or_hangs_costs_the_session_too() {
    for fault in [Fault::Error("down".to_owned()), Fault::Hang] {
        let memories = FaultyMemories::new(InMemoryMemories::new());
        let faults = memories.faults().clone();
        faults.inject(MemoryOperation::Upsert, When::Always, fault);
        let mut rig = Rig::with(paid(TEA), config(), |builder| {
            builder.memory_storage(memories)
        })
        .await;
        rig.send("one").await;
        rig.reopen().await;
        assert_eq!(
            stored_lines(&rig.stored()),
            ["created: one", "user: one", "assistant: ok", "spent"]
        );
        let events = rig.send("two").await;
        assert_eq!(told_cost(&events), (None, Some(100)));
        faults.heal();
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cost_nothing_that_is_known_stores_no_cost() {
    let answers: [fn() -> Vec<Step>; 2] = [|| vec![text("no list"), done()], || vec![text("[")]];
    for answer in answers {
        let mut rig = after_every_turn(extracting(answer), InMemoryMemories::new()).await;
        rig.send("one").await;
        settle().await;
        rig.send("two").await;
        rig.reopen().await;
        assert_eq!(stored_costs(&rig.stored()), []);
        rig.epilogue().await;
    }
}

//! What waits for an extraction is limited: a model that always fails does not let it grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use youyou_agent::testing::{InMemoryMemories, ScriptedProvider, done, error, text};
use youyou_agent::{AgentConfig, ContentBlock, ProviderErrorKind};

use crate::clock::settle;
use crate::compaction_limits::picture;
use crate::histories::{STORED, marked, marked_turns, markers, storage_with};
use crate::memory::extractions;
use crate::rig::{Rig, config, provider_with_window};
use crate::said::all_said;

/// A megabyte, in tokens of four characters.
const MEGABYTE: usize = 250_000;

/// A provider with a window that holds everything, and what turns its failure on and off.
fn failing_for_now() -> (ScriptedProvider, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&broken);
    let extracts = |request: &youyou_agent::ChatRequest| {
        let first = request.system.first();
        first.is_some_and(|block| block.text.contains("worth remembering"))
    };
    let provider = provider_with_window(100_000_000)
        .intercept(move |request| {
            extracts(request).then(|| match fails.load(Ordering::SeqCst) {
                true => vec![error(ProviderErrorKind::Auth, "wrong key")],
                false => vec![text("[]"), done()],
            })
        })
        .always(|_| [text("ok"), done()]);
    (provider, broken)
}

fn after_every_turn() -> AgentConfig {
    AgentConfig {
        memory_checkpoint_interval: 1,
        ..config()
    }
}

/// The numbers of the marked messages that the last extraction covered.
fn covered(rig: &Rig) -> Vec<usize> {
    let last = extractions(&rig.provider).pop().unwrap();
    markers(&all_said(&last))
}

#[tokio::test(start_paused = true)]
async fn the_oldest_gives_way_when_extractions_fail_for_long() {
    let (provider, broken) = failing_for_now();
    let mut rig = Rig::with(provider, after_every_turn(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    for n in 1..=12 {
        rig.send(marked(n, MEGABYTE).as_str()).await;
        settle().await;
    }
    broken.store(false, Ordering::SeqCst);
    rig.reopen().await;
    assert_eq!(covered(&rig), [5, 6, 7, 8, 9, 10, 11, 12]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_process_left_is_limited_too() {
    let (provider, broken) = failing_for_now();
    broken.store(false, Ordering::SeqCst);
    let storage = storage_with(marked_turns(6, MEGABYTE));
    let mut rig = Rig::resumed(provider, config(), storage, STORED, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("M99. more").await;
    rig.reopen().await;
    assert_eq!(covered(&rig), [5, 6, 7, 8, 9, 10, 11, 12, 99]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn images_push_no_words_out() {
    let (provider, broken) = failing_for_now();
    let mut rig = Rig::with(provider, after_every_turn(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    for n in 1..=4 {
        let words = ContentBlock::text(format!("M{n}. look"));
        rig.send(vec![words, picture()]).await;
        settle().await;
    }
    broken.store(false, Ordering::SeqCst);
    rig.reopen().await;
    assert_eq!(covered(&rig), [1, 2, 3, 4]);
    let last = extractions(&rig.provider).pop().unwrap();
    assert_eq!(
        all_said(&last).matches("An image is left out here").count(),
        4
    );
    rig.epilogue().await;
}

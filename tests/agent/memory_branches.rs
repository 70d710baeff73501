//! Memories are extracted from the visible path alone: not from answers that were made again,
//! nor from branches that were left.

use youyou_agent::testing::{
    Gate, InMemoryMemories, assistant_message, done, error, gate, metadata, text, text_part,
    user_message,
};
use youyou_agent::{
    AgentConfig, ProviderErrorKind, SessionEvent, SessionEventKind, SessionMetadata,
};

use crate::clock::settle;
use crate::histories::{STORED, markers, storage_with};
use crate::memory::{answering, extracting, extractions};
use crate::rig::{Rig, config};
use crate::said::all_said;

fn steering(text: &str) -> SessionEvent {
    let mut event = user_message(0, text);
    if let SessionEventKind::UserMessage { steering, .. } = &mut event.kind {
        *steering = true;
    }
    event
}

fn covered(rig: &Rig) -> Vec<Vec<usize>> {
    let requests = extractions(&rig.provider);
    let numbers = requests.iter().map(|request| markers(&all_said(request)));
    numbers.collect()
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_is_extracted_along_its_visible_path_with_steering() {
    let said = |n: usize| assistant_message(0, [text_part(&format!("M{n}. answer"))]);
    let storage = storage_with([
        user_message(0, "M1. q"),
        said(2),
        user_message(0, "M3. left"),
        said(4),
        metadata(0, SessionMetadata::HeadMoved { to: Some(2) }),
        user_message(0, "M5. instead"),
        steering("M6. and this"),
        said(7),
    ]);
    let mut rig = Rig::resumed(answering("[]"), config(), storage, STORED, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("M8. more").await;
    rig.reopen().await;
    assert_eq!(covered(&rig), [[1, 2, 5, 6, 7, 8]]);
    rig.send("M9. more").await;
    rig.reopen().await;
    assert_eq!(covered(&rig)[1], [9]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_on_a_branch_that_was_left_counts_all_the_same() {
    let said = |n: usize| assistant_message(0, [text_part(&format!("M{n}. answer"))]);
    let checkpoint = SessionMetadata::MemoryCheckpoint {
        through: 4,
        usage: None,
    };
    let storage = storage_with([
        user_message(0, "M1. q"),
        said(2),
        user_message(0, "M3. left"),
        said(4),
        metadata(0, checkpoint),
        metadata(0, SessionMetadata::HeadMoved { to: Some(2) }),
        user_message(0, "M5. instead"),
        said(6),
    ]);
    let mut rig = Rig::resumed(answering("[]"), config(), storage, STORED, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("M7. more").await;
    rig.reopen().await;
    assert_eq!(covered(&rig), [[5, 6, 7]]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_checkpoint_gives_back_leaves_out_an_answer_that_was_made_again_meanwhile() {
    let door = Gate::closed();
    let behind = door.clone();
    let provider = extracting(move || {
        let failure = error(ProviderErrorKind::Auth, "wrong key");
        vec![gate(&behind), failure]
    });
    let settings = AgentConfig {
        memory_checkpoint_interval: 2,
        ..config()
    };
    let mut rig = Rig::with(provider, settings, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("M1. q").await;
    rig.provider
        .queue([text("M2. cut"), error(ProviderErrorKind::Auth, "wrong key")]);
    rig.send("M3. q").await;
    rig.provider.queue([text("M4. whole"), done()]);
    rig.session.retry_turn().unwrap().outcome().await;
    door.open();
    settle().await;
    rig.reopen().await;
    assert_eq!(covered(&rig), [vec![1, 3, 2], vec![1, 3, 4]]);
    rig.epilogue().await;
}

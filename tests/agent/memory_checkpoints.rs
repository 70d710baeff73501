//! What an extraction covers, and what runs after a resume where one is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use youyou_agent::testing::{Gate, InMemoryMemories, done, error, gate, memory, text};
use youyou_agent::{
    AgentConfig, ChatRequest, ProviderErrorKind, ResumeOptions, SessionEvent, SessionEventKind,
    SessionMetadata,
};

use crate::histories::{STORED, marked_turns, storage_with};
use crate::memory::{answering, extracting, extractions, remembering};
use crate::rig::{Rig, config};
use crate::said::{all_said, stored_lines};

/// A checkpoint after every second turn.
fn every_second_turn() -> AgentConfig {
    AgentConfig {
        memory_checkpoint_interval: 2,
        ..config()
    }
}

/// What another process finds of a session whose own just ended.
async fn in_next_process(rig: Rig) -> Rig {
    let id = rig.session.id().to_owned();
    let register =
        |builder: youyou_agent::AgentBuilder| builder.memory_storage(InMemoryMemories::new());
    Rig::resumed(
        answering("[]"),
        every_second_turn(),
        rig.storage,
        &id,
        register,
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn each_extraction_covers_only_what_came_after_the_last() {
    let memories = InMemoryMemories::new();
    memories.preload([memory("m1", "", "remembered word1")]);
    let skill = youyou_agent::SkillDefinition {
        name: "poem".to_owned(),
        display_name: "Poem".to_owned(),
        description: "Writes.".to_owned(),
        prompt: "SKILLTEXT".to_owned(),
        required_tools: Vec::new(),
        allow_implicit_invocation: false,
    };
    let mut rig = Rig::with(answering("[]"), every_second_turn(), |builder| {
        builder.memory_storage(memories).skill(skill)
    })
    .await;
    for n in 1..=5 {
        rig.send(format!("/poem word{n}").as_str()).await;
        // Lets the checkpoint in the background go its way.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(extracted(&rig), [vec![1, 2], vec![3, 4]]);
    rig.reopen().await;
    assert_eq!(extracted(&rig), [vec![1, 2], vec![3, 4], vec![5]]);
    for _ in 0..3 {
        rig.reopen().await;
    }
    assert_eq!(extractions(&rig.provider).len(), 3, "nothing new, no call");
    rig.send("word6").await;
    rig.reopen().await;
    assert_eq!(extracted(&rig)[3], [6]);
    rig.epilogue().await;
}

/// Which of the words `word1` to `word9` each extraction covered.
fn extracted(rig: &Rig) -> Vec<Vec<usize>> {
    let words = |request: &ChatRequest| {
        let said = all_said(request);
        let transcript = said.split_once("<transcript>").unwrap().1;
        assert!(!transcript.contains("SKILLTEXT"), "no skill texts");
        assert!(!transcript.contains("remembered"), "no injected memories");
        (1..=9)
            .filter(|n| transcript.contains(&format!("word{n}")))
            .collect()
    };
    let requests = extractions(&rig.provider);
    requests.iter().map(|request| words(request)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_checkpoint_could_not_extract_is_in_the_next_extraction() {
    let memories = InMemoryMemories::new();
    let broken = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&broken);
    let provider = extracting(move || match fails.load(Ordering::SeqCst) {
        true => vec![error(ProviderErrorKind::Auth, "wrong key")],
        false => vec![text(r#"[{"content":"x"}]"#), done()],
    });
    let mut rig = Rig::with(provider, every_second_turn(), |builder| {
        builder.memory_storage(memories.clone())
    })
    .await;
    let say = async |rig: &Rig, n: usize| {
        rig.send(format!("word{n}").as_str()).await;
        // Lets the checkpoint in the background go its way.
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    for n in 1..=3 {
        say(&rig, n).await;
    }
    broken.store(false, Ordering::SeqCst);
    say(&rig, 4).await;
    assert_eq!(extracted(&rig), [vec![1, 2], vec![1, 2, 3, 4]]);
    broken.store(true, Ordering::SeqCst);
    for n in 5..=6 {
        say(&rig, n).await;
    }
    broken.store(false, Ordering::SeqCst);
    rig.reopen().await;
    assert_eq!(extracted(&rig)[2..], [vec![5, 6], vec![5, 6]]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_a_crash_cut_off_runs_after_a_resume() {
    let door = Gate::closed();
    let behind = door.clone();
    let hanging = extracting(move || vec![gate(&behind), text("[]"), done()]);
    let rig = Rig::with(hanging, every_second_turn(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    for n in 1..=3 {
        rig.send(format!("word{n}").as_str()).await;
    }
    assert_eq!(extracted(&rig), [vec![1, 2]], "it is under way");
    let lines = stored_lines(&rig.stored());
    assert!(
        !lines.contains(&"memory checkpoint".to_owned()),
        "{lines:?}"
    );
    // The process ends here: another one finds what is stored.
    let mut next = in_next_process(rig).await;
    next.send("word4").await;
    next.reopen().await;
    assert_eq!(extracted(&next), [vec![1, 2, 3, 4]]);
    next.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_says_what_it_covers_however_late_it_ends() {
    let door = Gate::closed();
    let behind = door.clone();
    let slow = extracting(move || vec![gate(&behind), text("[]"), done()]);
    let rig = Rig::with(slow, every_second_turn(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    for n in 1..=3 {
        rig.send(format!("word{n}").as_str()).await;
    }
    door.open();
    tokio::time::sleep(Duration::from_millis(1)).await;
    rig.send("word4").await;
    let is_checkpoint = |event: &SessionEvent| match &event.kind {
        SessionEventKind::Metadata {
            metadata: SessionMetadata::MemoryCheckpoint { through, .. },
        } => Some(*through),
        _ => None,
    };
    let through: Vec<u64> = rig.stored().iter().filter_map(is_checkpoint).collect();
    assert_eq!(through, [4], "two questions and two answers");
    // The process ends here, in the middle of the next checkpoint or before it.
    let mut next = in_next_process(rig).await;
    next.send("word5").await;
    next.reopen().await;
    assert_eq!(extracted(&next), [vec![3, 4, 5]]);
    next.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_close_could_not_extract_is_extracted_after_a_resume() {
    let broken = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&broken);
    let provider = extracting(move || match fails.load(Ordering::SeqCst) {
        true => vec![error(ProviderErrorKind::Auth, "wrong key")],
        false => vec![text("[]"), done()],
    });
    let mut rig = remembering(provider, InMemoryMemories::new()).await;
    rig.send("word1").await;
    rig.reopen().await;
    broken.store(false, Ordering::SeqCst);
    rig.send("word2").await;
    rig.reopen().await;
    assert_eq!(extracted(&rig), [vec![1], vec![1, 2]]);
    rig.send("word3").await;
    rig.reopen().await;
    assert_eq!(extracted(&rig)[2..], [vec![3]]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_extraction_notes_nothing_in_a_session_that_goes_on_or_is_gone() {
    // D13
    for deleted in [false, true] {
        let door = Gate::closed();
        let behind = door.clone();
        let provider = extracting(move || vec![gate(&behind), text("[]"), done()]);
        let rig = remembering(provider, InMemoryMemories::new()).await;
        rig.send("word1").await;
        let id = rig.session.id().to_owned();
        let closing = tokio::spawn({
            let session = rig.session.clone();
            async move { session.close().await }
        });
        rig.provider.asked(2).await;
        if deleted {
            rig.agent.delete_session(&id).await.unwrap();
            door.open();
            closing.await.unwrap().unwrap();
            assert_eq!(rig.storage.session_ids(), Vec::<String>::new());
            continue;
        }
        let session = rig
            .agent
            .resume_session(&id, ResumeOptions::default())
            .await
            .unwrap();
        session.send("word2").unwrap().outcome().await;
        door.open();
        closing.await.unwrap().unwrap();
        let lines = stored_lines(&rig.stored());
        assert_eq!(lines[3..], ["user: word2", "assistant: ok"], "{lines:?}");
        Rig { session, ..rig }.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_process_left_behind_is_extracted_with_the_next_message() {
    let provider = answering("[]");
    let storage = storage_with(marked_turns(2, 10));
    let mut rig = Rig::resumed(provider, config(), storage, STORED, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.reopen().await;
    assert_eq!(extractions(&rig.provider).len(), 0);
    rig.send("M99. more").await;
    rig.reopen().await;
    let read = all_said(&extractions(&rig.provider)[0]);
    assert_eq!(crate::histories::markers(&read), [1, 2, 3, 4, 99]);
    rig.epilogue().await;
}

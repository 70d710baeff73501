//! Requirements 5.2 and 12: records of elsewhere and records that cannot be read.

use std::num::NonZeroUsize;

use serde_json::json;
use youyou_agent::testing::{
    InMemorySessions, assistant_message, call_part, done, metadata, session_created, text,
    text_part, tool_result_stored, user_message,
};
use youyou_agent::{
    AgentBuilder, CompactionMethod, CompactionRecord, ErrorCode, ResumeOptions, SessionEvent,
    SessionMetadata, UserOrigin,
};

use crate::histories::{STORED, storage_with};
use crate::look::user_side;
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};

async fn resumed(storage: InMemorySessions) -> Rig {
    let provider = provider().always(|_| [text("ok"), done()]);
    Rig::resumed(provider, config(), storage, STORED, |builder| builder).await
}

#[tokio::test(start_paused = true)]
async fn calls_of_elsewhere_go_out_with_names_and_ids_that_every_provider_takes() {
    // C28
    let long = "n".repeat(300);
    let names = ["fs.read", "a b", long.as_str(), "", "工具", "fine_name-1"];
    let parts = names
        .iter()
        .enumerate()
        .map(|(n, name)| call_part(if n == 0 { " " } else { "c" }, name, json!({ "n": n })));
    let mut parts: Vec<_> = parts.collect();
    parts.push(call_part("c", "listed", json!([1])));
    let history = vec![user_message(0, "q"), assistant_message(0, parts)];
    let rig = resumed(storage_with(history)).await;
    rig.send("next").await;
    let request = rig.request(1);
    let calls = crate::look::calls(&request);
    let ids: std::collections::HashSet<&String> = calls.iter().map(|(id, _)| id).collect();
    assert_eq!((calls.len(), ids.len()), (7, 7));
    assert!(ids.iter().all(|id| !id.trim().is_empty()));
    assert!(calls.iter().all(|(_, arguments)| arguments.is_object()));
    let line = &said(&request)[1];
    let legal = format!(
        "assistant: <call_2 fs_read> <c a_b> <c_2 {}> <c_3 unknown_tool> <c_4 __> <c_5 fine_name-1> <c_6 listed>",
        "n".repeat(64)
    );
    assert_eq!(*line, legal);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_stored_compaction_with_a_blank_summary_makes_a_valid_request() {
    // C28
    for summary in [Some(" \n".to_owned()), Some(String::new()), None] {
        let record = SessionMetadata::Compacted(CompactionRecord {
            method: CompactionMethod::Summarized,
            summary: summary.clone(),
            boundary: 3,
            pinned: None,
            shortened: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
            usage: None,
        });
        let history = vec![
            user_message(0, "old"),
            assistant_message(0, [text_part("gone")]),
            assistant_message(0, [text_part("kept")]),
            metadata(0, record),
        ];
        let rig = resumed(storage_with(history)).await;
        rig.send("next").await;
        let lines = said(&rig.request(1));
        assert_eq!(lines[1..], ["assistant: kept", "user: next"], "{summary:?}");
        let standing = user_side(&rig.request(1), UserOrigin::Summary);
        assert!(!standing.concat().trim().is_empty());
        rig.epilogue().await;
    }
}

fn hundred() -> InMemorySessions {
    let mut events: Vec<SessionEvent> = vec![session_created(0, "A title", "m1")];
    events.extend((1..100).map(|index| user_message(index, &format!("message {index}"))));
    let storage = InMemorySessions::new();
    storage.preload(STORED, events);
    storage
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_ends_no_page() {
    // ST3
    for damaged in [
        vec![3],
        vec![9],
        vec![10],
        vec![0],
        vec![99],
        (20..45).collect(),
    ] {
        let storage = hundred();
        for index in &damaged {
            assert!(storage.corrupt(STORED, *index));
        }
        let agent = AgentBuilder::new(config())
            .provider(provider())
            .session_storage(storage)
            .build()
            .await
            .unwrap();
        let (mut read, mut left_out, mut cursor) = (Vec::new(), 0, None);
        for page_number in 1..=10 {
            let page = agent
                .session_history(STORED, cursor, NonZeroUsize::new(10))
                .await
                .unwrap();
            read.extend(page.events.iter().map(|event| event.index));
            left_out += page.unreadable;
            cursor = page.next_cursor;
            assert_eq!(cursor.is_some(), page_number < 10, "page {page_number}");
        }
        let expected: Vec<u64> = (0..100).filter(|index| !damaged.contains(index)).collect();
        assert_eq!((read, left_out as usize), (expected, damaged.len()));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_over_a_last_record_that_cannot_be_read() {
    // ST4
    for damaged in [vec![99], vec![97, 98, 99]] {
        let storage = hundred();
        for index in &damaged {
            assert!(storage.corrupt(STORED, *index));
        }
        let rig = resumed(storage).await;
        rig.send("next").await;
        let stored = rig.stored();
        let next = stored
            .iter()
            .find(|event| event.index > 96 && event.is_user_message());
        let first_new = stored.iter().find(|event| event.index >= 100).unwrap();
        assert_eq!(first_new.index, 100, "{:?}", next.map(|event| event.index));
        assert!(stored_lines(&stored).contains(&"user: next".to_owned()));
        let log = youyou_agent::SessionStorage::load(&rig.storage, STORED).await;
        assert_eq!(log.unwrap().unwrap().unreadable as usize, damaged.len());
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_with_none_behind_it_is_told() {
    // X13
    for index in [u64::MAX, u64::MAX - 1, 1 << 53] {
        let storage = InMemorySessions::new();
        storage.preload(
            STORED,
            [
                session_created(0, "A title", "m1"),
                user_message(1, "q"),
                tool_result_stored(index, "c1", "t", "out"),
            ],
        );
        let agent = AgentBuilder::new(config())
            .provider(provider())
            .session_storage(storage)
            .build()
            .await
            .unwrap();
        let refused = agent.resume_session(STORED, ResumeOptions::default()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::StorageError);
        assert!(refused.message.contains("index"), "{}", refused.message);
        assert!(agent.current_session().is_none());
    }
}

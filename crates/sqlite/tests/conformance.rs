//! The storages keep every rule of their traits.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::num::NonZeroUsize;
use std::sync::Mutex;

use rusqlite::Connection;
use tempfile::TempDir;
use youyou_agent::testing::{
    at, memory_storage_conformance, session_created, session_storage_conformance,
    session_storage_durability, session_storage_skips_unreadable, session_storage_two_writers,
    user_message,
};
use youyou_agent::{HeadMove, PageRequest, SessionEvent, SessionMetadata, SessionStorage as _};
use youyou_agent_sqlite::Sqlite;

fn fresh() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::open(folder.path().join("app.db")).unwrap();
    (folder, db)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_every_rule() {
    let folders = Mutex::new(Vec::new());
    session_storage_conformance(async || {
        let (folder, db) = fresh();
        folders.lock().unwrap().push(folder);
        db.sessions()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_outlive_the_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("app.db");
    session_storage_durability(async || Sqlite::open(&path).unwrap().sessions()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_objects_over_one_file_never_replace_what_the_other_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    session_storage_two_writers(async || Sqlite::open(&path).unwrap().sessions()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_keep_every_rule() {
    let folders = Mutex::new(Vec::new());
    memory_storage_conformance(async || {
        let (folder, db) = fresh();
        folders.lock().unwrap().push(folder);
        db.memories()
    })
    .await;
}

// D19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_and_unknown_records_are_left_out_counted_and_never_written_over() {
    let spoilers = [
        "x'0000000000'",
        "'{\"index\":' || position || ',\"timestamp\":2,\"turnId\":\"\",\"type\":\"fromTheFuture\"}'",
        "substr(body, 1, 20)",
        "x'e4bda0e5'",
        "'[]'",
        "7",
        // The event of another place.
        "replace(body, '\"index\":', '\"index\":9')",
    ];
    for body in spoilers {
        let (folder, db) = fresh();
        let sessions = db.sessions();
        session_storage_skips_unreadable(&sessions, async |session_id, index| {
            let other = Connection::open(folder.path().join("app.db")).unwrap();
            let sql = format!(
                "UPDATE events SET body = {body} WHERE position = {index}
                 AND session_key = (SELECT key FROM sessions WHERE session_id = '{session_id}')"
            );
            assert_eq!(other.execute(&sql, []).unwrap(), 1);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_messages_come_page_by_page_and_a_head_move_is_found_among_them() {
    let (_folder, db) = fresh();
    let sessions = db.sessions();
    let text = "Two hundred characters of what people say. ".repeat(5);
    let mut events = vec![session_created(0, "long", "m1")];
    events.extend((1..=10_000).map(|index| at(index, user_message(index, &text))));
    let moved = SessionMetadata::HeadMoved { to: Some(7) };
    events.push(youyou_agent::testing::metadata(10_001, moved));
    sessions.append("long", &events).await.unwrap();

    let mut read: Vec<SessionEvent> = Vec::new();
    let mut from = Some(0);
    let mut pages = 0;
    while let Some(start) = from {
        let request = PageRequest::new(start, NonZeroUsize::new(100).unwrap());
        let page = sessions.load_page("long", request).await.unwrap().unwrap();
        read.extend(page.events);
        from = page.next;
        pages += 1;
    }
    assert_eq!((pages, &read), (101, &events));
    let log = sessions.load("long").await.unwrap().unwrap();
    assert_eq!(log.events, events);
    let moves = sessions.head_moves("long").await.unwrap();
    let expected = HeadMove {
        index: 10_001,
        to: Some(7),
    };
    assert_eq!(moves, [expected]);
    let row = sessions.summary("long").await.unwrap().unwrap();
    assert_eq!((row.message_count, row.updated_at), (10_000, 10_001));
}

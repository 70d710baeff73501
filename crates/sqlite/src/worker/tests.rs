//! The queue of calls, and what the file answers when it cannot be written.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use rusqlite::Connection;
use youyou_agent::SessionStorage as _;
use youyou_agent::testing::user_message;

use super::QUEUE;
use crate::Sqlite;
use crate::failure::Failure;

#[tokio::test]
async fn a_full_disk_says_so_keeps_what_was_there_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let sessions = database.sessions();
    sessions
        .append("s1", &[user_message(0, "kept")])
        .await
        .unwrap();
    let limit = async |pages: u32| {
        let set = move |connection: &mut Connection| {
            Ok(connection.pragma_update(None, "max_page_count", pages)?)
        };
        database.main.run(set).await.unwrap();
    };
    limit(1).await;
    let large = user_message(1, &"x".repeat(1_000_000));
    let batch = [user_message(2, "small"), large];
    let error = sessions.append("s1", &batch).await.unwrap_err();
    assert_eq!(
        error.message,
        "the disk is full; free some space and try again"
    );
    assert_eq!(sessions.load("s1").await.unwrap().unwrap().events.len(), 1);
    limit(1_000_000).await;
    sessions.append("s1", &batch).await.unwrap();
    assert_eq!(sessions.load("s1").await.unwrap().unwrap().events.len(), 3);
}

#[tokio::test]
async fn a_file_held_by_another_program_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let database = Sqlite::open(&path).unwrap();
    let quick = |connection: &mut Connection| Ok(connection.busy_timeout(Duration::ZERO)?);
    database.main.run(quick).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sessions = database.sessions();
    let error = sessions
        .append("s1", &[user_message(0, "a")])
        .await
        .unwrap_err();
    assert!(error.message.contains("another program"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    sessions
        .append("s1", &[user_message(0, "a")])
        .await
        .unwrap();
}

/// A call that keeps the connection until the answer is dropped.
fn hold(database: &Sqlite) -> std::sync::mpsc::Sender<()> {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let wait = move |_: &mut Connection| {
        let _ = held.recv();
        Ok(())
    };
    // Taking its place needs one poll; nobody waits for its answer.
    assert!(database.main.run(wait).now_or_never().is_none());
    release
}

#[tokio::test]
async fn calls_take_effect_in_the_order_they_were_made_also_when_the_queue_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let note = |number: usize| {
        let done = Arc::clone(&done);
        database.main.run(move |_| {
            done.lock().unwrap().push(number);
            Ok(())
        })
    };
    let release = hold(&database);
    let mut calls = Vec::new();
    for number in 0..QUEUE * 3 {
        let mut call = Box::pin(note(number));
        assert!((&mut call).now_or_never().is_none());
        calls.push(call);
    }
    drop(release);
    for call in calls {
        call.await.unwrap();
    }
    let expected: Vec<usize> = (0..QUEUE * 3).collect();
    assert_eq!(*done.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_late_write_never_overwrites_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let sessions = database.sessions();
    // Each round leaves a write behind that nobody waits for, then writes the same place again.
    for round in 0..50 {
        let release = hold(&database);
        for n in 0..3 {
            let late = [user_message(0, &format!("late {round} {n}"))];
            assert!(sessions.append("s", &late).now_or_never().is_none());
        }
        let newer = [user_message(0, &format!("newer {round}"))];
        let mut write = sessions.append("s", &newer);
        assert!((&mut write).now_or_never().is_none());
        drop(release);
        write.await.unwrap();
        let log = sessions.load("s").await.unwrap().unwrap();
        assert_eq!(log.events, newer);
    }
}

#[tokio::test]
async fn a_panic_costs_its_own_call_only_and_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let sessions = database.sessions();
    let broken = database.main.run(|connection| -> Result<(), Failure> {
        let transaction = connection.transaction()?;
        let insert = "INSERT INTO sessions (session_id, created_at, updated_at) VALUES ('s', 1, 1)";
        transaction.execute(insert, [])?;
        std::panic::panic_any("a fault of the storage");
    });
    assert!(broken.await.unwrap_err().message.contains("interrupted"));
    assert_eq!(sessions.load("s").await.unwrap(), None);
    sessions
        .append("s", &[user_message(0, "goes on")])
        .await
        .unwrap();
}

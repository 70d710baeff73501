//! Several real processes on one file. The test starts itself again as each of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use youyou_agent::testing::user_message;
use youyou_agent::{ContentBlock, SessionEventKind, SessionStorage as _, StorageErrorKind};
use youyou_agent_sqlite::Sqlite;

const ROLE: &str = "YOUYOU_SQLITE_ROLE";
const FILE: &str = "YOUYOU_SQLITE_FILE";
/// How many messages each process writes.
const MESSAGES: usize = 40;

/// Starts this test program again, with nothing but the test of this name, in a role.
fn start(test: &str, role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FILE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The role of this process and its file, where it was started by a test.
fn role() -> Option<(String, Sqlite)> {
    let role = std::env::var(ROLE).ok()?;
    Some((role, Sqlite::open(std::env::var_os(FILE)?).unwrap()))
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").unwrap();
    out.flush().unwrap();
}

/// The next thing a process says.
fn hear(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Option<String> {
    lines.find_map(|line| Some(line.unwrap().split_once("said: ")?.1.to_owned()))
}

/// Writes messages to one session, each behind what is there, as an agent does that is told to
/// resume after a conflict. Returns how often it was.
async fn talk(db: &Sqlite, name: &str) -> usize {
    let sessions = db.sessions();
    let mut conflicts = 0;
    for number in 0..MESSAGES {
        loop {
            let log = sessions.load("shared").await.unwrap().unwrap_or_default();
            let index = log.last_index.map_or(0, |last| last + 1);
            let message = user_message(index, &format!("{name} {number}"));
            match sessions.append("shared", &[message]).await {
                Ok(()) => break,
                Err(error) => {
                    assert_eq!(error.kind, StorageErrorKind::Conflict, "{error}");
                    conflicts += 1;
                }
            }
        }
    }
    conflicts
}

#[tokio::test]
async fn processes_that_write_to_one_session_lose_nothing_of_each_other() {
    if let Some((name, db)) = role() {
        talk(&db, &name).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // None of them finds a file: they also make it at the same time.
    let path = folder.path().join("app.db");
    let test = "processes_that_write_to_one_session_lose_nothing_of_each_other";
    let children = ["a", "b", "c"].map(|name| start(test, name, &path));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let db = Sqlite::open(&path).unwrap();
    let log = db.sessions().load("shared").await.unwrap().unwrap();
    let said: BTreeSet<String> = log
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            SessionEventKind::UserMessage { content, .. } => match content.first()? {
                ContentBlock::Text { text } => Some(text.clone()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let expected: BTreeSet<String> = ["a", "b", "c"]
        .iter()
        .flat_map(|name| (0..MESSAGES).map(move |number| format!("{name} {number}")))
        .collect();
    assert_eq!(said, expected);
    assert_eq!((log.events.len(), log.unreadable), (3 * MESSAGES, 0));
    let row = db.sessions().summary("shared").await.unwrap().unwrap();
    assert_eq!(row.message_count as usize, 3 * MESSAGES);
    db.check().await.unwrap();
}

#[tokio::test]
async fn a_killed_process_loses_nothing_of_what_it_was_told_is_written() {
    if let Some((_, db)) = role() {
        for index in 0.. {
            db.sessions()
                .append("s1", &[user_message(index, "text")])
                .await
                .unwrap();
            say(&index.to_string());
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let test = "a_killed_process_loses_nothing_of_what_it_was_told_is_written";
    let mut child = start(test, "writer", &path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = 0;
    for _ in 0..25 {
        last = hear(&mut lines).unwrap().parse().unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while let Some(line) = hear(&mut lines) {
        last = line.parse().unwrap();
    }
    let db = Sqlite::open(&path).unwrap();
    let log = db.sessions().load("s1").await.unwrap().unwrap();
    assert!(
        log.last_index >= Some(last),
        "{:?} < {last}",
        log.last_index
    );
    assert_eq!(Some(log.events.len() as u64 - 1), log.last_index);
    db.check().await.unwrap();
}

#[test]
fn processes_that_open_a_file_of_the_first_version_at_once_upgrade_it_once() {
    if role().is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    std::fs::write(&path, include_bytes!("fixtures/version-1.sqlite")).unwrap();
    let test = "processes_that_open_a_file_of_the_first_version_at_once_upgrade_it_once";
    let children = ["a", "b", "c", "d"].map(|name| start(test, name, &path));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    Sqlite::open(&path).unwrap();
}

//! The file: upgraded, refused, copied, checked.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use rusqlite::Connection;
use youyou_agent::testing::{ScriptedProvider, at, done, text, text_model, user_message};
use youyou_agent::{
    AgentBuilder, AgentConfig, MemoryStorage as _, ResumeOptions, SessionStorage as _,
    SessionSummary,
};
use youyou_agent_sqlite::Sqlite;

/// Written by the first version, before it was a crate.
const VERSION_1: &[u8] = include_bytes!("fixtures/version-1.sqlite");

fn pragma(path: &Path, name: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .unwrap()
}

fn refusal(path: &Path) -> String {
    Sqlite::open(path).unwrap_err().message
}

#[tokio::test]
async fn a_file_of_the_first_version_is_upgraded_with_everything_in_it_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    fs::write(&path, VERSION_1).unwrap();
    assert_eq!(pragma(&path, "user_version"), 1);
    let db = Sqlite::open(&path).unwrap();
    assert_eq!(pragma(&path, "user_version"), 2);

    let sessions = db.sessions();
    let page = sessions.list(None, NonZeroUsize::MAX).await.unwrap();
    let row = |id: &str, title: &str, created: u64, updated: u64, count: u32| {
        let start = 1_700_000_000_000;
        SessionSummary::new(id, title, start + created, start + updated, count)
    };
    let expected = [
        row("login", "登录", 10_000, 11_000, 2),
        row("trip", "Plan a trip", 0, 3_000, 3),
    ];
    assert_eq!(page.sessions, expected);
    assert!(sessions.load("empty").await.unwrap().is_some());
    let log = sessions.load("trip").await.unwrap().unwrap();
    let last = (log.events.len(), log.unreadable, log.last_index);
    assert_eq!(last, (7, 0, Some(6)));

    let hits = db.search_messages("platform", 5).await.unwrap();
    assert_eq!(hits.first().unwrap().index, 5);
    let hits = db.search_messages("登录页面", 5).await.unwrap();
    assert_eq!(hits.first().unwrap().session_id, "login");
    let memories = db.memories();
    assert_eq!(memories.load("user").await.unwrap().len(), 3);
    let found = memories
        .search("user", "我的猫叫什么", NonZeroUsize::MIN)
        .await
        .unwrap();
    assert_eq!(found.first().unwrap().id, "memory-1");

    // Nobody replaces what the first version wrote.
    let over = sessions.append("trip", &[user_message(6, "over")]).await;
    assert!(over.is_err());

    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m1"))
        .reply([text("You asked for the train."), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(provider)
        .session_storage(db.sessions())
        .build()
        .await
        .unwrap();
    let session = agent
        .resume_session("trip", ResumeOptions::default())
        .await
        .unwrap();
    session.send("What did I ask?").unwrap().outcome().await;
    session.close().await.unwrap();
    let log = sessions.load("trip").await.unwrap().unwrap();
    assert_eq!((log.events.len(), log.last_index), (9, Some(8)));
    db.check().await.unwrap();
}

#[test]
fn a_file_of_a_later_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    drop(Sqlite::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let message = refusal(&path);
    assert!(
        message.contains("later version") && message.contains("app.db"),
        "{message}"
    );
    assert_eq!(pragma(&path, "user_version"), 99);
}

#[test]
fn files_of_other_programs_and_broken_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = |name: &str, version: u32| {
        let path = folder.path().join(name);
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!(
                "CREATE TABLE theirs (x); PRAGMA user_version = {version}"
            ))
            .unwrap();
        path
    };
    for path in [foreign("a.db", 0), foreign("b.db", 1), foreign("c.db", 2)] {
        let before = fs::read(&path).unwrap();
        let message = refusal(&path);
        assert!(message.contains("another program"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    let text = folder.path().join("notes.txt");
    fs::write(
        &text,
        "no database at all, but long enough to have a header".repeat(9),
    )
    .unwrap();
    // The header is whole, the rest is not.
    let cut = folder.path().join("cut.db");
    fs::write(&cut, &VERSION_1[..4096 + 100]).unwrap();
    let scrambled = folder.path().join("scrambled.db");
    let mut bytes = VERSION_1.to_vec();
    bytes[100..4096].fill(0xA5);
    fs::write(&scrambled, bytes).unwrap();
    for path in [text, cut, scrambled] {
        let before = fs::read(&path).unwrap();
        let message = refusal(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            message.contains("damaged") && message.contains(name),
            "{message}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    let message = refusal(folder.path());
    assert!(message.contains("cannot be"), "{message}");
}

#[tokio::test]
async fn damage_inside_a_file_is_an_error_of_the_call_and_found_by_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = Sqlite::open(&path).unwrap();
    for index in 0..200 {
        let event = at(index, user_message(index, &"text ".repeat(200)));
        db.sessions().append("s1", &[event]).await.unwrap();
    }
    db.check().await.unwrap();
    let copy = folder.path().join("copy.db");
    db.backup(&copy).await.unwrap();
    let mut bytes = fs::read(&copy).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0x5A);
    fs::write(&copy, bytes).unwrap();
    let damaged = Sqlite::open(&copy).unwrap();
    let message = damaged.check().await.unwrap_err().message;
    assert!(message.contains("damaged"), "{message}");
}

#[tokio::test]
async fn a_backup_holds_everything_of_its_moment_and_opens_as_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    fs::write(&path, VERSION_1).unwrap();
    let db = Sqlite::open(&path).unwrap();
    let to = folder.path().join("deep").join("backup.db");
    db.backup(&to).await.unwrap();
    let first = fs::read(&to).unwrap();
    db.sessions()
        .append("trip", &[user_message(7, "after the backup")])
        .await
        .unwrap();

    let copy = Sqlite::open(&to).unwrap();
    copy.check().await.unwrap();
    let log = copy.sessions().load("trip").await.unwrap().unwrap();
    assert_eq!(log.last_index, Some(6));
    assert_eq!(copy.memories().load("user").await.unwrap().len(), 3);
    assert_eq!(copy.search_messages("platform", 5).await.unwrap().len(), 1);
    drop(copy);

    // Again, over the first; what a backup that was cut left is no hindrance.
    let partial = folder.path().join("deep").join("backup.db.partial");
    fs::write(&partial, "cut").unwrap();
    let second = folder.path().join("deep").join("second.db");
    db.backup(&second).await.unwrap();
    db.backup(&second).await.unwrap();
    assert_ne!(fs::read(&second).unwrap(), first);

    // Where it cannot be written, and over itself.
    let message = db.backup(&path).await.unwrap_err().message;
    assert!(message.contains("the database itself"), "{message}");
    assert!(db.backup(folder.path()).await.is_err());
    // The database still takes writes, and searches still cannot write.
    db.sessions()
        .append("trip", &[user_message(8, "goes on")])
        .await
        .unwrap();
    assert_eq!(db.search_messages("goes", 5).await.unwrap().len(), 1);
}

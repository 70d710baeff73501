//! Several real processes on one database. The test starts itself again as each of them.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use youyou_agent::testing::user_message;
use youyou_agent::{ContentBlock, SessionEventKind, SessionStorage as _, StorageErrorKind};
use youyou_agent_postgres::{Postgres, PostgresOptions};

use crate::{fresh_schema, open, shared};

const ROLE: &str = "YOUYOU_POSTGRES_ROLE";
const DATABASE: &str = "YOUYOU_POSTGRES_DATABASE";
const SCHEMA: &str = "YOUYOU_POSTGRES_SCHEMA";
/// How many messages each process writes.
const MESSAGES: usize = 40;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Writes messages to one session, each behind what is there, as an agent does that is told to
/// resume after a conflict.
async fn talk(db: &Postgres, name: &str) {
    let sessions = db.sessions();
    for number in 0..MESSAGES {
        loop {
            let log = sessions.load("shared").await.unwrap().unwrap_or_default();
            let index = log.last_index.map_or(0, |last| last + 1);
            let message = user_message(index, &format!("{name} {number}"));
            match sessions.append("shared", &[message]).await {
                Ok(()) => break,
                Err(error) => assert_eq!(error.kind, StorageErrorKind::Conflict, "{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_write_to_one_session_lose_nothing_of_each_other() {
    if let Ok(name) = std::env::var(ROLE) {
        let schema = std::env::var(SCHEMA).unwrap();
        let options = PostgresOptions::new(std::env::var(DATABASE).unwrap()).schema(schema);
        talk(&options.connect().await.unwrap(), &name).await;
        return;
    }
    let Some(server) = shared() else { return };
    // None of them finds a schema: they also make it at the same time.
    let schema = fresh_schema();
    let test = "processes::processes_that_write_to_one_session_lose_nothing_of_each_other";
    let children = NAMES.map(|name| {
        Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact"])
            .env(ROLE, name)
            .env(DATABASE, server.url())
            .env(SCHEMA, &schema)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let sessions = open(&server, &schema).await.sessions();
    let log = sessions.load("shared").await.unwrap().unwrap();
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
    let expected: BTreeSet<String> = NAMES
        .iter()
        .flat_map(|name| (0..MESSAGES).map(move |number| format!("{name} {number}")))
        .collect();
    assert_eq!(said, expected);
    assert_eq!((log.events.len(), log.unreadable), (3 * MESSAGES, 0));
    let row = sessions.summary("shared").await.unwrap().unwrap();
    assert_eq!(row.message_count as usize, 3 * MESSAGES);
}

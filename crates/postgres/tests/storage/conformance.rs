//! The storages keep every rule of their traits.

use std::num::NonZeroUsize;

use futures_util::FutureExt as _;
use youyou_agent::testing::{
    at, memory, memory_storage_conformance, session_storage_conformance,
    session_storage_durability, session_storage_skips_unreadable, session_storage_two_writers,
    user_message,
};
use youyou_agent::{MemoryStorage as _, PageRequest, SessionEvent, SessionStorage as _};
use youyou_agent_postgres::{Postgres, PostgresOptions};

use crate::server::{self, START};
use crate::{fresh_schema, open, shared};

fn at_most(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_every_rule() {
    let Some(server) = shared() else { return };
    session_storage_conformance(async || open(&server, &fresh_schema()).await.sessions()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_outlive_the_object_and_a_restart_of_the_server() {
    // A server of its own, since it goes away for a moment.
    let Some(server) = server::start() else {
        return;
    };
    let schema = fresh_schema();
    session_storage_durability(async || open(&server, &schema).await.sessions()).await;
    let sessions = open(&server, &schema).await.sessions();
    let before = sessions.load("s1").await.unwrap();
    server.run("pg_ctl", &["stop", "-m", "fast", "-w"]);
    server.run("pg_ctl", &START);
    assert_eq!(sessions.load("s1").await.unwrap(), before);
    sessions
        .append("s1", &[user_message(7, "goes on")])
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_objects_over_one_database_never_replace_what_the_other_wrote() {
    let Some(server) = shared() else { return };
    let schema = fresh_schema();
    session_storage_two_writers(async || open(&server, &schema).await.sessions()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_keep_every_rule() {
    let Some(server) = shared() else { return };
    memory_storage_conformance(async || open(&server, &fresh_schema()).await.memories()).await;
}

// D19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_and_unknown_records_are_left_out_counted_and_never_written_over() {
    let Some(server) = shared() else { return };
    let spoilers = [
        "'{\"index\":' || position || ',\"timestamp\":2,\"turnId\":\"\",\"type\":\"fromTheFuture\"}'",
        "left(body, 20)",
        "''",
        "'[]'",
        // The event of another place.
        "replace(body, '\"index\":', '\"index\":9')",
    ];
    for body in spoilers {
        let schema = fresh_schema();
        let sessions = open(&server, &schema).await.sessions();
        let other = sqlx::PgPool::connect(&server.url()).await.unwrap();
        session_storage_skips_unreadable(&sessions, async |session_id, index| {
            let sql = format!(
                "UPDATE {schema}.events SET body = {body} WHERE position = {index} AND session_key =
                 (SELECT key FROM {schema}.sessions WHERE session_id = '{session_id}')"
            );
            let done = sqlx::query(&sql).execute(&other).await.unwrap();
            assert_eq!(done.rows_affected(), 1);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_messages_come_page_by_page() {
    let Some(server) = shared() else { return };
    let sessions = open(&server, &fresh_schema()).await.sessions();
    let text = "Two hundred characters of what people say. ".repeat(5);
    let events: Vec<SessionEvent> = (0..10_000)
        .map(|index| at(index, user_message(index, &text)))
        .collect();
    sessions.append("long", &events).await.unwrap();
    let mut read: Vec<SessionEvent> = Vec::new();
    let (mut from, mut pages) = (Some(0), 0);
    while let Some(start) = from {
        let request = PageRequest::new(start, NonZeroUsize::new(100).unwrap());
        let page = sessions.load_page("long", request).await.unwrap().unwrap();
        read.extend(page.events);
        from = page.next;
        pages += 1;
    }
    assert_eq!((pages, &read), (100, &events));
    assert_eq!(sessions.load("long").await.unwrap().unwrap().events, events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_whose_callers_gave_up_are_done_in_their_place() {
    let Some(server) = shared() else { return };
    let sessions = open(&server, &fresh_schema()).await.sessions();
    for round in 0..30 {
        for n in 0..3 {
            let late = [user_message(0, &format!("late {round} {n}"))];
            assert!(sessions.append("s", &late).now_or_never().is_none());
        }
        let newer = [user_message(0, &format!("newer {round}"))];
        sessions.append("s", &newer).await.unwrap();
        let log = sessions.load("s").await.unwrap().unwrap();
        assert_eq!(log.events, newer);
    }
    // One that nobody waits for happens, too.
    let last = [user_message(1, "last")];
    assert!(sessions.append("s", &last).now_or_never().is_none());
    let log = sessions.load("s").await.unwrap().unwrap();
    assert_eq!(log.last_index, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_are_found_by_stems_rare_words_first() {
    let Some(server) = shared() else { return };
    let memories = open(&server, &fresh_schema()).await.memories();
    for index in 0..40 {
        let content = match index {
            3 => "Likes marzipan.".to_owned(),
            _ => format!("What the user said about the plan of the week {index}."),
        };
        let namespace = if index % 2 == 1 { "mine" } else { "other" };
        let id = index.to_string();
        memories
            .upsert(memory(&id, namespace, &content))
            .await
            .unwrap();
    }
    let question = "What did the user say about marzipan in the plan of the week?";
    let found = memories.search("mine", question, at_most(3)).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|memory| &*memory.id).collect();
    assert_eq!(ids, ["3", "39", "37"]);
    let found = memories
        .search("mine", "plans of weeks", at_most(50))
        .await
        .unwrap();
    assert_eq!(found.len(), 19);
    memories
        .upsert(memory("cat", "mine", "用户的猫叫汤圆"))
        .await
        .unwrap();
    let found = memories
        .search("mine", "我的猫叫什么名字", at_most(1))
        .await
        .unwrap();
    assert_eq!(found.first().unwrap().id, "cat");
}

async fn refusal(options: PostgresOptions) -> String {
    options.connect().await.unwrap_err().message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_used_is_refused_with_what_to_do() {
    let Some(server) = shared() else { return };
    let message = refusal(PostgresOptions::new("no url")).await;
    assert!(message.contains("URL"), "{message}");
    let message = refusal(PostgresOptions::new(server.url()).schema("a; DROP TABLE b")).await;
    assert!(message.contains("no name of a schema"), "{message}");
    let message = refusal(PostgresOptions::new(server.url_of("nothing"))).await;
    assert!(message.contains("refuses access"), "{message}");
    let closed = "postgres://postgres@127.0.0.1:1/postgres";
    let message = Postgres::connect(closed).await.unwrap_err().message;
    assert!(message.contains("database"), "{message}");

    let schema = fresh_schema();
    open(&server, &schema).await;
    let other = sqlx::PgPool::connect(&server.url()).await.unwrap();
    let newer = format!("UPDATE {schema}.version SET number = 99");
    sqlx::query(&newer).execute(&other).await.unwrap();
    let message = refusal(PostgresOptions::new(server.url()).schema(&schema)).await;
    assert!(message.contains("later version"), "{message}");

    sqlx::query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        .execute(&other)
        .await
        .unwrap();
    let message = refusal(PostgresOptions::new(server.url_of("latin"))).await;
    assert!(message.contains("LATIN1"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_create_schemas_uses_one_that_was_given() {
    let Some(server) = shared() else { return };
    let schema = fresh_schema();
    let owner = sqlx::PgPool::connect(&server.url()).await.unwrap();
    let sql = format!(
        "CREATE ROLE guest_{schema} LOGIN; CREATE SCHEMA {schema} AUTHORIZATION guest_{schema}"
    );
    sqlx::raw_sql(&sql).execute(&owner).await.unwrap();
    let url = server
        .url()
        .replace("postgres@", &format!("guest_{schema}@"));
    let message = refusal(PostgresOptions::new(&url).schema(fresh_schema())).await;
    assert!(message.contains("refuses access"), "{message}");
    let options = PostgresOptions::new(&url).schema(schema);
    let sessions = options.connect().await.unwrap().sessions();
    sessions
        .append("s1", &[user_message(0, "hello")])
        .await
        .unwrap();
    assert!(sessions.load("s1").await.unwrap().is_some());
}

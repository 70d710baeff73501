//! Messages are found by their words.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tempfile::TempDir;
use youyou_agent::testing::{
    assistant_message, at, call_part, cut_message, session_created, text_part, tool_result_stored,
    user_message,
};
use youyou_agent::{
    AssistantPart, ContentBlock, Interruption, SessionEvent, SessionEventKind, SessionStorage as _,
};
use youyou_agent_sqlite::Sqlite;

fn fresh() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::open(folder.path().join("app.db")).unwrap();
    (folder, db)
}

/// Session and index of each hit.
async fn found(db: &Sqlite, query: &str) -> Vec<(String, u64)> {
    let hits = db.search_messages(query, 100).await.unwrap();
    hits.into_iter()
        .map(|hit| (hit.session_id, hit.index))
        .collect()
}

fn places(places: &[(&str, u64)]) -> Vec<(String, u64)> {
    places
        .iter()
        .map(|(session, index)| ((*session).to_owned(), *index))
        .collect()
}

async fn two_sessions(db: &Sqlite) {
    let trip = [
        session_created(0, "Plan a trip", "m1"),
        user_message(1, "Where is the train to Porto?"),
        assistant_message(
            2,
            [
                AssistantPart::Reasoning {
                    text: "The user asks for a platform.".into(),
                    provider_data: None,
                },
                text_part("I look it up."),
                call_part("c1", "read", serde_json::json!({ "path": "secret.txt" })),
            ],
        ),
        tool_result_stored(3, "c1", "read", "platform seven"),
        at(
            40,
            assistant_message(4, [text_part("Trains to Porto leave from platform 7.")]),
        ),
    ];
    let login = [
        session_created(0, "登录", "m1"),
        user_message(1, "登录页面为什么报错？Tauri开发"),
        cut_message(2, "可能是会话过期，请重新登录", Interruption::Cancelled),
        user_message(3, "Inês meinte, das sei die STRASSE."),
    ];
    let sessions = db.sessions();
    sessions.append("trip", &trip).await.unwrap();
    sessions.append("login", &login).await.unwrap();
}

#[tokio::test]
async fn messages_with_every_word_are_found_the_newest_first() {
    let (_folder, db) = fresh();
    two_sessions(&db).await;
    type Case<'a> = (&'a str, &'a [(&'a str, u64)]);
    let cases: [Case<'_>; 18] = [
        ("porto", &[("trip", 4), ("trip", 1)]),
        // Case, endings, signs, order.
        ("TRAIN, porto!", &[("trip", 4), ("trip", 1)]),
        ("platform 7", &[("trip", 4)]),
        ("porto lisbon", &[]),
        // Reasoning, arguments, results and titles are no messages.
        ("asks", &[]),
        ("secret", &[]),
        ("seven", &[]),
        ("plan", &[]),
        // Without spaces.
        ("登录", &[("login", 2), ("login", 1)]),
        ("登录页面", &[("login", 1)]),
        ("录登", &[]),
        ("错", &[("login", 1)]),
        ("tauri 开发", &[("login", 1)]),
        ("ines strasse", &[("login", 3)]),
        // Nothing is syntax.
        ("porto AND lisbon", &[]),
        ("\"porto", &[("trip", 4), ("trip", 1)]),
        ("por*", &[]),
        (" ?! ", &[]),
    ];
    for (query, expected) in cases {
        assert_eq!((query, found(&db, query).await), (query, places(expected)));
    }
    let one = db.search_messages("porto", 1).await.unwrap();
    assert_eq!(one.len(), 1);
    assert!(db.search_messages("porto", 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_hit_says_where_when_and_who_with_a_line_around_the_word() {
    let (_folder, db) = fresh();
    two_sessions(&db).await;
    let hits = db.search_messages("platform", 5).await.unwrap();
    let hit = hits.first().unwrap();
    assert_eq!(
        (
            &*hit.session_id,
            &*hit.title,
            hit.index,
            hit.timestamp,
            hit.is_user
        ),
        ("trip", "Plan a trip", 4, 40, false)
    );
    assert_eq!(hit.snippet, "Trains to Porto leave from platform 7.");

    let long = format!(
        "{} the\n\n needle  here {}",
        "很长 ".repeat(500),
        "end ".repeat(500)
    );
    let sessions = db.sessions();
    sessions
        .append("long", &[user_message(0, &long)])
        .await
        .unwrap();
    let hits = db.search_messages("NEEDLE", 5).await.unwrap();
    let hit = hits.first().unwrap();
    assert!(hit.is_user);
    let start = "…长 很长 很长 很长 很长 很长 很长 很长 很长 the needle here end end";
    assert!(hit.snippet.starts_with(start), "{}", hit.snippet);
    assert_eq!(hit.snippet.chars().count(), 122);
    let hits = db.search_messages("end", 1).await.unwrap();
    assert!(hits.first().unwrap().snippet.ends_with('…'));
}

#[tokio::test]
async fn a_message_is_found_by_what_it_says_now_and_not_after_it_was_deleted() {
    let (_folder, db) = fresh();
    let sessions = db.sessions();
    let draft = cut_message(1, "a draft about marzipan", Interruption::ProcessEnded);
    sessions
        .append("s1", &[user_message(0, "hello"), draft])
        .await
        .unwrap();
    assert_eq!(found(&db, "marzipan").await, places(&[("s1", 1)]));
    let whole = assistant_message(1, [text_part("now about nougat")]);
    sessions.append("s1", &[whole]).await.unwrap();
    assert_eq!(found(&db, "marzipan").await, places(&[]));
    assert_eq!(found(&db, "nougat").await, places(&[("s1", 1)]));

    sessions
        .append("s2", &[user_message(5, "nougat, too")])
        .await
        .unwrap();
    assert!(sessions.delete("s1").await.unwrap());
    assert_eq!(found(&db, "nougat").await, places(&[("s2", 5)]));
    assert_eq!(found(&db, "hello").await, places(&[]));
    db.check().await.unwrap();
}

#[tokio::test]
async fn names_of_files_are_searched_and_of_long_messages_the_beginning() {
    let (_folder, db) = fresh();
    let content = vec![
        ContentBlock::file("timetable.pdf", "contents nobody said"),
        ContentBlock::text(format!("{} behind", "长".repeat(30_000))),
        ContentBlock::text("further"),
    ];
    let message = SessionEvent::new(
        0,
        1,
        "turn",
        SessionEventKind::UserMessage {
            content,
            skill: None,
            steering: false,
        },
    );
    db.sessions().append("s1", &[message]).await.unwrap();
    assert_eq!(found(&db, "timetable").await, places(&[("s1", 0)]));
    assert_eq!(found(&db, "长长").await, places(&[("s1", 0)]));
    for query in ["contents", "behind", "further"] {
        assert_eq!((query, found(&db, query).await), (query, places(&[])));
    }
}

//! The storages in SQLite keep the rules of their traits, and find what is asked for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use youyou_agent::testing::{
    at, memory, memory_storage_conformance, session_created, session_storage_conformance,
    session_storage_durability, session_storage_skips_unreadable, user_message,
};
use youyou_agent::{MemoryStorage, SessionStorage};
use youyou_chat::storage::{Database, SqliteMemories, SqliteSessions};

fn fresh() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("chat.sqlite")).unwrap();
    (folder, database)
}

fn at_most(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_every_rule() {
    let folders = std::sync::Mutex::new(Vec::new());
    session_storage_conformance(async || {
        let (folder, database) = fresh();
        folders.lock().unwrap().push(folder);
        SqliteSessions::new(database)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("chat.sqlite");
    session_storage_durability(async || SqliteSessions::new(Database::open(&path).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_keep_every_rule() {
    let folders = std::sync::Mutex::new(Vec::new());
    memory_storage_conformance(async || {
        let (folder, database) = fresh();
        folders.lock().unwrap().push(folder);
        SqliteMemories::new(database)
    })
    .await;
}

// D19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_and_unknown_records_are_left_out_and_counted() {
    let spoilers = [
        "x'0000000000'",
        "'{\"index\":2,\"timestamp\":2,\"turnId\":\"\",\"type\":\"fromTheFuture\"}'",
        "'{\"index\":2,\"timest'",
        "x'e4bda0e5'",
        "'[]'",
        "7",
    ];
    for body in spoilers {
        let (folder, database) = fresh();
        session_storage_skips_unreadable(
            &SqliteSessions::new(database),
            async |session_id, index| {
                let other = Connection::open(folder.path().join("chat.sqlite")).unwrap();
                let sql = format!(
                    "UPDATE events SET body = {body} WHERE position = {index}
                 AND session_key = (SELECT key FROM sessions WHERE session_id = '{session_id}')"
                );
                assert_eq!(other.execute(&sql, []).unwrap(), 1);
            },
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_messages_load_and_list_at_once() {
    let (_folder, database) = fresh();
    let sessions = SqliteSessions::new(database);
    let text = "Two hundred characters of what people say. ".repeat(5);
    let mut events = vec![session_created(0, "long", "m1")];
    events.extend((1..=10_000).map(|index| at(index, user_message(index, &text))));
    sessions.append("long", &events).await.unwrap();
    let start = Instant::now();
    let log = sessions.load("long").await.unwrap().unwrap();
    let loading = start.elapsed();
    let start = Instant::now();
    let page = sessions.list(None, 50).await.unwrap();
    let listing = start.elapsed();
    assert_eq!((log.events.len(), page.sessions.len()), (10_001, 1));
    // Unoptimised test builds are several times slower than the 150 ms promised.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 150 });
    assert!(loading < limit, "{loading:?}");
    assert!(listing < Duration::from_millis(50), "{listing:?}");
}

/// What is remembered, in three languages.
const MEMORIES: [&str; 20] = [
    "The user's name is Marta and she lives in Porto.",
    "Marta is allergic to peanuts.",
    "The user prefers dark mode and a compact layout in every editor.",
    "The deployment of the shop runs on Friday evenings through GitHub Actions.",
    "The user's daughter Inês plays the cello.",
    "Releases of the billing service are tagged with calendar versions.",
    "The database password rotation happens every 90 days.",
    "用户住在杭州，周末喜欢去西湖骑车。",
    "用户的猫叫汤圆，今年三岁。",
    "项目使用 Tauri 和 Rust 开发桌面应用。",
    "用户对海鲜过敏，不能吃虾。",
    "用户习惯用四个空格缩进，不用制表符。",
    "每周三下午两点是团队的例会。",
    "用户正在准备日语能力考试二级。",
    "ユーザーは京都に住んでいて、寺巡りが好きです。",
    "ユーザーの犬の名前はポチです。",
    "会議の資料は毎週月曜日に共有されます。",
    "ユーザーはコーヒーより緑茶を好みます。",
    "本番サーバーは東京リージョンにあります。",
    "誕生日は五月十二日です。",
];

/// Questions and the memory that answers each.
const QUESTIONS: [(&str, usize); 14] = [
    ("Which city does Marta live in?", 0),
    ("Can I cook something with peanuts for her?", 1),
    ("What theme should the editors use?", 2),
    ("When do we deploy the shop?", 3),
    ("How are releases of billing tagged?", 5),
    ("我住在哪个城市？", 7),
    ("我的猫叫什么名字", 8),
    ("桌面应用是用什么技术开发的？", 9),
    ("晚饭吃虾可以吗", 10),
    ("代码缩进用几个空格？", 11),
    ("团队例会是什么时候", 12),
    ("私の犬の名前は何ですか？", 15),
    ("会議の資料はいつ共有されますか", 16),
    ("お茶とコーヒー、どちらが好き？", 17),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_in_three_languages_find_their_memory_among_the_first_three() {
    let (_folder, database) = fresh();
    let memories = SqliteMemories::new(database);
    for (index, content) in MEMORIES.iter().enumerate() {
        memories
            .upsert(memory(&index.to_string(), "user", content))
            .await
            .unwrap();
    }
    let mut missed = Vec::new();
    for (question, answer) in QUESTIONS {
        let found = memories.search("user", question, at_most(3)).await.unwrap();
        if !found.iter().any(|memory| memory.id == answer.to_string()) {
            missed.push((
                question,
                found
                    .iter()
                    .map(|memory| memory.content.clone())
                    .collect::<Vec<_>>(),
            ));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(
        memories
            .search("other", "Marta", at_most(3))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_memory_is_found_by_its_new_words_only() {
    let (_folder, database) = fresh();
    let memories = SqliteMemories::new(database);
    memories
        .upsert(memory("1", "", "Drinks coffee."))
        .await
        .unwrap();
    memories.upsert(memory("1", "", "喜欢喝茶")).await.unwrap();
    assert!(
        memories
            .search("", "coffee", at_most(3))
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        memories.search("", "喝茶", at_most(3)).await.unwrap().len(),
        1
    );
    assert!(memories.delete("", "1").await.unwrap());
    assert!(
        memories
            .search("", "喝茶", at_most(3))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rare_word_counts_more_than_many_common_ones_and_the_newest_of_equals_comes_first() {
    let (_folder, database) = fresh();
    let memories = SqliteMemories::new(database);
    for index in 0..40 {
        let id = index.to_string();
        let content = match index {
            3 => "Likes marzipan.".to_owned(),
            _ => format!("What the user said about the plan of the week {index}."),
        };
        let namespace = if index % 2 == 1 { "mine" } else { "other" };
        memories
            .upsert(memory(&id, namespace, &content))
            .await
            .unwrap();
    }
    let question = "What did the user say about marzipan in the plan of the week?";
    let found = memories.search("mine", question, at_most(3)).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|memory| memory.id.as_str()).collect();
    assert_eq!(ids, ["3", "39", "37"]);
    assert_eq!(
        memories
            .search("mine", question, at_most(50))
            .await
            .unwrap()
            .len(),
        20
    );
}

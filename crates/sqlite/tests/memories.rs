//! Memories are found by what a user asks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::num::NonZeroUsize;

use tempfile::TempDir;
use youyou_agent::MemoryStorage as _;
use youyou_agent::testing::memory;
use youyou_agent_sqlite::{Sqlite, SqliteMemories};

fn fresh() -> (TempDir, SqliteMemories) {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::open(folder.path().join("app.db")).unwrap();
    (folder, db.memories())
}

fn at_most(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
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
    let (_folder, memories) = fresh();
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
    let (_folder, memories) = fresh();
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
    let (_folder, memories) = fresh();
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

//! The SQLite storage under years of data: resuming a session of 10,000
//! messages, the first page of 10,000 sessions, searches among 20,000 memories.
//!
//! Prints one line of JSON per operation, times in milliseconds. The file lies in the
//! temporary folder and is read from the system's cache, as that of an app in use is.

mod fill;

use std::num::NonZeroUsize;
use std::time::Instant;

use serde_json::json;
use tokio::runtime::Runtime;
use youyou_agent::testing::{ScriptedProvider, text_model};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, MemoryStorage as _, ResumeOptions, SessionStorage as _,
};

use youyou_agent_sqlite::{Sqlite, SqliteSessions};

use fill::{LONG_SESSION, MEMORIES, MESSAGES, NAMESPACE, SESSIONS};

/// What the sidebar of the app asks for.
const PAGE: NonZeroUsize = NonZeroUsize::new(50).unwrap();
/// What a session start asks for (`memory_max_items`).
const FOUND: NonZeroUsize = NonZeroUsize::new(20).unwrap();

/// First messages of a user: as the core searches with them. The names of the first are in a few
/// memories each; the little words of the others in nearly all of them.
const QUERIES: [(&str, &str); 3] = [
    ("search20k_names", "panquoten kaseix panotaota"),
    (
        "search20k_sentence",
        "How do I make the release build of the app faster, and what did we decide about the cache?",
    ),
    (
        "search20k_chinese",
        "我们上次决定用什么数据库来存聊天记录？",
    ),
];

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Sqlite::open(folder.path().join("chat.sqlite")).expect("a database");
    let sessions = database.sessions();
    let memories = database.memories();
    runtime.block_on(async {
        fill::sessions(&sessions).await;
        fill::memories(&memories).await;
    });

    measure("resume10k", 30, || {
        let agent = runtime.block_on(agent(&sessions));
        let began = Instant::now();
        let resumed = runtime.block_on(async {
            let session = agent
                .resume_session(LONG_SESSION, ResumeOptions::default())
                .await;
            session.expect("the session is there")
        });
        let took = began.elapsed().as_secs_f64() * 1e3;
        assert_eq!(resumed.info().message_count as usize, MESSAGES);
        runtime.block_on(agent.shutdown());
        took
    });
    measure("list10k", 200, || {
        let began = Instant::now();
        let page = runtime.block_on(sessions.list(None, PAGE)).expect("a page");
        let took = began.elapsed().as_secs_f64() * 1e3;
        assert_eq!(page.sessions.len(), PAGE.get());
        assert!(page.next_cursor.is_some());
        took
    });
    for (name, query) in QUERIES {
        measure(name, 100, || {
            let began = Instant::now();
            let found = runtime.block_on(memories.search(NAMESPACE, query, FOUND));
            let took = began.elapsed().as_secs_f64() * 1e3;
            assert!(
                !found.expect("a search").is_empty(),
                "{name} finds something"
            );
            took
        });
    }
}

async fn agent(sessions: &SqliteSessions) -> Agent {
    AgentBuilder::new(AgentConfig::new("m"))
        .provider(ScriptedProvider::new("scripted").model(text_model("m")))
        .session_storage(sessions.clone())
        .build()
        .await
        .expect("an agent")
}

fn measure(name: &str, iterations: usize, mut run: impl FnMut() -> f64) {
    let warm_up = iterations / 10;
    let mut times: Vec<f64> = (0..warm_up + iterations)
        .map(|_| run())
        .skip(warm_up)
        .collect();
    times.sort_by(f64::total_cmp);
    let line = json!({
        "name": name,
        "iterations": iterations,
        "sessions": SESSIONS,
        "messages": MESSAGES,
        "memories": MEMORIES,
        "min_ms": times[0],
        "median_ms": times[times.len() / 2],
        "p95_ms": times[times.len() * 95 / 100],
    });
    println!("{line}");
}

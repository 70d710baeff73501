//! The data: the same on every run, and as uneven as people's words.

use youyou_agent::testing::{assistant_message, memory, session_created, text_part, user_message};
use youyou_agent::{Memory, MemoryStorage as _, SessionStorage as _};

use crate::storage::{SqliteMemories, SqliteSessions};

/// The session that is resumed.
pub(crate) const LONG_SESSION: &str = "long";
/// User and assistant messages in it.
pub(crate) const MESSAGES: usize = 10_000;
/// Sessions of two messages each beside it.
pub(crate) const SESSIONS: usize = 10_000;
/// Memories of one namespace.
pub(crate) const MEMORIES: usize = 20_000;
/// Whose memories they are.
pub(crate) const NAMESPACE: &str = "";

/// How memories are worded; `{}` is a topic. Their everyday words are in most of them.
const SENTENCES: [&str; 8] = [
    "The user prefers {} over {} for the {} of the app.",
    "We decided to use {} in the release build because {} was too slow.",
    "The project keeps its {} next to the {} and runs them with {}.",
    "The user asked how to do {} without {}, and we settled on {}.",
    "Do not touch {}: what it does for {} is part of the contract with {}.",
    "The cache of {} is cleared when {} changes, never by {}.",
    "用户更喜欢用 {} 而不是 {}，项目里不要再提 {}。",
    "我们上次决定把 {} 的记录存到 {} 数据库，{} 以后再说。",
];

const TOPICS: [&str; 48] = [
    "kubernetes",
    "ingress",
    "timeout",
    "postgres",
    "sqlite",
    "migrations",
    "tauri",
    "webview",
    "vite",
    "eslint",
    "pnpm",
    "docker",
    "compose",
    "nginx",
    "tls",
    "certificates",
    "oauth",
    "tokens",
    "sessions",
    "cookies",
    "redis",
    "queues",
    "kafka",
    "metrics",
    "grafana",
    "tracing",
    "clippy",
    "rustfmt",
    "workspaces",
    "features",
    "channels",
    "streams",
    "retries",
    "backoff",
    "snapshots",
    "fixtures",
    "mocks",
    "screenshots",
    "fonts",
    "icons",
    "colours",
    "margins",
    "keyboards",
    "shortcuts",
    "menus",
    "trays",
    "updates",
    "signatures",
];

/// A sequence that looks random and never changes.
struct Dice(u64);

impl Dice {
    /// From 0 to below `sides`, small numbers more often: some topics come up all the time.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        ((unit * unit * sides as f64) as usize).min(sides - 1)
    }
}

/// Writes one long session and many short ones.
pub(crate) async fn sessions(storage: &SqliteSessions) {
    let mut events = vec![session_created(0, "A long one", "m")];
    for index in 1..=MESSAGES as u64 {
        let text = format!("Message {index}: {}", "lorem ipsum dolor si ".repeat(9));
        events.push(if index % 2 == 1 {
            user_message(index, &text)
        } else {
            assistant_message(index, [text_part(&text)])
        });
    }
    storage
        .append(LONG_SESSION, &events)
        .await
        .expect("written");
    for number in 0..SESSIONS {
        let title = format!("Session {number}");
        let mut events = [
            session_created(0, &title, "m"),
            user_message(1, "A question"),
            assistant_message(2, [text_part("An answer")]),
        ];
        for event in &mut events {
            event.timestamp = number as u64;
        }
        let id = format!("session-{number:05}");
        storage.append(&id, &events).await.expect("written");
    }
}

/// Writes the memories.
pub(crate) async fn memories(storage: &SqliteMemories) {
    let mut dice = Dice(7);
    for number in 0..MEMORIES {
        let mut content = SENTENCES[number % SENTENCES.len()].to_owned();
        while content.contains("{}") {
            content = content.replacen("{}", TOPICS[dice.roll(TOPICS.len())], 1);
        }
        let written = Memory {
            updated_at: number as u64,
            ..memory(
                &format!("memory-{number:05}"),
                NAMESPACE,
                &format!("{content} ({number})"),
            )
        };
        storage.upsert(written).await.expect("written");
    }
}

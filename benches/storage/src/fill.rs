//! The data: the same on every run, and as uneven as people's words.

use youyou_agent::testing::{assistant_message, memory, session_created, text_part, user_message};
use youyou_agent::{Memory, MemoryStorage as _, SessionStorage as _};

use youyou_agent_sqlite::{SqliteMemories, SqliteSessions};

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

/// How memories are worded: `{}` is a name, `[]` an everyday thing. The little words are in nearly
/// all of them, the things in some hundreds, most names in a few.
const SENTENCES: [&str; 8] = [
    "The user prefers {} over {} for the [] of the [].",
    "We decided to use {} in the [] because the [] of {} was too slow.",
    "The project keeps its [] next to the [] and runs them with {}.",
    "The user asked how to do the [] without {}, and what the [] is for.",
    "Do not touch {}: what it does for the [] is part of the [] with {}.",
    "The [] of {} is made anew when the [] changes, never by {}.",
    "用户更喜欢用 {} 而不是 {}，项目里不要再提这个〔〕。",
    "我们上次决定把〔〕存到 {} 里，〔〕以后再说。",
];

const THINGS: [&str; 64] = [
    "release",
    "build",
    "cache",
    "app",
    "database",
    "window",
    "menu",
    "shortcut",
    "icon",
    "font",
    "colour",
    "theme",
    "login",
    "token",
    "cookie",
    "server",
    "proxy",
    "port",
    "certificate",
    "backup",
    "import",
    "export",
    "report",
    "invoice",
    "customer",
    "order",
    "payment",
    "address",
    "calendar",
    "meeting",
    "deadline",
    "budget",
    "contract",
    "translation",
    "language",
    "keyboard",
    "mouse",
    "screen",
    "printer",
    "camera",
    "microphone",
    "speaker",
    "battery",
    "network",
    "router",
    "folder",
    "file",
    "archive",
    "photo",
    "video",
    "song",
    "recipe",
    "garden",
    "car",
    "train",
    "flight",
    "hotel",
    "museum",
    "school",
    "teacher",
    "doctor",
    "medicine",
    "insurance",
    "tax",
];

const CHINESE_THINGS: [&str; 16] = [
    "聊天记录",
    "数据库",
    "窗口",
    "快捷键",
    "图标",
    "字体",
    "主题",
    "登录",
    "证书",
    "备份",
    "发票",
    "客户",
    "合同",
    "翻译",
    "会议",
    "预算",
];

/// Names of things, as many as a person meets in years.
const TOPICS: usize = 5_000;
const SYLLABLES: [&str; 16] = [
    "ka", "ro", "mi", "ten", "sul", "ve", "dor", "ix", "pan", "lu", "gre", "ota", "bin", "se",
    "quo", "ra",
];

/// The name of topic number `number`: three syllables and, from 4,096 on, four.
fn topic(mut number: usize) -> String {
    let mut name = String::new();
    for _ in 0..3 {
        name.push_str(SYLLABLES[number % SYLLABLES.len()]);
        number /= SYLLABLES.len();
    }
    if number > 0 {
        name.push_str(SYLLABLES[number % SYLLABLES.len()]);
    }
    name
}

/// A sequence that looks random and never changes.
struct Dice(u64);

impl Dice {
    /// From 0 to below `sides`, small numbers more often: some things come up all the time.
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
            content = content.replacen("{}", &topic(dice.roll(TOPICS)), 1);
        }
        while content.contains("[]") {
            content = content.replacen("[]", THINGS[dice.roll(THINGS.len())], 1);
        }
        while content.contains("〔〕") {
            content = content.replacen("〔〕", CHINESE_THINGS[dice.roll(CHINESE_THINGS.len())], 1);
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

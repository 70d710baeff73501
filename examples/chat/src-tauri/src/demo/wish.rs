//! What the demo understands of a message: a handful of requests, in English and Chinese.

use serde_json::{Value, json};
use youyou_agent::StopReason;

/// What a message asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    /// Calls of one tool, all in one response.
    Call {
        tool: &'static str,
        arguments: Vec<Value>,
    },
    LongAnswer,
    /// So many deltas of one character, as fast as they go.
    Flood(usize),
    /// An answer that ends for this reason.
    End(StopReason),
    /// The rest of an answer that was cut.
    GoOn,
    Error,
    Overflow,
    Remember,
    Other,
}

/// The longest flood.
const MAX_FLOOD: usize = 100_000;

/// Makes a wish of what follows the verb.
type Reading = fn(&str) -> Option<Wish>;

/// Words that begin a request, and what to make of the rest.
const VERBS: &[(&[&str], Reading)] = &[
    (&["read ", "open ", "读取", "打开", "阅读", "读 "], read),
    (
        &["search", "find ", "搜索", "查找", "在工作区中搜索"],
        search,
    ),
    (&["write ", "写入", "写文件", "写 "], write),
    (&["run ", "执行", "运行"], run),
    (&["flood "], flood),
    (&["list", "ls", "列出", "文件列表"], list),
    (
        &["remember", "please remember", "记住", "请记住"],
        |_| Some(Wish::Remember),
    ),
];

impl Wish {
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim();
        let lower = text.to_lowercase();
        match lower.trim_end_matches(['.', '!', '。', '！']) {
            "error" | "an error" | "错误" | "报错" | "出错" => return Self::Error,
            "overflow" | "context overflow" | "溢出" | "上下文溢出" => {
                return Self::Overflow;
            }
            "long" | "长" => return Self::LongAnswer,
            "cut" | "cut off" | "截断" => return Self::End(StopReason::Length),
            "filter" | "过滤" => return Self::End(StopReason::ContentFilter),
            "refuse" | "拒绝" => return Self::End(StopReason::Refusal),
            "go on" | "继续" | "请继续" => return Self::GoOn,
            _ => {}
        }
        for (verbs, wish) in VERBS {
            for verb in *verbs {
                // Verbs are the same length in both cases, so the rest can be taken from the original.
                if lower.starts_with(verb)
                    && let Some(wish) = text.get(verb.len()..).and_then(wish)
                {
                    return wish;
                }
            }
        }
        let long = ["long answer", "long text", "长回答", "长答案", "长文"];
        if long.iter().any(|words| lower.contains(words)) {
            Self::LongAnswer
        } else {
            Self::Other
        }
    }
}

fn call(tool: &'static str, arguments: Vec<Value>) -> Option<Wish> {
    Some(Wish::Call { tool, arguments })
}

/// "read a.txt and b.txt": every word that looks like a file is one call.
fn read(rest: &str) -> Option<Wish> {
    let files: Vec<Value> = rest
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '，' | '、' | '和' | '与'))
        .map(|word| {
            word.trim_matches(|c: char| {
                matches!(c, '"' | '“' | '”' | '`' | '。' | '.' | '!' | '?' | '？') && c != '/'
            })
        })
        .filter(|word| word.contains('.') || word.contains('/'))
        .take(4)
        .map(|path| json!({ "path": path }))
        .collect();
    if files.is_empty() {
        None
    } else {
        call("read_file", files)
    }
}

/// What stands in quotes, else what stands after "for".
fn search(rest: &str) -> Option<Wish> {
    let quoted = rest
        .split(['"', '“', '”', '「', '」'])
        .nth(1)
        .map(str::trim);
    let after_for = rest.split_once(" for ").map(|(_, query)| query.trim());
    let plain = rest
        .trim()
        .trim_start_matches("for ")
        .trim_end_matches(['.', '。']);
    let query = quoted.or(after_for).unwrap_or(plain).trim();
    if query.is_empty() {
        None
    } else {
        call("search_files", vec![json!({ "query": query })])
    }
}

/// "write notes.txt: text".
fn write(rest: &str) -> Option<Wish> {
    let (path, content) = rest.split_once([':', '：'])?;
    let path = path.trim();
    if path.is_empty() || path.contains(char::is_whitespace) {
        return None;
    }
    call(
        "write_file",
        vec![json!({ "path": path, "content": content.trim_start() })],
    )
}

fn run(rest: &str) -> Option<Wish> {
    let command = rest
        .trim_start_matches([':', '：'])
        .trim()
        .trim_matches('`');
    if command.is_empty() {
        None
    } else {
        call("run_command", vec![json!({ "command": command })])
    }
}

/// "flood 5000": for tests of what a page can take, hence in English only.
fn flood(rest: &str) -> Option<Wish> {
    let count: usize = rest.trim().parse().ok()?;
    Some(Wish::Flood(count.min(MAX_FLOOD)))
}

/// "list files", "list files in src".
fn list(rest: &str) -> Option<Wish> {
    let folder = rest
        .split_whitespace()
        .last()
        .map(|word| word.trim_end_matches(['.', '。']))
        .filter(|word| word.contains('/') || rest.contains(&format!(" in {word}")));
    let arguments = match folder {
        Some(folder) if folder != "workspace" => json!({ "path": folder.trim_end_matches('/') }),
        _ => json!({}),
    };
    call("list_dir", vec![arguments])
}

//! What the tools do, and what they refuse.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use youyou_agent::{ToolContext, ToolError, ToolHandler, ToolInput, ToolOutput};
use youyou_chat::settings::Settings;
use youyou_chat::tools;
use youyou_chat::workspace::Workspace;

struct Bench {
    folder: tempfile::TempDir,
    tools: Vec<Arc<dyn ToolHandler>>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/src")).unwrap();
        let settings = Arc::new(Settings::load(&folder.path().join("config"), |_| None).unwrap());
        let workspace = Workspace::new(settings, folder.path().join("root"));
        Self {
            folder,
            tools: tools::all(&workspace),
        }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root")
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(name, arguments, ToolContext::detached()).await
    }

    async fn call_in(
        &self,
        name: &str,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self
            .tools
            .iter()
            .find(|tool| tool.definition().name == name)
            .unwrap();
        let input = ToolInput::new("c1", name, arguments);
        tool.call(input, context).await
    }

    async fn text(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.unwrap().content
    }
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn only_what_changes_something_is_mutating() {
    let mutating: Vec<String> = Bench::new()
        .tools
        .iter()
        .map(|tool| tool.definition())
        .filter(|definition| definition.mutating)
        .map(|definition| definition.name)
        .collect();
    assert_eq!(mutating, ["write_file", "run_command"]);
}

#[tokio::test]
async fn a_folder_is_listed_with_folders_first() {
    let bench = Bench::new();
    write(&bench.root(), "b.txt", "bb");
    write(&bench.root(), "A.txt", "");
    assert_eq!(
        bench.text("list_dir", json!({})).await,
        "src/\nA.txt (0 bytes)\nb.txt (2 bytes)"
    );
    assert_eq!(
        bench.text("list_dir", json!({ "path": "src" })).await,
        "(the folder is empty)"
    );
    assert!(
        bench
            .call("list_dir", json!({ "path": "nowhere" }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_long_file_is_read_in_parts() {
    let bench = Bench::new();
    let lines: String = (1..=5).map(|n| format!("line {n}\n")).collect();
    write(&bench.root(), "long.txt", &lines);
    assert_eq!(
        bench.text("read_file", json!({ "path": "long.txt" })).await,
        lines
    );
    let part = bench
        .text(
            "read_file",
            json!({ "path": "long.txt", "start_line": 2, "lines": 2 }),
        )
        .await;
    assert_eq!(
        part,
        "line 2\nline 3\n\n[lines 2 to 3 of 5; go on with start_line 4]"
    );
    let beyond = bench
        .text("read_file", json!({ "path": "long.txt", "start_line": 9 }))
        .await;
    assert_eq!(beyond, "[the file has only 5 lines]");
    write(&bench.root(), "empty.txt", "");
    assert_eq!(
        bench
            .text("read_file", json!({ "path": "empty.txt" }))
            .await,
        "(the file is empty)"
    );
}

#[tokio::test]
async fn what_is_no_text_file_is_refused_with_advice() {
    let bench = Bench::new();
    write(&bench.root(), "image.bin", [1, 0, 2]);
    let error = async |path: &str| {
        bench
            .call("read_file", json!({ "path": path }))
            .await
            .unwrap_err()
            .message
    };
    assert!(error("image.bin").await.contains("not a text file"));
    assert!(error("src").await.contains("use list_dir"));
    assert!(error("../secret").await.contains("outside the workspace"));
    #[cfg(unix)]
    {
        let pipe = bench.root().join("pipe");
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap();
        assert!(error("pipe").await.contains("no regular file"));
    }
}

#[tokio::test]
async fn searching_leaves_out_what_git_ignores_and_binary_files() {
    let bench = Bench::new();
    let root = bench.root();
    write(&root, ".gitignore", "target/\n");
    write(&root, "target/out.txt", "needle");
    write(&root, "src/main.rs", "first\n  let Needle = 1;\n");
    write(&root, "中文.md", "大海捞针 needle");
    write(&root, "data.bin", b"needle\xff\x00");
    let found = bench
        .text("search_files", json!({ "query": "needle" }))
        .await;
    assert_eq!(
        found,
        "src/main.rs:2: let Needle = 1;\n中文.md:1: 大海捞针 needle"
    );
    let found = bench
        .text(
            "search_files",
            json!({ "query": "let \\w+ =", "regex": true, "path": "src" }),
        )
        .await;
    assert_eq!(found, "src/main.rs:2: let Needle = 1;");
    assert_eq!(
        bench.text("search_files", json!({ "query": "(" })).await,
        "no match in 3 files"
    );
    assert!(
        bench
            .call("search_files", json!({ "query": "(", "regex": true }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_file_is_written_with_its_folders_and_replaced() {
    let bench = Bench::new();
    let new = json!({ "path": "a/b/c.txt", "content": "你好" });
    assert_eq!(
        bench.text("write_file", new).await,
        "created a/b/c.txt (6 bytes)"
    );
    assert_eq!(
        bench
            .text("write_file", json!({ "path": "a/b/c.txt", "content": "x" }))
            .await,
        "replaced a/b/c.txt (1 bytes)"
    );
    assert_eq!(
        std::fs::read_to_string(bench.root().join("a/b/c.txt")).unwrap(),
        "x"
    );
    assert!(
        bench
            .call("write_file", json!({ "path": "../x", "content": "" }))
            .await
            .is_err()
    );
    assert!(!bench.folder.path().join("x").exists());
    assert!(
        bench
            .call("write_file", json!({ "path": "src", "content": "" }))
            .await
            .is_err()
    );
}

#[cfg(unix)]
mod commands {
    use super::*;

    #[tokio::test]
    async fn a_command_runs_in_the_workspace_and_its_failure_is_told() {
        let bench = Bench::new();
        write(&bench.root(), "a.txt", "");
        assert_eq!(
            bench
                .text("run_command", json!({ "command": "ls; echo err >&2" }))
                .await
                .lines()
                .count(),
            3
        );
        let failed = bench
            .call("run_command", json!({ "command": "echo why; exit 3" }))
            .await
            .unwrap();
        assert!(
            failed.is_error && failed.content.contains("why"),
            "{failed:?}"
        );
        assert_eq!(failed.metadata, Some(json!({ "exitCode": 3 })));
    }

    #[tokio::test]
    async fn a_command_gets_no_input_and_no_keys() {
        let bench = Bench::new();
        assert_eq!(
            bench.text("run_command", json!({ "command": "cat" })).await,
            "(no output)"
        );
        // `cargo test` cannot set its own environment safely; the definition of the child is what counts.
        let shown = bench
            .text(
                "run_command",
                json!({ "command": "env | grep -c API_KEY || true" }),
            )
            .await;
        assert_eq!(shown, "0");
    }

    #[tokio::test]
    async fn a_command_that_runs_out_of_time_is_ended_with_all_it_started() {
        let bench = Bench::new();
        let context = ToolContext::detached();
        let token = context.timed_out.clone();
        let command = "sleep 600 & echo $! > pid; echo begun; sleep 600";
        let call = bench.call_in("run_command", json!({ "command": command }), context);
        let pid = bench.root().join("pid");
        let stop = async {
            while std::fs::read_to_string(&pid)
                .unwrap_or_default()
                .trim()
                .is_empty()
            {
                tokio::task::yield_now().await;
            }
            token.cancel();
        };
        let (result, ()) = tokio::join!(call, stop);
        assert!(result.unwrap_err().message.contains("took too long"));
        assert_gone(std::fs::read_to_string(&pid).unwrap().trim()).await;
    }

    #[tokio::test]
    async fn a_background_process_does_not_hold_the_call() {
        let bench = Bench::new();
        let start = Instant::now();
        let text = bench
            .text("run_command", json!({ "command": "sleep 600 & echo $!" }))
            .await;
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_gone(text.trim()).await;
    }

    #[tokio::test]
    async fn a_flood_of_output_keeps_its_beginning_and_its_end() {
        let bench = Bench::new();
        let text = bench
            .text("run_command", json!({ "command": "seq 1 200000" }))
            .await;
        assert!(
            text.starts_with("1\n2\n") && text.ends_with("\n200000"),
            "{}",
            &text[..50]
        );
        assert!(text.contains("the middle was left out") && text.len() < 400_000);
    }

    async fn assert_gone(pid: &str) {
        let gone = async {
            // A process that nobody has reaped yet is gone, too.
            while std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z"))
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), gone)
            .await
            .expect("the process is still there");
    }
}

//! The backend as a whole, with the offline demo and without a window.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use youyou_agent::{
    Agent, AgentEventKind, ContentBlock, ErrorCode, MemoryStorage, ResumeOptions, Session,
    SessionConfig, SessionEventKind, ToolHandler, TurnOutcome, TurnStatus,
};
use youyou_chat::backend::{Backend, Folders};

fn open(folder: &Path) -> Backend {
    let folders = Folders {
        data: folder.to_owned(),
        config: folder.join("config"),
    };
    // Nothing of this computer gets in: no keys, and servers where nobody listens.
    let nowhere = |name: &str| {
        name.starts_with("YOUYOU_CHAT_")
            .then(|| "http://127.0.0.1:9".to_owned())
    };
    Backend::open(&folders, nowhere).unwrap()
}

async fn start(folder: &Path) -> (Backend, Agent, Session) {
    let backend = open(folder);
    let agent = backend.agent().build().await.unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    (backend, agent, session)
}

async fn say(session: &Session, text: &str) -> TurnOutcome {
    session.send(text).unwrap().outcome().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_runs_tools_in_the_workspace_and_is_found_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (_backend, agent, session) = start(folder.path()).await;
    let turn = session.send("read README.md and Cargo.toml").unwrap();
    let events: Vec<_> = turn.collect().await;
    let ended: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::ToolCallEnd {
                output, success, ..
            } => Some((*success, output.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|(success, _)| *success), "{ended:?}");
    assert!(
        ended
            .iter()
            .any(|(_, output)| output.contains("Your workspace"))
    );
    agent.shutdown().await;
    drop(agent);

    let agent = open(folder.path()).agent().build().await.unwrap();
    let page = agent
        .list_sessions(None, NonZeroUsize::new(10))
        .await
        .unwrap();
    assert_eq!(page.sessions.len(), 1);
    let found = &page.sessions[0];
    assert_eq!(
        (found.title.as_str(), found.message_count),
        ("read README.md and Cargo.toml", 3)
    );
    let session = agent
        .resume_session(&found.session_id, ResumeOptions::default())
        .await
        .unwrap();
    let outcome = say(&session, "write notes/a.txt: 你好").await;
    assert_eq!(outcome.status, TurnStatus::Completed);
    let written = std::fs::read_to_string(folder.path().join("workspace/notes/a.txt")).unwrap();
    assert_eq!(written, "你好\n".trim_end());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_and_an_unknown_skill_say_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let (_backend, _agent, session) = start(folder.path()).await;
    let outcome = say(&session, "error").await;
    let error = outcome.error.unwrap();
    assert_eq!(error.code, ErrorCode::ProviderError);
    assert!(
        error.retryable && error.message.contains("this failure was asked for"),
        "{error}"
    );
    let unknown = session.send("/nosuchskill please").map(drop).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::SkillNotFound);
    assert!(
        say(&session, "/explain src/main.rs")
            .await
            .assistant_output
            .contains("skill's instructions")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overflow_is_compacted_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (_backend, _agent, session) = start(folder.path()).await;
    for n in 0..4 {
        say(&session, &format!("hello {n} {}", "word ".repeat(300))).await;
    }
    let turn = session.send("overflow").unwrap();
    let events: Vec<_> = turn.collect().await;
    assert!(
        events
            .iter()
            .any(|event| matches!(event.kind, AgentEventKind::ContextCompacted { .. })),
        "{events:?}"
    );
    assert!(matches!(
        &events.last().unwrap().kind,
        AgentEventKind::TurnComplete {
            status: TurnStatus::Completed,
            ..
        }
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_to_be_remembered_is_there_after_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let (backend, _agent, session) = start(folder.path()).await;
    say(&session, "remember that I drink green tea").await;
    session.close().await.unwrap();
    let memories = backend.database.memories().load("").await.unwrap();
    assert_eq!(memories.len(), 1, "{memories:?}");
    assert_eq!(memories[0].content, "I drink green tea");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_a_file_reaches_neither_model_nor_storage_nor_log() {
    let folder = tempfile::tempdir().unwrap();
    let (_backend, agent, session) = start(folder.path()).await;
    let secret = format!("ghp_{}", "a1".repeat(18));
    std::fs::write(
        folder.path().join("workspace/env.txt"),
        format!("TOKEN={secret}\nOTHER=1"),
    )
    .unwrap();
    let outcome = say(&session, "read env.txt").await;
    assert!(
        outcome.assistant_output.contains("[secret removed]"),
        "{}",
        outcome.assistant_output
    );
    let history = agent
        .session_history(session.id(), None, NonZeroUsize::new(100))
        .await
        .unwrap();
    let stored = serde_json::to_string(&history).unwrap();
    assert!(stored.contains("OTHER=1") && !stored.contains(&secret));
    agent.shutdown().await;
    let audit = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    let hooks = [
        "sessionStart",
        "turnStart",
        "beforeToolUse",
        "afterToolUse",
        "turnEnd",
        "sessionEnd",
    ];
    assert!(hooks.iter().all(|hook| audit.contains(hook)), "{audit}");
    assert!(
        !audit.contains("env.txt") && !audit.contains("OTHER"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_appear_with_a_key_while_the_app_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (backend, agent, _session) = start(folder.path()).await;
    let providers = |agent: &Agent| -> Vec<String> {
        let mut ids: Vec<String> = agent
            .models()
            .into_iter()
            .map(|model| model.provider_id.to_string())
            .collect();
        ids.dedup();
        ids
    };
    assert_eq!(providers(&agent), ["demo"]);
    backend
        .settings
        .set_key("anthropic", "sk-ant-test")
        .unwrap();
    assert_eq!(providers(&agent), ["anthropic", "demo"]);
    backend.settings.set_key("anthropic", "").unwrap();
    assert_eq!(providers(&agent), ["demo"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_reaches_the_seeing_model_and_is_refused_by_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let (_backend, _agent, session) = start(folder.path()).await;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let input = || {
        vec![
            ContentBlock::text("what is this?"),
            ContentBlock::image("image/png", png),
        ]
    };
    let outcome = session.send(input()).unwrap().outcome().await;
    assert!(
        outcome.assistant_output.contains("1 image"),
        "{}",
        outcome.assistant_output
    );
    let small = youyou_agent::SendOptions {
        model_id: Some("demo-small".into()),
        ..Default::default()
    };
    let refused = session.send_with(input(), small).map(drop).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContentNotSupported);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_skill_finds_its_tools_and_every_event_is_kept_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (backend, agent, session) = start(folder.path()).await;
    let names: Vec<String> = youyou_chat::tools::all(&backend.workspace)
        .iter()
        .map(|tool: &Arc<dyn ToolHandler>| tool.definition().name)
        .collect();
    let skills = agent.skills();
    assert_eq!(skills.len(), 3);
    assert!(
        skills
            .iter()
            .flat_map(|skill| &skill.required_tools)
            .all(|tool| names.contains(tool))
    );
    say(&session, "list files").await;
    let history = agent
        .session_history(session.id(), None, NonZeroUsize::new(100))
        .await
        .unwrap();
    let kinds: Vec<&str> = history
        .events
        .iter()
        .map(|event| match event.kind {
            SessionEventKind::UserMessage { .. } => "user",
            SessionEventKind::AssistantMessage { .. } => "assistant",
            SessionEventKind::ToolCall { .. } => "call",
            SessionEventKind::ToolResult { .. } => "result",
            SessionEventKind::SystemMessage { .. } => "system",
            SessionEventKind::Metadata { .. } => "metadata",
            _ => "unknown",
        })
        .filter(|kind| *kind != "metadata")
        .collect();
    assert_eq!(kinds, ["user", "assistant", "call", "result", "assistant"]);
}

//! What the agent writes into logs: a span per turn, model call, tool call and hook, one line
//! for each fault that is lived with, and no word of what was said below the trace level.
//!
//! These tests have a process of their own: tracing decides once per place in the code and
//! process whether anyone listens, and a neighbour without a subscriber would decide for all.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken fails its test"
)]

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use youyou_agent::testing::{
    InMemoryMemories, InMemorySessions, RecordingTool, ScriptedProvider, assistant_message, call,
    collect, done, reasoning, refuse, session_created, text, text_model, text_part, user_message,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, HookOutcome, HookRegistry, Plugin, PluginError, ProviderError,
    ProviderErrorKind, ResumeOptions, SessionConfig,
};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Written {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Written {
    /// The lines in which all of these words stand.
    fn lines(&self, words: &[&str]) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = log
            .lines()
            .filter(|line| words.iter().all(|word| line.contains(word)));
        lines.map(str::to_owned).collect()
    }
}

/// What all tests of this process log. Each looks for words of its own.
static LOG: LazyLock<Written> = LazyLock::new(|| {
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_span_events(FmtSpan::NEW)
        .with_ansi(false)
        .with_writer(written.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    written
});

struct Watcher;

#[async_trait::async_trait]
impl Plugin for Watcher {
    fn id(&self) -> &str {
        "watcher"
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        hooks.before_tool_use("look", |_| async { Ok(HookOutcome::Continue) });
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_has_its_span_and_no_word_of_it_is_logged() {
    let log = &*LOG;
    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m1"))
        .reply([
            reasoning("SECRET-REASONING"),
            call(
                "c1",
                "ro_echo",
                json!({"text": "SECRET-ARGUMENT"}).to_string(),
            ),
            done(),
        ])
        .reply([text("SECRET-ANSWER"), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(provider.clone())
        .session_storage(InMemorySessions::new())
        .tool(RecordingTool::read_only("ro_echo").echo())
        .plugin(Watcher)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    collect(session.send("SECRET-QUESTION").unwrap()).await;
    provider.queue([refuse(ProviderError::new(
        ProviderErrorKind::Auth,
        "wrong key",
    ))]);
    collect(session.send("SECRET-FAILURE").unwrap()).await;

    let log = log.lines(&[session.id()]).join("\n");
    for span in ["invoke_agent{", "chat{", "execute_tool{", "hook{"] {
        assert!(log.contains(span), "no span {span} in:\n{log}");
    }
    for name in [
        "gen_ai.operation.name",
        "gen_ai.conversation.id",
        "gen_ai.request.model",
        "gen_ai.tool.name",
    ] {
        assert!(log.contains(name), "no {name} in:\n{log}");
    }
    let said = LOG.lines(&["SECRET"]);
    assert_eq!(said, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn records_that_cannot_be_read_are_one_warning_however_many_they_are() {
    // D19
    let log = &*LOG;
    let storage = InMemorySessions::new();
    storage.preload(
        "damaged",
        [
            session_created(0, "Damaged", "m1"),
            user_message(1, "one"),
            assistant_message(2, [text_part("two")]),
            user_message(3, "three"),
        ],
    );
    assert!(storage.corrupt("damaged", 1) && storage.corrupt("damaged", 2));
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(ScriptedProvider::new("scripted").model(text_model("m1")))
        .session_storage(storage)
        .build()
        .await
        .unwrap();
    agent
        .resume_session("damaged", ResumeOptions::default())
        .await
        .unwrap();
    for words in [
        &["WARN", "damaged"][..],
        &["WARN", "damaged", "unreadable=2"],
    ] {
        let warnings = log.lines(words);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_memories_is_one_error() {
    // G17
    let log = &*LOG;
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(
            ScriptedProvider::new("scripted")
                .model(text_model("m1"))
                .always(|_| [text("SECRET-PROSE without a list"), done()]),
        )
        .session_storage(InMemorySessions::new())
        .memory_storage(InMemoryMemories::new())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    collect(session.send("hello").unwrap()).await;
    session.close().await.unwrap();
    for (level, expected) in [("WARN", 0), ("ERROR", 1)] {
        let lines = log.lines(&[level, session.id()]);
        assert_eq!(lines.len(), expected, "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_special_model_that_is_not_there_is_one_warning_at_the_build() {
    // C20
    let log = &*LOG;
    let config = AgentConfig {
        compact_model: Some("no-such-summariser".to_owned()),
        ..AgentConfig::new("m1")
    };
    AgentBuilder::new(config)
        .provider(ScriptedProvider::new("scripted").model(text_model("m1")))
        .build()
        .await
        .unwrap();
    for words in [
        &["WARN", "no-such-summariser"][..],
        &["WARN", "no-such-summariser", "compact_model"],
    ] {
        let warnings = log.lines(words);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn models_that_clash_while_the_app_runs_are_one_warning_each_time_they_begin_to() {
    let log = &*LOG;
    let first = ScriptedProvider::new("first")
        .model(text_model("m1"))
        .always(|_| [text("ok"), done()]);
    let second = ScriptedProvider::new("second").model(text_model("in-both"));
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(first.clone())
        .provider(second.clone())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    for times in 1..=2 {
        first.add_model(text_model("in-both"));
        for _ in 0..3 {
            collect(session.send("hello").unwrap()).await;
            assert_eq!(agent.models().len(), 2);
        }
        // Something else changes meanwhile.
        second.add_model(text_model("more"));
        assert_eq!(agent.models().len(), 3);
        assert!(second.remove_model("more"));
        let warnings = log.lines(&["WARN", "in-both"]);
        assert_eq!(warnings.len(), times, "{warnings:?}");
        let all_name = warnings.iter().all(|line| line.contains("ignored=second"));
        assert!(all_name, "{warnings:?}");
        assert!(first.remove_model("in-both"));
        assert_eq!(agent.models().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_used_is_one_warning() {
    // X13
    let log = &*LOG;
    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m1"))
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(provider.clone())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let mut model = text_model("windowless");
    model.context_window = 0;
    provider.add_model(model);
    for _ in 0..3 {
        collect(session.send("hello").unwrap()).await;
        assert_eq!(agent.models().len(), 1);
    }
    assert_eq!(log.lines(&["WARN", "windowless"]).len(), 1);
}

//! What the agent writes into logs: a span per turn, model call, tool call and hook, and no
//! word of what was said below the trace level.
//!
//! This test has a process of its own: tracing decides once per place in the code and process
//! whether anyone listens, and a neighbour without a subscriber would decide for all.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken fails its test"
)]

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use youyou_agent::testing::{
    InMemorySessions, RecordingTool, ScriptedProvider, call, collect, done, reasoning, refuse,
    text, text_model,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, HookOutcome, HookRegistry, Plugin, PluginError, ProviderError,
    ProviderErrorKind, SessionConfig,
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
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_span_events(FmtSpan::NEW)
        .with_ansi(false)
        .with_writer(written.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();

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

    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
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
    assert!(!log.contains("SECRET"), "{log}");
}

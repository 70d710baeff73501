//! What the agent writes into logs: a span per turn, model call, tool call and hook, and no
//! word of what was said below the trace level.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use youyou_agent::testing::{RecordingTool, call, done, reasoning, text};
use youyou_agent::{
    HookOutcome, HookRegistry, Plugin, PluginError, ProviderError, ProviderErrorKind,
};

use crate::rig::{Rig, config, provider};

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
    let _guard = tracing::subscriber::set_default(subscriber);

    let provider = provider()
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
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo").echo())
            .plugin(Watcher)
    })
    .await;
    rig.send("SECRET-QUESTION").await;
    rig.provider
        .queue([youyou_agent::testing::refuse(ProviderError::new(
            ProviderErrorKind::Auth,
            "wrong key",
        ))]);
    rig.send("SECRET-FAILURE").await;

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
    rig.epilogue().await;
}

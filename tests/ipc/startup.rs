//! Building the agent when the app starts, and shutting it down when it exits.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tauri::test::mock_builder;
use tauri::{RunEvent, WebviewWindowBuilder};
use youyou_agent::testing::Gate;
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentExt as _, ErrorCode, HookRegistry, Plugin, PluginError,
    SessionConfig,
};

use crate::harness::{Harness, allowing, builder, scripted};

/// A plugin whose start takes until the gate opens, and then may fail.
struct Slow {
    gate: Gate,
    fails: bool,
}

#[async_trait]
impl Plugin for Slow {
    fn id(&self) -> &str {
        "slow"
    }

    async fn initialize(&self, _config: Arc<Value>) -> Result<(), PluginError> {
        self.gate.pass().await;
        if self.fails {
            return Err(PluginError::new("no licence"));
        }
        Ok(())
    }

    fn apply(&self, _hooks: &mut HookRegistry) -> Result<(), PluginError> {
        Ok(())
    }
}

// F19
#[test]
fn no_command_can_come_before_the_agent_is_built() {
    let gate = Gate::closed();
    let opening = {
        let gate = gate.clone();
        std::thread::spawn(move || {
            tauri::async_runtime::block_on(gate.arrived(1));
            gate.open();
        })
    };
    let plugin = Slow { gate, fails: false };
    let harness = Harness::with(|agent| agent.plugin(plugin), |plugin| plugin);
    opening.join().unwrap();
    let page = harness.page("main");
    page.session();
}

fn failing(agent: AgentBuilder) -> String {
    let app = mock_builder()
        .plugin(youyou_agent::init(agent))
        .build(allowing());
    app.map(|_| "the app starts").unwrap_err().to_string()
}

// F19
#[test]
fn an_agent_that_cannot_be_built_stops_the_app_with_code_and_message() {
    let error = failing(AgentBuilder::new(AgentConfig::new("m1")));
    assert!(
        error.contains("NO_MODEL_PROVIDER: no model provider is registered"),
        "{error}"
    );
    let plugin = Slow {
        gate: Gate::opened(),
        fails: true,
    };
    let error = failing(builder(&scripted()).plugin(plugin));
    assert!(error.contains("PLUGIN_INIT_FAILED: "), "{error}");
    assert!(error.contains("no licence"), "{error}");
}

// F19
#[tokio::test]
async fn the_agent_is_built_inside_a_tokio_context() {
    let harness = Harness::new();
    let session = harness
        .app
        .agent()
        .create_session(SessionConfig::default())
        .await;
    assert!(session.is_ok());
}

#[test]
fn rust_code_reaches_the_agent_from_app_handle_and_window() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let current = |agent: &Agent| agent.current_session().map(|open| open.id().to_owned());
    assert_eq!(current(harness.app.agent()), Some(session.clone()));
    assert_eq!(current(harness.app.handle().agent()), Some(session.clone()));
    assert_eq!(current(page.window.agent()), Some(session));
}

// F7
#[test]
fn the_exit_of_the_app_shuts_the_agent_down() {
    let provider = scripted();
    let app = mock_builder()
        .plugin(youyou_agent::init(builder(&provider)))
        .build(allowing())
        .unwrap();
    let agent = app.agent().clone();
    let window = WebviewWindowBuilder::new(&app, "main", Default::default())
        .build()
        .unwrap();
    let session = tauri::async_runtime::block_on(agent.create_session(SessionConfig::default()));
    assert!(session.is_ok());
    app.run(move |_, event| {
        if matches!(event, RunEvent::Ready) {
            window.close().unwrap();
        }
    });
    assert!(agent.current_session().is_none());
    let refused = tauri::async_runtime::block_on(agent.create_session(SessionConfig::default()));
    assert_eq!(refused.unwrap_err().code, ErrorCode::AgentShutDown);
}

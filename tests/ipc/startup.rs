//! Building the agent when the app starts, and shutting it down when it exits.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tauri::plugin::TauriPlugin;
use tauri::test::{MockRuntime, mock_builder};
use tauri::{AppHandle, Manager, RunEvent, WebviewWindowBuilder};
use youyou_agent::testing::Gate;
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentExt as _, ErrorCode, HookRegistry, Plugin,
    PluginBuilder, PluginError, SessionConfig, init, init_with,
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

/// What stops an app that this plugin is added to.
fn failing(plugin: TauriPlugin<MockRuntime>) -> String {
    let app = mock_builder().plugin(plugin).build(allowing());
    app.map(|_| "the app starts").unwrap_err().to_string()
}

// F19
#[test]
fn an_agent_that_cannot_be_built_stops_the_app_with_code_and_message() {
    let error = failing(init(AgentBuilder::new(AgentConfig::new("m1"))));
    assert!(
        error.contains("NO_MODEL_PROVIDER: no model provider is registered"),
        "{error}"
    );
    let plugin = Slow {
        gate: Gate::opened(),
        fails: true,
    };
    let error = failing(init(builder(&scripted()).plugin(plugin)));
    assert!(error.contains("PLUGIN_INIT_FAILED: "), "{error}");
    assert!(error.contains("no licence"), "{error}");
}

/// State of the app that the agent needs.
struct Model(String);

/// Another plugin, which brings that state.
fn settings() -> TauriPlugin<MockRuntime> {
    tauri::plugin::Builder::new("settings")
        .setup(|app, _api| {
            app.manage(Model("m1".to_owned()));
            Ok(())
        })
        .build()
}

fn configured(app: &AppHandle<MockRuntime>) -> Result<AgentBuilder, String> {
    let model = app.try_state::<Model>().ok_or("the settings are missing")?;
    Ok(AgentBuilder::new(AgentConfig::new(model.0.as_str())).provider(scripted()))
}

#[test]
fn an_agent_can_be_made_with_the_app_in_hand() {
    let with_options = PluginBuilder::with(configured).cancel_when_unwatched(true);
    for plugin in [init_with(configured), with_options.build()] {
        let app = mock_builder().plugin(settings()).plugin(plugin);
        let app = app.build(allowing()).unwrap();
        let models = app.agent().models();
        let ids: Vec<&str> = models.iter().map(|model| model.model.id.as_str()).collect();
        assert_eq!(ids, ["m1"]);
    }
}

#[test]
fn an_agent_that_cannot_be_made_stops_the_app_with_the_text_of_the_error() {
    let error = failing(init_with(configured));
    assert!(error.contains("the settings are missing"), "{error}");
    let refused = |_: &AppHandle<MockRuntime>| -> Result<AgentBuilder, std::io::Error> {
        Err(std::io::Error::other("no model is chosen"))
    };
    let error = failing(init_with(refused));
    assert!(error.contains("no model is chosen"), "{error}");
}

#[test]
fn the_plugin_can_be_added_while_the_app_is_set_up() {
    let app = mock_builder()
        .setup(|app| {
            app.handle().plugin(init(builder(&scripted())))?;
            Ok(())
        })
        .build(allowing())
        .unwrap();
    let window = WebviewWindowBuilder::new(&app, "main", Default::default())
        .build()
        .unwrap();
    let (told, models) = std::sync::mpsc::channel();
    // The set-up runs when the event loop does.
    app.run(move |app, event| {
        if matches!(event, RunEvent::Ready) {
            told.send(app.agent().models().len()).unwrap();
            window.close().unwrap();
        }
    });
    assert_eq!(models.recv(), Ok(1));
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
        .plugin(init(builder(&provider)))
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

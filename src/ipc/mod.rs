//! How a webview reaches the agent: the Tauri plugin around it.
//!
//! This is the only place that says `tauri::`. It calls `agent`; nothing calls it.
//!
//! - `commands`: one thin function per command
//! - `state`: what the commands share
//! - `requests`: requests that a page may repeat
//! - `subscriptions`, `forward`, `message`: which page watches what, how events get there, and
//!   what a page gets beside them
//! - `bindings`: the one list of commands, for the handler and for TypeScript

pub(crate) mod bindings;
mod commands;
mod forward;
mod message;
mod page;
mod requests;
mod run;
mod state;
mod subscriptions;
#[cfg(feature = "__ipc-test")]
#[doc(hidden)]
pub mod testing;

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use tauri::plugin::TauriPlugin;
use tauri::webview::PageLoadEvent;
use tauri::{AppHandle, Manager, RunEvent, Runtime, WindowEvent};

use crate::agent::error::AgentError;
use crate::{Agent, AgentBuilder};
use run::{Unanswered, wait_for};
use state::Ipc;

/// The id of the plugin: the first part of its commands and permissions.
const PLUGIN_ID: &str = "youyou-agent";

/// What building the agent may take beside its plugins, whose limits are their own.
const BUILD_MARGIN: Duration = Duration::from_secs(60);

/// What an exit waits longer than the agent's own `shutdown_timeout_ms`, for the case that
/// its runtime is blocked.
const EXIT_MARGIN: Duration = Duration::from_secs(1);

/// The Tauri plugin, with its default options.
///
/// The agent is built while the app starts. If that fails, the app does not start, and the
/// error says the code and what to do.
///
/// Pages may call it once a capability of the app grants `youyou-agent:default` to the
/// labels of their windows.
///
/// # Examples
/// ```no_run
/// use youyou_agent::{AgentBuilder, AgentConfig};
///
/// fn add_agent<R: tauri::Runtime>(app: tauri::Builder<R>) -> tauri::Builder<R> {
///     let builder = AgentBuilder::new(AgentConfig::new("my-model"));
///     app.plugin(youyou_agent::init(builder))
/// }
/// ```
#[must_use]
pub fn init<R: Runtime>(builder: AgentBuilder) -> TauriPlugin<R> {
    PluginBuilder::new(builder).build()
}

/// The Tauri plugin, with its default options, for an agent that needs the app: its folders,
/// its settings, the state of plugins that were added before.
///
/// `make` is called once, while the app starts. If it fails, the app does not start, and the
/// error is the one of `make`.
///
/// # Examples
/// ```no_run
/// use tauri::Manager;
/// use youyou_agent::{AgentBuilder, AgentConfig};
///
/// fn add_agent<R: tauri::Runtime>(app: tauri::Builder<R>) -> tauri::Builder<R> {
///     app.plugin(youyou_agent::init_with(|app| {
///         let folder = app.path().app_data_dir()?;
///         let mut config = AgentConfig::new("my-model");
///         config.environment = Some(format!("Data folder: {}", folder.display()));
///         Ok::<_, tauri::Error>(AgentBuilder::new(config))
///     }))
/// }
/// ```
/// What only exists once `setup` runs is reached by adding the plugin there:
/// ```no_run
/// use youyou_agent::{AgentBuilder, AgentConfig};
///
/// fn add_agent<R: tauri::Runtime>(app: tauri::Builder<R>) -> tauri::Builder<R> {
///     app.setup(|app| {
///         let builder = AgentBuilder::new(AgentConfig::new("my-model"));
///         app.handle().plugin(youyou_agent::init(builder))?;
///         Ok(())
///     })
/// }
/// ```
#[must_use]
pub fn init_with<R, F, E>(make: F) -> TauriPlugin<R>
where
    R: Runtime,
    F: FnOnce(&AppHandle<R>) -> Result<AgentBuilder, E> + Send + 'static,
    E: Into<Box<dyn Error>>,
{
    PluginBuilder::with(make).build()
}

type MakeAgent<R> = Box<dyn FnOnce(&AppHandle<R>) -> Result<AgentBuilder, Box<dyn Error>> + Send>;

/// The Tauri plugin, with options.
///
/// # Examples
/// ```no_run
/// use youyou_agent::{AgentBuilder, AgentConfig, PluginBuilder};
///
/// fn add_agent<R: tauri::Runtime>(app: tauri::Builder<R>) -> tauri::Builder<R> {
///     let builder = AgentBuilder::new(AgentConfig::new("my-model"));
///     app.plugin(PluginBuilder::new(builder).cancel_when_unwatched(true).build())
/// }
/// ```
#[must_use = "build it and hand it to tauri::Builder::plugin"]
pub struct PluginBuilder<R: Runtime> {
    make: MakeAgent<R>,
    cancel_when_unwatched: bool,
}

impl<R: Runtime> PluginBuilder<R> {
    /// Begins with an agent's registrations.
    pub fn new(agent: AgentBuilder) -> Self {
        Self::with(|_| Ok::<_, Infallible>(agent))
    }

    /// Begins with a function that makes an agent's registrations while the app starts; see
    /// [`init_with`].
    pub fn with<F, E>(make: F) -> Self
    where
        F: FnOnce(&AppHandle<R>) -> Result<AgentBuilder, E> + Send + 'static,
        E: Into<Box<dyn Error>>,
    {
        Self {
            make: Box::new(|app| make(app).map_err(Into::into)),
            cancel_when_unwatched: false,
        }
    }

    /// Whether a running turn is cancelled when the last window that watched it is
    /// destroyed. Default: it goes on, and is stored. A reload never cancels.
    pub fn cancel_when_unwatched(mut self, cancel: bool) -> Self {
        self.cancel_when_unwatched = cancel;
        self
    }

    /// The plugin, for [`tauri::Builder::plugin`].
    #[must_use]
    pub fn build(self) -> TauriPlugin<R> {
        let Self {
            make,
            cancel_when_unwatched,
        } = self;
        tauri::plugin::Builder::new(PLUGIN_ID)
            .invoke_handler(bindings::handler())
            .setup(move |app, _api| {
                let agent = build_agent(make(app)?)?;
                app.manage(Ipc::new(agent.clone(), cancel_when_unwatched));
                app.manage(agent);
                Ok(())
            })
            .on_page_load(|webview, load| {
                if load.event() == PageLoadEvent::Started
                    && let Some(ipc) = webview.try_state::<Ipc>()
                {
                    ipc.page_loads(webview.label());
                }
            })
            .on_event(on_event)
            .build()
    }
}

/// `block_on` panics inside a Tokio context, and an app may be `#[tokio::main]`: hence a
/// task on Tauri's runtime.
fn build_agent(builder: AgentBuilder) -> Result<Agent, AgentError> {
    let limit = build_limit(&builder);
    match wait_for(limit, builder.build()) {
        Ok(built) => built,
        Err(Unanswered::Late) => Err(AgentError::internal(format!(
            "the agent was not built within {} s; if the app hands its own Tokio runtime to \
             Tauri, that runtime needs more than one thread",
            limit.as_secs()
        ))),
        Err(Unanswered::Never) => Err(AgentError::internal("building the agent panicked")),
    }
}

/// How long a build may take: its plugins have as long as their own limits allow.
fn build_limit(builder: &AgentBuilder) -> Duration {
    builder.plugins_limit().saturating_add(BUILD_MARGIN)
}

fn on_event<R: Runtime>(app: &AppHandle<R>, event: &RunEvent) {
    let Some(ipc) = app.try_state::<Ipc>() else {
        return;
    };
    match event {
        RunEvent::WindowEvent {
            label,
            event: WindowEvent::Destroyed,
            ..
        } => ipc.window_destroyed(label),
        // Not `ExitRequested`: apps that live in the tray prevent that one.
        RunEvent::Exit => ipc.shut_down(),
        _ => {}
    }
}

/// Reaches the agent from Rust code of the app.
pub trait AgentExt<R: Runtime> {
    /// The agent.
    ///
    /// # Panics
    /// If the plugin is not added to the app, as all of Tauri's managed state does.
    fn agent(&self) -> &Agent;
}

impl<R: Runtime, T: Manager<R>> AgentExt<R> for T {
    fn agent(&self) -> &Agent {
        self.state::<Agent>().inner()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{AgentConfig, HookRegistry, Plugin, PluginError};

    struct Nothing(&'static str);

    #[async_trait]
    impl Plugin for Nothing {
        fn id(&self) -> &str {
            self.0
        }

        fn apply(&self, _hooks: &mut HookRegistry) -> Result<(), PluginError> {
            Ok(())
        }
    }

    #[test]
    fn a_build_may_take_as_long_as_all_its_plugins_may_and_a_minute() {
        let config = |plugin_timeout_ms| AgentConfig {
            plugin_timeout_ms,
            ..AgentConfig::new("m1")
        };
        let minute = Duration::from_secs(60);
        let bare = AgentBuilder::new(config(100_000));
        assert_eq!(build_limit(&bare), minute);
        let two = bare.plugin(Nothing("a")).plugin(Nothing("b"));
        // Each is initialised, applied and, if another fails, shut down.
        assert_eq!(build_limit(&two), minute + Duration::from_secs(600));
        let endless = AgentBuilder::new(config(u64::MAX)).plugin(Nothing("a"));
        assert!(build_limit(&endless) > Duration::from_millis(u64::MAX));
    }
}

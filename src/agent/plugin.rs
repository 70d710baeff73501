//! Agent plugins: who may tap into the hooks, and their life cycle.

// Requirements: 3.4 Plugin.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;

use super::contain;
use super::error::caller_error;
use super::hook::HookRegistry;

/// A plugin of the agent (not a Tauri plugin): a set of hook handlers with a life cycle.
///
/// # Order
/// At build all plugins are initialised, then all applied, both in order of
/// registration; `shutdown` runs in reverse order. Each step has
/// `plugin_timeout_ms`. If one fails, those initialised before are shut down and the
/// build fails with `PLUGIN_INIT_FAILED`.
///
/// Begin with [`apply`](Self::apply); [`HookRegistry`] has a table of the hooks and of what
/// each may change.
///
/// # Examples
/// A plugin that forbids one tool:
/// ```
/// use async_trait::async_trait;
/// use youyou_agent::{BeforeToolUse, HookOutcome, HookRegistry, Plugin, PluginError};
///
/// struct NoShell;
///
/// #[async_trait]
/// impl Plugin for NoShell {
///     fn id(&self) -> &str {
///         "no-shell"
///     }
///
///     fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
///         hooks.before_tool_use("forbid", |call: BeforeToolUse| async move {
///             Ok(if &*call.tool_name == "run_command" {
///                 HookOutcome::Abort("commands are not allowed here".into())
///             } else {
///                 HookOutcome::Continue
///             })
///         });
///         Ok(())
///     }
/// }
/// ```
///
/// One with a config, state of its own and handlers at several hooks. A handler is called
/// many times, so it clones what its future takes along:
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// use async_trait::async_trait;
/// use serde_json::{Value, json};
/// use youyou_agent::{
///     AfterToolUse, HookError, HookOutcome, HookRegistry, OnFault, Plugin, PluginError, Tap,
///     TurnStart, TurnStartChange,
/// };
///
/// #[derive(Default)]
/// struct House {
///     turns: Arc<AtomicU64>,
/// }
///
/// #[async_trait]
/// impl Plugin for House {
///     fn id(&self) -> &str {
///         "house"
///     }
///
///     async fn initialize(&self, config: Arc<Value>) -> Result<(), PluginError> {
///         match config["secret"].as_str() {
///             Some(_) => Ok(()),
///             None => Err(PluginError::new("the config needs a \"secret\"")),
///         }
///     }
///
///     fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
///         let turns = Arc::clone(&self.turns);
///         hooks.turn_start("count", move |_turn: TurnStart| {
///             let turns = Arc::clone(&turns);
///             async move {
///                 let number = turns.fetch_add(1, Ordering::Relaxed) + 1;
///                 Ok(HookOutcome::ContinueWith(TurnStartChange {
///                     prompt_sections: vec![format!("This is turn {number}.")],
///                     ..TurnStartChange::default()
///                 }))
///             }
///         });
///         let strict = Tap::named("hide").limit(Duration::from_secs(1)).on_fault(OnFault::Deny);
///         hooks.after_tool_use(strict, |call: AfterToolUse| async move {
///             let secret = call.plugin_config["secret"].as_str();
///             let secret = secret.ok_or_else(|| HookError::new("no secret to hide"))?;
///             Ok(HookOutcome::ContinueWith(call.output.replace(secret, "***")))
///         });
///         Ok(())
///     }
/// }
///
/// let config = json!({ "secret": "hunter2" });
/// // AgentBuilder::new(agent_config).plugin_with_config(House::default(), config)
/// # let _ = config;
/// ```
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    /// Unique among the plugins of an agent.
    fn id(&self) -> &str;

    /// For people; the id unless it is overridden.
    fn display_name(&self) -> &str {
        self.id()
    }

    /// What it does; listed in the system prompt when it is not blank.
    fn description(&self) -> &str {
        ""
    }

    /// Prepares the plugin. `config` is what it was registered with, or null.
    ///
    /// # Errors
    /// Fails the build with `PLUGIN_INIT_FAILED`.
    async fn initialize(&self, config: Arc<Value>) -> Result<(), PluginError> {
        let _ = config;
        Ok(())
    }

    /// Taps into hooks: what is tapped here is the plugin's declaration. Called once, at
    /// build, on a thread that may block.
    ///
    /// # Errors
    /// Fails the build with `PLUGIN_INIT_FAILED`.
    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError>;

    /// Ends the plugin. No handler of it is called any more. Called by
    /// [`Agent::shutdown`](crate::Agent::shutdown), not when an agent is just dropped.
    ///
    /// # Errors
    /// Named in the [`ShutdownReport`](crate::ShutdownReport), and the shutdown goes on.
    async fn shutdown(&self) -> Result<(), PluginError> {
        Ok(())
    }
}

#[async_trait]
impl<T: Plugin + ?Sized> Plugin for Arc<T> {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn display_name(&self) -> &str {
        (**self).display_name()
    }

    fn description(&self) -> &str {
        (**self).description()
    }

    async fn initialize(&self, config: Arc<Value>) -> Result<(), PluginError> {
        (**self).initialize(config).await
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        (**self).apply(hooks)
    }

    async fn shutdown(&self) -> Result<(), PluginError> {
        (**self).shutdown().await
    }
}

caller_error! {
    /// Why a plugin failed.
    PluginError {
        /// What failed.
        message
    }
}

/// The id of a plugin, for messages. Like everything of a caller's, it may panic.
pub(crate) fn id_of(plugin: &Arc<dyn Plugin>) -> String {
    contain::call(|| plugin.id().to_owned()).unwrap_or_else(|panicked| format!("? ({panicked})"))
}

/// Runs a step of a plugin's life: contained, and for a limited time.
///
/// # Errors
/// The message of its error, of a panic, or of the limit.
pub(crate) async fn step<F>(limit: Duration, make: impl FnOnce() -> F) -> Result<(), String>
where
    F: Future<Output = Result<(), PluginError>>,
{
    // The rest of an error is the plugin's own: it is dropped where a panic is contained.
    let run = || {
        let step = make();
        async move { step.await.map_err(|error| error.message) }
    };
    contain::limited(limit, run)
        .await
        .unwrap_or_else(|failure| Err(failure.to_string()))
}

/// Shuts plugins down in reverse order, each within `limit` and all before `deadline`.
/// Returns what went wrong.
pub(crate) async fn shut_down(
    plugins: &[Arc<dyn Plugin>],
    limit: Duration,
    deadline: Option<Instant>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut left = u32::try_from(plugins.len()).unwrap_or(u32::MAX);
    for plugin in plugins.iter().rev() {
        // One that hangs leaves the others their share of the time.
        let share = deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()) / left.max(1));
        left = left.saturating_sub(1);
        let limit = share.map_or(limit, |share| share.min(limit));
        let Err(problem) = step(limit, || plugin.shutdown()).await else {
            continue;
        };
        let id = id_of(plugin);
        tracing::warn!(plugin = %id, %problem, "shutting the plugin down failed");
        problems.push(format!(
            "shutting down the plugin \"{id}\" failed: {problem}",
        ));
    }
    problems
}

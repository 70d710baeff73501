//! Registration and the build: everything is checked before anything is started (chapters 3
//! and 6.1).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Agent;
use super::catalog::Catalog;
use super::config::AgentConfig;
use super::contain;
use super::core::Core;
use super::error::AgentError;
use super::event_log::EventLog;
use super::hook::HookRegistry;
use super::hook::registry::Taps;
use super::memory::MemoryStorage;
use super::plugin::{Plugin, id_of, shut_down, step};
use super::provider::ModelProvider;
use super::skill::{SkillDefinition, SkillSet, is_legal_name};
use super::storage::SessionStorage;
use super::tool::ToolHandler;
use super::tool::set::ToolSet;

/// Collects what an agent is made of, and builds it.
///
/// In a Tauri app the builder is handed to the plugin, which builds it while the app starts.
///
/// # Examples
/// ```
/// # use async_trait::async_trait;
/// # use tokio_util::sync::CancellationToken;
/// # use youyou_agent::*;
/// # struct MyProvider;
/// # #[async_trait]
/// # impl ModelProvider for MyProvider {
/// #     fn id(&self) -> &str { "mine" }
/// #     fn models(&self) -> Vec<ModelInfo> {
/// #         vec![ModelInfo::new("my-model", "Mine", 8_000, Capabilities::default())]
/// #     }
/// #     async fn chat(&self, _: ChatRequest, _: CancellationToken) -> Result<ChatStream, ProviderError> {
/// #         Ok(ChatEvent::stream([ChatEvent::text("Hi."), ChatEvent::done()]))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), AgentError> {
/// let agent = AgentBuilder::new(AgentConfig::new("my-model"))
///     .provider(MyProvider)
///     .skill(SkillDefinition::new("brief", "Answer in one sentence."))
///     .build()
///     .await?;
/// let session = agent.create_session(SessionConfig::default()).await?;
/// let outcome = session.send("Hello")?.outcome().await;
/// assert_eq!(&*outcome.assistant_output, "Hi.");
/// # Ok(())
/// # }
/// ```
pub struct AgentBuilder {
    config: AgentConfig,
    providers: Vec<Arc<dyn ModelProvider>>,
    tools: Vec<Arc<dyn ToolHandler>>,
    skills: Vec<SkillDefinition>,
    plugins: Vec<(Arc<dyn Plugin>, Arc<Value>)>,
    session_storages: Vec<Arc<dyn SessionStorage>>,
    memory_storages: Vec<Arc<dyn MemoryStorage>>,
}

impl AgentBuilder {
    /// A builder with this configuration and nothing registered.
    #[must_use]
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            providers: Vec::new(),
            tools: Vec::new(),
            skills: Vec::new(),
            plugins: Vec::new(),
            session_storages: Vec::new(),
            memory_storages: Vec::new(),
        }
    }

    /// Registers a model provider, owned or in an `Arc`; at least one is needed.
    #[must_use]
    pub fn provider(mut self, provider: impl ModelProvider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Registers model providers of any types, in order.
    #[must_use]
    pub fn providers(
        mut self,
        providers: impl IntoIterator<Item = Arc<dyn ModelProvider>>,
    ) -> Self {
        self.providers.extend(providers);
        self
    }

    /// Registers a tool, owned or in an `Arc`: one of [`tool::typed`](crate::tool::typed), or any
    /// [`ToolHandler`].
    #[must_use]
    pub fn tool(mut self, tool: impl ToolHandler) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Registers tools of any types.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn ToolHandler>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Registers a skill.
    #[must_use]
    pub fn skill(mut self, skill: SkillDefinition) -> Self {
        self.skills.push(skill);
        self
    }

    /// Registers an agent plugin, owned or in an `Arc`, without a config (it gets null).
    #[must_use]
    pub fn plugin(self, plugin: impl Plugin) -> Self {
        self.plugin_with_config(plugin, Value::Null)
    }

    /// Registers an agent plugin with its config.
    #[must_use]
    pub fn plugin_with_config(mut self, plugin: impl Plugin, config: Value) -> Self {
        self.plugins.push((Arc::new(plugin), Arc::new(config)));
        self
    }

    /// Registers the session storage, owned or in an `Arc`; at most one.
    #[must_use]
    pub fn session_storage(mut self, storage: impl SessionStorage) -> Self {
        self.session_storages.push(Arc::new(storage));
        self
    }

    /// Registers the memory storage, owned or in an `Arc`; at most one.
    #[must_use]
    pub fn memory_storage(mut self, storage: impl MemoryStorage) -> Self {
        self.memory_storages.push(Arc::new(storage));
        self
    }

    /// The longest time the plugins can take in a build: each is initialised and applied and,
    /// where a later one fails, shut down, all within `plugin_timeout_ms`.
    #[cfg(feature = "tauri")]
    pub(crate) fn plugins_limit(&self) -> Duration {
        let calls = u64::try_from(self.plugins.len())
            .unwrap_or(u64::MAX)
            .saturating_mul(3);
        Duration::from_millis(self.config.plugin_timeout_ms.saturating_mul(calls))
    }

    /// Checks everything, then initialises all plugins, then applies them. Called within a
    /// tokio runtime, which the agent keeps and does all its work on.
    ///
    /// # Errors
    /// `INVALID_CONFIG`, `NO_MODEL_PROVIDER`, `NAME_CONFLICT`, `SKILL_DEPENDENCY_NOT_MET`,
    /// `STORAGE_DUPLICATE`, `INVALID_DEFAULT_MODEL`: nothing was started.
    /// `PLUGIN_INIT_FAILED`: the plugins initialised before were shut down in reverse order.
    pub async fn build(self) -> Result<Agent, AgentError> {
        let runtime = Handle::try_current().map_err(|_| {
            AgentError::internal("AgentBuilder::build must be called within a tokio runtime")
        })?;
        self.config.validate()?;
        let catalog = Catalog::new(self.providers, &runtime)?;
        let tools = ToolSet::new(self.tools)?;
        check_skills(&self.skills, &tools)?;
        check_plugins(&self.plugins)?;
        let sessions = at_most_one("session", self.session_storages)?;
        let memories = at_most_one("memory", self.memory_storages)?;
        check_models(&self.config, &catalog)?;

        let limit = Duration::from_millis(self.config.plugin_timeout_ms);
        let taps = start_plugins(&self.plugins, limit).await?;
        Ok(Agent::new(Core {
            notes: Arc::new(self.config.notes.clone()),
            event_log: EventLog::new(self.config.event_log_limit_bytes),
            config: self.config,
            catalog,
            tools,
            skills: SkillSet::new(self.skills),
            taps,
            plugins: self.plugins.into_iter().map(|(plugin, _)| plugin).collect(),
            sessions,
            memories,
            runtime,
            stopping: CancellationToken::new(),
            stopping_since: OnceLock::new(),
            closes: TaskTracker::new(),
            left_out: Mutex::default(),
        }))
    }
}

fn check_skills(skills: &[SkillDefinition], tools: &ToolSet) -> Result<(), AgentError> {
    let mut names = HashSet::new();
    for skill in skills {
        if !is_legal_name(&skill.name) {
            return Err(AgentError::invalid_config(
                "skill",
                &format!(
                    "the name \"{}\" must be made of letters, digits, - and _",
                    skill.name
                ),
            ));
        }
        if !names.insert(skill.name.as_str()) {
            return Err(AgentError::name_conflict("skill", &skill.name));
        }
        for tool in &skill.required_tools {
            if tools.get(tool).is_none() {
                return Err(AgentError::skill_dependency_not_met(&skill.name, tool));
            }
        }
    }
    Ok(())
}

fn check_plugins(plugins: &[(Arc<dyn Plugin>, Arc<Value>)]) -> Result<(), AgentError> {
    let mut ids = HashSet::new();
    for (plugin, _) in plugins {
        let id = contain::call(|| plugin.id().to_owned()).map_err(|panicked| {
            AgentError::invalid_config("plugin", &format!("its id failed: {panicked}"))
        })?;
        if id.trim().is_empty() {
            return Err(AgentError::invalid_config(
                "plugin",
                "the id of a plugin must not be blank",
            ));
        }
        if !ids.insert(id.clone()) {
            return Err(AgentError::name_conflict("plugin", &id));
        }
    }
    Ok(())
}

fn at_most_one<S: ?Sized>(
    kind: &str,
    mut storages: Vec<Arc<S>>,
) -> Result<Option<Arc<S>>, AgentError> {
    if storages.len() > 1 {
        return Err(AgentError::storage_duplicate(kind));
    }
    Ok(storages.pop())
}

fn check_models(config: &AgentConfig, catalog: &Catalog) -> Result<(), AgentError> {
    let known = catalog.seen_ids();
    if !known.contains(&config.default_model) {
        let error = AgentError::invalid_default_model(&config.default_model, &known);
        return Err(catalog.naming_the_silent(error));
    }
    let optional = [
        ("compact_model", &config.compact_model),
        ("memory_model", &config.memory_model),
    ];
    for (field, model) in optional {
        if let Some(model) = model.as_ref().filter(|model| !known.contains(model)) {
            tracing::warn!("{field}: no provider declares \"{model}\"; its use falls back");
        }
    }
    Ok(())
}

/// Initialises all, then applies all. If one fails, those initialised are shut down.
async fn start_plugins(
    plugins: &[(Arc<dyn Plugin>, Arc<Value>)],
    limit: Duration,
) -> Result<Taps, AgentError> {
    let mut initialized: Vec<Arc<dyn Plugin>> = Vec::with_capacity(plugins.len());
    for (plugin, config) in plugins {
        let Err(reason) = step(limit, || plugin.initialize(Arc::clone(config))).await else {
            initialized.push(Arc::clone(plugin));
            continue;
        };
        shut_down(&initialized, limit, None).await;
        return Err(AgentError::plugin_init_failed(
            &id_of(plugin),
            "initialize",
            &reason,
        ));
    }
    let mut hooks = HookRegistry::new();
    for (plugin, config) in plugins {
        hooks.enter(&id_of(plugin), config);
        match apply(plugin, hooks, limit).await {
            Ok(applied) => hooks = applied,
            Err(reason) => {
                shut_down(&initialized, limit, None).await;
                return Err(AgentError::plugin_init_failed(
                    &id_of(plugin),
                    "apply",
                    &reason,
                ));
            }
        }
    }
    let taps = hooks.into_taps();
    if taps.is_err() {
        shut_down(&initialized, limit, None).await;
    }
    taps
}

/// Runs the synchronous `apply` where it may block, so that its limit holds.
async fn apply(
    plugin: &Arc<dyn Plugin>,
    mut hooks: HookRegistry,
    limit: Duration,
) -> Result<HookRegistry, String> {
    let plugin = Arc::clone(plugin);
    let applying = tokio::task::spawn_blocking(move || {
        let applied = contain::call(|| plugin.apply(&mut hooks).map_err(|error| error.message));
        (applied, hooks)
    });
    match tokio::time::timeout(limit, applying).await {
        Ok(Ok((Ok(Ok(())), hooks))) => Ok(hooks),
        Ok(Ok((Ok(Err(message)), _))) => Err(message),
        Ok(Ok((Err(panicked), _))) => Err(panicked.to_string()),
        Ok(Err(stopped)) => Err(stopped.to_string()),
        Err(_) => Err(format!("it did not answer within {} ms", limit.as_millis())),
    }
}

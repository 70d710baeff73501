//! What an agent and a session are configured with (chapter 4).

use serde::{Deserialize, Serialize};

use super::error::AgentError;
use super::notes::Notes;
use super::provider::{ReasoningEffort, ResponseFormat};

/// Most sessions that can be open at a time.
const MAX_OPEN_SESSIONS: u32 = 64;

/// Configuration of an agent. Every field but `default_model` has a default.
///
/// A time or a number of 0 is refused by the build with `INVALID_CONFIG`, but for those that
/// say what 0 means and for `max_retries`, where it means none.
///
/// # Examples
/// ```
/// use youyou_agent::AgentConfig;
///
/// let config = AgentConfig {
///     system_instructions: vec!["Answer briefly.".into()],
///     max_tool_calls_per_turn: 20,
///     ..AgentConfig::new("gpt-5")
/// };
/// assert_eq!(config.tool_timeout_ms, 120_000);
/// ```
/// It can be read from a file: fields that are left out have their defaults.
/// ```
/// use youyou_agent::AgentConfig;
///
/// let text = r#"{ "default_model": "gpt-5", "max_retries": 5 }"#;
/// let config: AgentConfig = serde_json::from_str(text)?;
/// assert_eq!((config.max_retries, config.tool_timeout_ms), (5, 120_000));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    /// Model of a session that names none. A provider must have it when the agent is built,
    /// else `INVALID_DEFAULT_MODEL`.
    pub default_model: String,
    /// System instructions, in order.
    pub system_instructions: Vec<String>,
    /// Personality, a section of its own in the system prompt.
    pub personality: Option<String>,
    /// Facts about the surroundings (operating system, working directory, time), a line each.
    pub environment: Option<String>,
    /// Time limit of a tool call, in milliseconds. Default 120,000.
    pub tool_timeout_ms: u64,
    /// Share of the model's window at which the context is compacted, 0 to 1. Default 0.8.
    pub compact_threshold: f64,
    /// Model that writes summaries; absent, or one that no provider has: the session's.
    pub compact_model: Option<String>,
    /// What that model is told; absent: a built-in prompt for a hand-over.
    pub compact_prompt: Option<String>,
    /// Whole units (a user message, or an answer with its results) kept by a truncation.
    /// The newest one and the latest user message always are, also with 0. Default 8.
    pub compact_keep_recent: u32,
    /// Tool calls in one turn. One that asks for more fails with `MAX_TOOL_CALLS_EXCEEDED`.
    /// Default 50.
    pub max_tool_calls_per_turn: u32,
    /// Model that extracts memories; absent, or one that no provider has: the session's.
    pub memory_model: Option<String>,
    /// Turns between two extractions in the background. Default 10.
    pub memory_checkpoint_interval: u32,
    /// Memories in the system prompt; 0 means no section and no search. Default 20.
    pub memory_max_items: u32,
    /// Namespace of the memories; absent: the empty one.
    pub memory_namespace: Option<String>,
    /// Time limit of an extraction, in milliseconds. Default 15,000.
    pub memory_timeout_ms: u64,
    /// Time limit of the search at a session's first turn, in milliseconds. Default 2,000.
    pub memory_search_timeout_ms: u64,
    /// Time limit of a hook handler, in milliseconds, unless its tap has its own. Default 30,000.
    pub hook_timeout_ms: u64,
    /// Time limit of a plugin's initialize, apply and shutdown, each, in milliseconds.
    /// Default 10,000.
    pub plugin_timeout_ms: u64,
    /// Longest silence of a provider between two events, in milliseconds; 0 means no limit.
    /// Default 300,000.
    pub provider_idle_timeout_ms: u64,
    /// Automatic retries of a model call that failed before anything was shown. Default 2.
    pub max_retries: u32,
    /// Delay before the first retry, in milliseconds, doubling. Default 500.
    pub retry_base_ms: u64,
    /// Longest delay, in milliseconds; a server that asks for more fails at once.
    /// Default 60,000.
    pub retry_max_delay_ms: u64,
    /// Time limit of a storage call, in milliseconds. Default 10,000.
    pub storage_timeout_ms: u64,
    /// Time limit of the whole shutdown, in milliseconds. Default 5,000.
    pub shutdown_timeout_ms: u64,
    /// Longest output of a tool, in bytes; of a longer one the middle is cut out.
    /// Default 1,048,576.
    pub tool_output_limit_bytes: usize,
    /// Longest arguments of a tool call, in bytes of their JSON; longer ones are an error result.
    /// Default 4,194,304.
    pub tool_arguments_limit_bytes: usize,
    /// Longest response of a model, in bytes of text, reasoning and arguments; a longer one is
    /// cut there, kept, and told by the stop reason `Length`. Default 33,554,432.
    pub response_limit_bytes: usize,
    /// What the events of ended turns may take in memory, in bytes, roughly: they are kept for late
    /// and for slow subscribers. Above it the oldest turns are dropped. Default 67,108,864.
    pub event_log_limit_bytes: usize,
    /// How many sessions can be open at a time, 1 to 64. Default 1.
    pub max_open_sessions: u32,
    /// The fixed words that the model reads.
    pub notes: Notes,
    /// Whether the system prompt describes the tools, beside the definitions that every
    /// request carries. Default true.
    pub tool_definitions_in_prompt: bool,
}

/// The defaults without a model: the build fails until there is one.
impl Default for AgentConfig {
    fn default() -> Self {
        Self::new("")
    }
}

impl AgentConfig {
    /// The defaults with this model.
    pub fn new(default_model: impl Into<String>) -> Self {
        Self {
            default_model: default_model.into(),
            system_instructions: Vec::new(),
            personality: None,
            environment: None,
            tool_timeout_ms: 120_000,
            compact_threshold: 0.8,
            compact_model: None,
            compact_prompt: None,
            compact_keep_recent: 8,
            max_tool_calls_per_turn: 50,
            memory_model: None,
            memory_checkpoint_interval: 10,
            memory_max_items: 20,
            memory_namespace: None,
            memory_timeout_ms: 15_000,
            memory_search_timeout_ms: 2_000,
            hook_timeout_ms: 30_000,
            plugin_timeout_ms: 10_000,
            provider_idle_timeout_ms: 300_000,
            max_retries: 2,
            retry_base_ms: 500,
            retry_max_delay_ms: 60_000,
            storage_timeout_ms: 10_000,
            shutdown_timeout_ms: 5_000,
            tool_output_limit_bytes: 1_048_576,
            tool_arguments_limit_bytes: 4_194_304,
            response_limit_bytes: 33_554_432,
            event_log_limit_bytes: 67_108_864,
            max_open_sessions: 1,
            notes: Notes::default(),
            tool_definitions_in_prompt: true,
        }
    }

    /// # Errors
    /// `INVALID_CONFIG` naming the first field whose value is not allowed.
    pub(crate) fn validate(&self) -> Result<(), AgentError> {
        if !(0.0..=1.0).contains(&self.compact_threshold) {
            return Err(AgentError::invalid_config(
                "compact_threshold",
                &format!("must be between 0 and 1, is {}", self.compact_threshold),
            ));
        }
        let at_least_one = [
            ("tool_timeout_ms", self.tool_timeout_ms),
            (
                "max_tool_calls_per_turn",
                u64::from(self.max_tool_calls_per_turn),
            ),
            (
                "memory_checkpoint_interval",
                u64::from(self.memory_checkpoint_interval),
            ),
            ("memory_timeout_ms", self.memory_timeout_ms),
            ("memory_search_timeout_ms", self.memory_search_timeout_ms),
            ("hook_timeout_ms", self.hook_timeout_ms),
            ("plugin_timeout_ms", self.plugin_timeout_ms),
            ("retry_base_ms", self.retry_base_ms),
            ("retry_max_delay_ms", self.retry_max_delay_ms),
            ("storage_timeout_ms", self.storage_timeout_ms),
            ("shutdown_timeout_ms", self.shutdown_timeout_ms),
            (
                "tool_output_limit_bytes",
                self.tool_output_limit_bytes as u64,
            ),
            (
                "tool_arguments_limit_bytes",
                self.tool_arguments_limit_bytes as u64,
            ),
            ("response_limit_bytes", self.response_limit_bytes as u64),
            ("event_log_limit_bytes", self.event_log_limit_bytes as u64),
            ("max_open_sessions", u64::from(self.max_open_sessions)),
        ];
        match at_least_one.iter().find(|(_, value)| *value == 0) {
            Some((field, _)) => Err(AgentError::invalid_config(field, "must be at least 1")),
            None if self.max_open_sessions > MAX_OPEN_SESSIONS => Err(AgentError::invalid_config(
                "max_open_sessions",
                &format!(
                    "must be at most {MAX_OPEN_SESSIONS}, is {}",
                    self.max_open_sessions
                ),
            )),
            None => match self.notes.blank_field() {
                Some(field) => Err(AgentError::invalid_config(
                    &format!("notes.{field}"),
                    "must not be blank",
                )),
                None => Ok(()),
            },
        }
    }
}

/// What a new session is created with. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SessionConfig {
    /// The model; absent: `default_model`.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub model_id: Option<String>,
    /// The title; absent: the user's first words.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub title: Option<String>,
    /// System instructions instead of the agent's.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub system_instructions: Option<Vec<String>>,
    /// Personality instead of the agent's.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub personality: Option<String>,
    /// Environment instead of the agent's; not stored, so it is given again on resume.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub environment: Option<String>,
    /// Namespace of the memories instead of the agent's.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub memory_namespace: Option<String>,
    /// Closes the open session first instead of failing with `SESSION_BUSY`.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub replace: bool,
}

/// How a stored session is opened again. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ResumeOptions {
    /// A model instead of the stored one.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub model_id: Option<String>,
    /// Environment instead of the agent's.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub environment: Option<String>,
    /// Closes the open session first instead of failing with `SESSION_BUSY`.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub replace: bool,
}

/// What a message is sent with. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SendOptions {
    /// A model for this and later turns.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub model_id: Option<String>,
    /// Sampling temperature of this turn.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub temperature: Option<f32>,
    /// Upper limit of each answer of this turn, in tokens.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub max_tokens: Option<u32>,
    /// How much the model should reason in this turn.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The shape each answer of this turn must have.
    #[cfg_attr(feature = "bindings", specta(optional))]
    pub response_format: Option<ResponseFormat>,
}

impl SendOptions {
    /// # Errors
    /// `INVALID_INPUT` naming the first option whose value no model takes.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let refused = |option: &str, reason: &str| {
            Err(AgentError::invalid_input(format!("{option} {reason}")))
        };
        if let Some(temperature) = self.temperature
            && !(temperature.is_finite() && temperature >= 0.0)
        {
            return refused("temperature", "must be a number of at least 0");
        }
        if self.max_tokens == Some(0) {
            return refused("max_tokens", "must be at least 1");
        }
        if let Some(format) = &self.response_format
            && !format.schema.is_object()
        {
            return refused("response_format", "needs a schema that is a JSON object");
        }
        Ok(())
    }
}

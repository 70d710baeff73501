//! One constructor per error code: its message, its origin, and whether trying again may help.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AgentError, ErrorCode, ErrorOrigin};
use crate::agent::provider::{ProviderError, ProviderErrorKind};
use crate::agent::storage::{StorageError, StorageErrorKind};
use crate::agent::text::excerpt;

impl AgentError {
    /// `NO_MODEL_PROVIDER`.
    #[must_use]
    pub fn no_model_provider() -> Self {
        Self::new(
            ErrorCode::NoModelProvider,
            ErrorOrigin::Agent,
            "no model provider is registered; call AgentBuilder::provider at least once",
        )
    }

    /// `NAME_CONFLICT`: two registrations of one `kind` share `name`.
    #[must_use]
    pub fn name_conflict(kind: &str, name: &str) -> Self {
        Self::new(
            ErrorCode::NameConflict,
            ErrorOrigin::Agent,
            format!("the {kind} \"{name}\" is registered twice; names must be unique"),
        )
    }

    /// `SKILL_DEPENDENCY_NOT_MET`: `skill` requires `tool`.
    #[must_use]
    pub fn skill_dependency_not_met(skill: &str, tool: &str) -> Self {
        Self::new(
            ErrorCode::SkillDependencyNotMet,
            ErrorOrigin::Agent,
            format!("the skill \"{skill}\" requires the tool \"{tool}\", which is not registered"),
        )
    }

    /// `PLUGIN_INIT_FAILED`: `plugin` failed in `phase` (initialize or apply).
    #[must_use]
    pub fn plugin_init_failed(plugin: &str, phase: &str, reason: &str) -> Self {
        Self::new(
            ErrorCode::PluginInitFailed,
            ErrorOrigin::Plugin,
            format!("the plugin \"{plugin}\" failed in {phase}: {reason}"),
        )
    }

    /// `STORAGE_DUPLICATE`: a second storage of one `kind`.
    #[must_use]
    pub fn storage_duplicate(kind: &str) -> Self {
        Self::new(
            ErrorCode::StorageDuplicate,
            ErrorOrigin::Agent,
            format!("a second {kind} storage was registered; at most one is allowed"),
        )
    }

    /// `INVALID_DEFAULT_MODEL`.
    #[must_use]
    pub fn invalid_default_model(model: &str, known: &[String]) -> Self {
        Self::new(
            ErrorCode::InvalidDefaultModel,
            ErrorOrigin::Agent,
            format!(
                "the default model \"{model}\" is not declared by any provider; declared are: {}",
                join_or_none(known)
            ),
        )
    }

    /// `INVALID_CONFIG`: `field` has a value that is not allowed.
    #[must_use]
    pub fn invalid_config(field: &str, reason: &str) -> Self {
        Self::new(
            ErrorCode::InvalidConfig,
            ErrorOrigin::Agent,
            format!("{field}: {reason}"),
        )
    }

    /// `SESSION_BUSY` with what is in the way and what to do.
    #[must_use]
    pub fn session_busy(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::SessionBusy, ErrorOrigin::Agent, message).retryable()
    }

    /// `MODEL_NOT_SUPPORTED`: no provider declares `model`.
    #[must_use]
    pub fn model_not_supported(model: &str, known: &[String]) -> Self {
        Self::new(
            ErrorCode::ModelNotSupported,
            ErrorOrigin::Agent,
            format!(
                "no provider declares the model \"{}\"; choose one of: {}",
                quoted(model),
                join_or_none(known)
            ),
        )
    }

    /// `PROVIDER_ERROR`; whether it is retryable depends on the kind.
    #[must_use]
    pub fn provider(provider: &str, error: &ProviderError) -> Self {
        let mut this = Self::new(
            ErrorCode::ProviderError,
            ErrorOrigin::Provider,
            format!("{provider}: {}", error.message),
        );
        this.retryable = error.kind.is_retryable();
        this.details = Some(serde_json::json!({ "kind": error.kind }));
        this.cause = Some(Arc::new(error.clone()));
        if let ProviderErrorKind::RateLimited { retry_after_ms } = &error.kind {
            this.retry_after_ms = *retry_after_ms;
        }
        this
    }

    /// `TOOL_EXECUTION_ERROR`.
    #[must_use]
    pub fn tool_execution(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ToolExecutionError, ErrorOrigin::Tool, message)
    }

    /// `TOOL_TIMEOUT`: `tool` did not end within `limit_ms` milliseconds.
    #[must_use]
    pub fn tool_timeout(tool: &str, limit_ms: u64) -> Self {
        Self::new(
            ErrorCode::ToolTimeout,
            ErrorOrigin::Tool,
            format!(
                "the tool \"{tool}\" did not finish within {limit_ms} ms and was stopped; its effects are unknown"
            ),
        )
        .retryable()
    }

    /// `TOOL_NOT_FOUND`, with the names that exist.
    #[must_use]
    pub fn tool_not_found(tool: &str, known: &[&str]) -> Self {
        Self::new(
            ErrorCode::ToolNotFound,
            ErrorOrigin::Tool,
            format!(
                "there is no tool \"{}\"; available tools: {}",
                quoted(tool),
                join_or_none(known)
            ),
        )
    }

    /// `SKILL_NOT_FOUND`, with the nearest names and the way to send the text as it is.
    #[must_use]
    pub fn skill_not_found(skill: &str, nearest: &[&str]) -> Self {
        let hint = if nearest.is_empty() {
            String::new()
        } else {
            let names: Vec<String> = nearest.iter().map(|name| format!("/{name}")).collect();
            format!(" Did you mean {}?", names.join(" or "))
        };
        Self::new(
            ErrorCode::SkillNotFound,
            ErrorOrigin::Agent,
            format!(
                "there is no skill \"/{skill}\".{hint} To send the text as it is, write \"//{skill}\"",
                skill = quoted(skill)
            ),
        )
    }

    /// `SESSION_NOT_FOUND`.
    #[must_use]
    pub fn session_not_found(session: &str) -> Self {
        Self::new(
            ErrorCode::SessionNotFound,
            ErrorOrigin::Agent,
            format!("there is no session \"{}\"", quoted(session)),
        )
    }

    /// `STORAGE_ERROR`: what the agent was doing and why it failed.
    #[must_use]
    pub fn storage(doing: &str, reason: &str) -> Self {
        Self::new(
            ErrorCode::StorageError,
            ErrorOrigin::Storage,
            format!("{doing}: {reason}"),
        )
        .retryable()
    }

    /// `STORAGE_ERROR` out of a storage's own error: retryable unless the session was continued
    /// elsewhere.
    pub(crate) fn from_storage(doing: &str, error: StorageError) -> Self {
        let mut this = Self::storage(doing, &error.message);
        if error.kind == StorageErrorKind::Conflict {
            this.retryable = false;
            this.details = Some(serde_json::json!({ "kind": "conflict" }));
        }
        this.cause = Some(Arc::new(error));
        this
    }

    /// Whether the session was continued elsewhere, so that nothing more can be written to it.
    pub(crate) fn is_storage_conflict(&self) -> bool {
        let cause = self.cause.as_deref();
        let error = cause.and_then(|cause| cause.downcast_ref::<StorageError>());
        error.is_some_and(|error| error.kind == StorageErrorKind::Conflict)
    }

    /// `MAX_TOOL_CALLS_EXCEEDED`.
    #[must_use]
    pub fn max_tool_calls_exceeded(limit: u32) -> Self {
        Self::new(
            ErrorCode::MaxToolCallsExceeded,
            ErrorOrigin::Agent,
            format!(
                "the limit of {limit} tool calls in one turn was reached; send a message to go on"
            ),
        )
    }

    /// `COMPACT_ERROR`.
    #[must_use]
    pub fn compact(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::CompactError, ErrorOrigin::Agent, message)
    }

    /// `REQUEST_CANCELLED`.
    #[must_use]
    pub fn request_cancelled(what: &str) -> Self {
        Self::new(
            ErrorCode::RequestCancelled,
            ErrorOrigin::Agent,
            format!("{what} was cancelled"),
        )
        .retryable()
    }

    /// `INVALID_INPUT`.
    #[must_use]
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, ErrorOrigin::Agent, message)
    }

    /// `CONTENT_NOT_SUPPORTED`: `model` cannot take `content`.
    #[must_use]
    pub fn content_not_supported(model: &str, content: &str) -> Self {
        Self::new(
            ErrorCode::ContentNotSupported,
            ErrorOrigin::Agent,
            format!(
                "the model \"{model}\" cannot take {content}; choose another model or leave it out"
            ),
        )
    }

    /// `HOOK_ABORTED`: the plugin `plugin` refused at `hook`.
    #[must_use]
    pub fn hook_aborted(plugin: &str, hook: &str, reason: &str) -> Self {
        Self::new(
            ErrorCode::HookAborted,
            ErrorOrigin::Plugin,
            format!("the plugin \"{plugin}\" refused ({hook}): {reason}"),
        )
    }

    /// `AGENT_SHUT_DOWN`.
    #[must_use]
    pub fn agent_shut_down() -> Self {
        Self::new(
            ErrorCode::AgentShutDown,
            ErrorOrigin::Agent,
            "the agent was shut down; nothing can be started any more",
        )
    }

    /// `INTERNAL`: a fault of the agent, such as a contained panic.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, ErrorOrigin::Agent, message)
    }
}

/// Longest quotation of what a message is about, in characters.
const QUOTED: usize = 200;
/// Most names that a message lists.
const LISTED: usize = 30;

/// What a message is about, shortened: it may come from a page or a model.
fn quoted(text: &str) -> Cow<'_, str> {
    excerpt(text, QUOTED)
}

fn join_or_none<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<Cow<'_, str>> = names
        .iter()
        .take(LISTED)
        .map(|name| quoted(name.as_ref()))
        .collect();
    match names.len() - shown.len() {
        _ if names.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

//! A complete LLM agent for Tauri apps.

mod agent;
#[cfg(feature = "testing")]
pub mod testing;

pub use agent::builder::AgentBuilder;
pub use agent::catalog::ModelEntry;
pub use agent::compaction::CompactOutcome;
pub use agent::config::{AgentConfig, ResumeOptions, SessionConfig};
pub use agent::error::{AgentError, ErrorCode, ErrorSource};
pub use agent::event::{AgentEvent, AgentEventKind, CompactMethod, TurnStatus};
pub use agent::hook::{
    AfterToolUse, BeforeCompact, BeforeToolUse, Hook, HookError, HookOutcome, HookRegistry,
    HookResult, OnFault, SessionEnd, SessionStart, Tap, TurnEnd, TurnStart, TurnStartChange,
};
pub use agent::memory::{Memory, MemoryStorage};
pub use agent::message::{
    AssistantMessage, AssistantPart, ContentBlock, Message, Messages, MessagesIter, ProviderData,
    ToolResultMessage, UserInput, UserMessage, UserOrigin,
};
pub use agent::outlet::{Joining, Subscription, Turn, TurnEnding, TurnOutcome};
pub use agent::plugin::{Plugin, PluginError};
pub use agent::provider::{
    Capabilities, ChatEvent, ChatRequest, ChatStream, ModelInfo, ModelProvider, PromptBlock,
    ProviderError, ProviderErrorKind, ReasoningEffort, StopReason, ToolSpec, Usage,
};
pub use agent::session::{SendOptions, Session, SessionInfo, SessionState};
pub use agent::skill::{SkillDefinition, SkillInfo};
pub use agent::storage::{
    CompactionRecord, Interruption, ListPage, MessageStatus, SessionEvent, SessionEventKind,
    SessionLog, SessionMetadata, SessionOverrides, SessionStorage, SessionSummary,
    ShortenedResult, StorageError,
};
pub use agent::tool::{
    self, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInfo, ToolInput, ToolOutput,
};
pub use agent::{Agent, HistoryPage, ShutdownReport};

//! The traits and types that most apps name: `use youyou_agent::prelude::*;`.

pub use crate::{
    Agent, AgentBuilder, AgentConfig, AgentError, AgentEvent, AgentEventKind, AssistantPart,
    CancellationToken, Capabilities, ChatEvent, ChatRequest, ChatStream, Completion, ContentBlock,
    ErrorCode, HookOutcome, HookRegistry, Message, ModelInfo, ModelProvider, Plugin, PluginError,
    ProviderError, ProviderErrorKind, ResumeOptions, SendOptions, Session, SessionConfig,
    SessionStorage, SkillDefinition, StopReason, ToolContext, ToolDefinition, ToolError,
    ToolHandler, ToolInput, ToolOutput, TurnStatus, Usage, UserInput, async_trait, tool,
};
#[cfg(feature = "tauri")]
pub use crate::{AgentExt, PluginBuilder};

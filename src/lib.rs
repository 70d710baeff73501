//! A complete LLM agent for Tauri apps: sessions, streaming turns, tools, hooks, skills,
//! compaction and memory. Keys and tools stay in Rust; the page only shows.
//!
//! You register what the agent is made of; nothing concrete is built in.
//!
//! | you implement | for | needed |
//! |---|---|---|
//! | [`ModelProvider`] | talking to a language model | at least one |
//! | [`ToolHandler`], or [`tool::typed`] | what the model can do | any number |
//! | [`SkillDefinition`] | prompts the user calls by `/name` | any number |
//! | [`Plugin`] | code at the seven hooks | any number |
//! | [`SessionStorage`] | sessions that outlive the app | at most one |
//! | [`MemoryStorage`] | facts that outlive a session | at most one |
//!
//! # In a Tauri app
//! `tauri::Builder::default().plugin(youyou_agent::init(builder))`, with `builder` an
//! [`AgentBuilder`], and `youyou-agent:default` in a capability. The page then uses the npm
//! package `tauri-plugin-youyou-agent-api`.
//!
//! # Without Tauri
//! With `default-features = false` the agent stands alone and needs no system library:
//! ```
//! use futures_util::StreamExt as _;
//! use youyou_agent::{AgentBuilder, AgentConfig, AgentError, AgentEventKind, SessionConfig};
//! # use youyou_agent::*;
//! # struct MyProvider;
//! # #[async_trait::async_trait]
//! # impl ModelProvider for MyProvider {
//! #     fn id(&self) -> &str { "mine" }
//! #     fn models(&self) -> Vec<ModelInfo> {
//! #         vec![ModelInfo::new("my-model", "Mine", 8_000, Capabilities::default())]
//! #     }
//! #     async fn chat(&self, _: ChatRequest, _: tokio_util::sync::CancellationToken) -> Result<ChatStream, ProviderError> {
//! #         Ok(Box::pin(futures_util::stream::iter([ChatEvent::text("Hello."), ChatEvent::done()])))
//! #     }
//! # }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), AgentError> {
//! let agent = AgentBuilder::new(AgentConfig::new("my-model"))
//!     .provider(MyProvider)
//!     .build()
//!     .await?;
//! let session = agent.create_session(SessionConfig::default()).await?;
//! let mut turn = session.send("Hi")?;
//! let mut answer = String::new();
//! while let Some(event) = turn.next().await {
//!     if let AgentEventKind::TextDelta { delta, .. } = event.kind {
//!         answer.push_str(&delta);
//!     }
//! }
//! assert_eq!(answer, "Hello.");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - One session is open at a time, and at most one turn runs in it.
//! - Every turn ends with exactly one [`TurnComplete`](AgentEventKind::TurnComplete) or
//!   [`TurnCancelled`](AgentEventKind::TurnCancelled); an accepted message never fails
//!   silently.
//! - Whatever providers, tools, hooks and storages do, also when they hang or panic, the
//!   session can be used again.
//! - What was shown is in the context and in the storage.
//! - A model call costs the same at any length of the history.
//!
//! # Features
//! - `tauri` (default): the plugin layer. Without it neither Tauri nor GTK is built.
//! - `testing`: scripted providers, recording tools, storages with faults, and a conformance
//!   kit for your own storages; see the module `testing`.
//! - `bindings`: exports the TypeScript bindings; for work on this crate.
//!
//! # Layout
//! - `agent`: the agent; knows nothing of Tauri and does no input or output of its own
//! - `ipc`: how a webview reaches it (feature `tauri`)
//! - `testing`: for tests (feature `testing`)

mod agent;
#[cfg(feature = "tauri")]
mod ipc;
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
    SessionLog, SessionMetadata, SessionOverrides, SessionStorage, SessionSummary, ShortenedResult,
    StorageError,
};
pub use agent::tool::{
    self, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInfo, ToolInput, ToolOutput,
};
pub use agent::{Agent, HistoryPage, ShutdownReport};
#[cfg(feature = "__ipc-test")]
#[doc(hidden)]
pub use ipc::testing as ipc_testing;
#[cfg(feature = "tauri")]
pub use ipc::{AgentExt, PluginBuilder, init};

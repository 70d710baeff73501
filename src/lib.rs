//! A complete LLM agent for Tauri apps: sessions, streaming turns, tools, hooks, skills,
//! compaction and memory. Keys and tools stay in Rust; the page only shows.
//!
//! You register what the agent is made of; nothing concrete is built in.
//!
//! | you write | for | needed |
//! |---|---|---|
//! | a [`ModelProvider`] | talking to a language model | at least one |
//! | a function for [`tool::typed`], or a [`ToolHandler`] | what the model can do | any number |
//! | a [`SkillDefinition`] | prompts the user calls by `/name` | any number |
//! | a [`Plugin`] | code at the seven hooks of [`HookRegistry`] | any number |
//! | a [`SessionStorage`] | sessions that outlive the app | at most one |
//! | a [`MemoryStorage`] | facts that outlive a session | at most one |
//!
//! Each of these pages has an example to start from. Only the provider is needed: begin with
//! it, hand it to an [`AgentBuilder`], and add the rest when you miss it.
//!
//! # Dependencies
//! What stands in the signatures here comes with this crate: [`async_trait`](macro@async_trait), [`schemars`],
//! [`serde_json`] and [`CancellationToken`]. Beside it the examples use
//! ```toml
//! futures-util = "0.3"   # reading a turn event by event
//! serde = { version = "1", features = ["derive"] }   # arguments of typed tools
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }   # without Tauri
//! ```
//! `use youyou_agent::prelude::*;` brings the traits and the types that most apps name.
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
//! #         Ok(ChatEvent::stream([ChatEvent::text("Hello."), ChatEvent::done()]))
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
//! # The life of a session
//! [`Agent`] creates and resumes sessions, [`Session`] sends messages, [`Turn`] tells what
//! comes of one. With a session storage registered:
//! ```
//! use futures_util::StreamExt as _;
//! use youyou_agent::{
//!     Agent, AgentError, AgentEventKind, ErrorCode, ResumeOptions, SessionConfig, TurnStatus,
//! };
//!
//! async fn life(agent: Agent) -> Result<(), AgentError> {
//!     let session = agent.create_session(SessionConfig::default()).await?;
//!
//!     // Refused messages are told by `send`, everything later by the turn's events.
//!     let mut turn = match session.send("Tell me a long story.") {
//!         Ok(turn) => turn,
//!         Err(error) if error.code == ErrorCode::SessionBusy => return Ok(()),
//!         Err(error) => return Err(error),
//!     };
//!     let mut shown = 0;
//!     while let Some(event) = turn.next().await {
//!         match event.kind {
//!             AgentEventKind::TextDelta { delta, .. } => {
//!                 print!("{delta}");
//!                 shown += delta.len();
//!                 if shown > 10_000 {
//!                     // What a stop button does. The events go on until `TurnCancelled`.
//!                     let _in_time = turn.cancel();
//!                 }
//!             }
//!             AgentEventKind::ToolCallStart { tool_name, .. } => println!("[{tool_name} runs]"),
//!             _ => {}
//!         }
//!     }
//!
//!     // The last message again, after a turn that failed or was cancelled.
//!     let outcome = turn.outcome().await;
//!     if outcome.status != TurnStatus::Completed {
//!         let again = session.retry_turn()?.outcome().await;
//!         println!("{:?}: {:?}", again.status, again.error);
//!     }
//!
//!     // A session is open until it is closed: dropping its handles closes nothing.
//!     let session_id = session.id().to_owned();
//!     session.close().await?;
//!     let session = agent.resume_session(&session_id, ResumeOptions::default()).await?;
//!     println!("{}", session.send("Go on.")?.outcome().await.assistant_output);
//!
//!     // Closes the session and stops the plugins; before the program ends.
//!     agent.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Errors
//! Every failure is an [`AgentError`]. These pages name its codes as they are logged and sent
//! to a page: `SESSION_BUSY` is [`ErrorCode::SessionBusy`].
//! `INTERNAL`, a fault of the agent, may come from any call and is not named.
//!
//! # Limits
//! Names with `_ms`, `_bytes` or `max_` in these pages, such as `tool_timeout_ms`, are fields
//! of [`AgentConfig`], with their defaults.
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

// The agent knows nothing of Tauri and does no input or output of its own; `ipc` is how a
// webview reaches it.
mod agent;
#[cfg(feature = "tauri")]
mod ipc;
#[cfg(feature = "testing")]
pub mod testing;

/// What stands in the signatures of this crate, so that an app needs no version of its own.
pub use async_trait::async_trait;
pub use schemars;
pub use serde_json;
pub use tokio_util::sync::CancellationToken;

pub mod prelude;

pub use agent::builder::AgentBuilder;
pub use agent::catalog::ModelEntry;
pub use agent::compaction::CompactionOutcome;
pub use agent::config::{AgentConfig, ResumeOptions, SendOptions, SessionConfig};
pub use agent::error::{AgentError, ErrorCode, ErrorOrigin};
pub use agent::event::{AgentEvent, AgentEventKind, CompactionMethod, TurnStatus};
pub use agent::event_log::{Coalescing, Subscription, Turn, TurnOutcome};
pub use agent::hook::{
    AfterToolUse, BeforeCompact, BeforeToolUse, Hook, HookCall, HookError, HookOutcome,
    HookRegistry, HookReport, HookResult, OnFault, SessionEnd, SessionStart, Tap, TurnEnd,
    TurnOrigin, TurnStart, TurnStartChange,
};
pub use agent::memory::{Memory, MemoryStorage};
pub use agent::message::{
    AssistantMessage, AssistantPart, ContentBlock, Message, Messages, MessagesIter, ProviderData,
    ToolResultMessage, UserInput, UserMessage, UserOrigin,
};
pub use agent::notes::Notes;
pub use agent::plugin::{Plugin, PluginError};
pub use agent::provider::{
    Capabilities, ChatEvent, ChatRequest, ChatStream, Completion, ModelInfo, ModelProvider,
    PromptBlock, ProviderError, ProviderErrorKind, ReasoningEffort, ResponseFormat, StopReason,
    ToolSpec, Usage,
};
pub use agent::session::{Session, SessionInfo};
pub use agent::skill::{SkillDefinition, SkillInfo};
pub use agent::storage::{
    CompactionRecord, EventPage, HeadMove, Interruption, ListPage, MessageStatus, PageRequest,
    SessionEvent, SessionEventKind, SessionLog, SessionMetadata, SessionOverrides, SessionStorage,
    SessionSummary, ShortenedResult, StorageError, StorageErrorKind,
};
pub use agent::stored::HistoryPage;
pub use agent::tool::{
    self, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInfo, ToolInput, ToolOutput,
};
pub use agent::work::SessionState;
pub use agent::{Agent, ShutdownReport};
#[cfg(feature = "__ipc-test")]
#[doc(hidden)]
pub use ipc::testing as ipc_testing;
#[cfg(feature = "tauri")]
pub use ipc::{AgentExt, PluginBuilder, init, init_with};

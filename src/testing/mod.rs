//! For tests of apps, providers, tools and storages (feature `testing`).
//!
//! - A model that follows a script: [`ScriptedProvider`] and its steps, such as [`text()`],
//!   [`call`], [`done`], [`wait`] and [`gate()`]; [`ScriptedProvider::manual`] drives an answer
//!   by hand. It refuses every request that a strict provider would refuse
//!   ([`validate_transcript`]).
//! - Tools that record: [`RecordingTool`], with one [`CallLog`] for the order of several.
//! - Storages in memory, [`InMemorySessions`] and [`InMemoryMemories`], and faults around any
//!   storage: [`FaultySessions`] and [`FaultyMemories`].
//! - Is my storage right? [`session_storage_conformance`], [`session_storage_durability`],
//!   [`session_storage_skips_unreadable`], [`session_storage_two_writers`] and
//!   [`memory_storage_conformance`].
//! - Events: [`collect`], [`text_of`], [`kinds`], [`assert_event_invariants`]; and after every
//!   fault the question whether the session still lives: [`epilogue()`].
//!
//! Nothing here sleeps. What a test waits for, it waits for by name: [`Gate::arrived`],
//! [`ScriptedProvider::asked`], [`CallLog::started`], [`Faults::called`].
//!
//! # Examples
//! ```
//! use youyou_agent::testing::{
//!     RecordingTool, ScriptedProvider, call, collect, done, shape, text, text_model, text_of,
//! };
//! use youyou_agent::{AgentBuilder, AgentConfig, SessionConfig};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let provider = ScriptedProvider::new("scripted")
//!     .model(text_model("m1"))
//!     .reply([call("c1", "read", r#"{"path":"a.txt"}"#), done()])
//!     .reply([text("It says ok."), done()]);
//! let tool = RecordingTool::read_only("read");
//! let agent = AgentBuilder::new(AgentConfig::new("m1"))
//!     .provider(provider.clone())
//!     .tool(tool.clone())
//!     .build()
//!     .await?;
//!
//! let session = agent.create_session(SessionConfig::default()).await?;
//! let events = collect(session.send("What does a.txt say?")?).await;
//! assert_eq!(
//!     shape(&events),
//!     ["turnStarted", "toolCallStart", "toolCallEnd", "textDelta", "turnComplete"]
//! );
//! assert_eq!(text_of(&events), "It says ok.");
//! assert_eq!(tool.log().order().len(), 2);
//! # Ok::<(), youyou_agent::AgentError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod conformance;
mod epilogue;
mod events;
mod faults;
mod faulty;
mod gate;
mod manual;
mod memories;
mod models;
mod provider;
mod record;
mod request;
mod sessions;
mod step;
mod stored;
mod stream;
mod tools;
mod transcript;

pub use calls::CallLog;
pub use conformance::{
    memory_storage_conformance, session_storage_conformance, session_storage_durability,
    session_storage_skips_unreadable, session_storage_two_writers,
};
pub use epilogue::{assert_answers, epilogue};
pub use events::{
    assert_event_invariants, collect, event_violations, kinds, reasoning_of, shape, text_of,
};
pub use faults::{Fault, Faults, StorageCall, When};
pub use faulty::{FaultyMemories, FaultySessions, MemoryOperation, SessionOperation};
pub use gate::Gate;
pub use manual::{Manual, ManualEnd};
pub use memories::{InMemoryMemories, memory};
pub use models::{reasoning_model, text_model, toolless_model, vision_model};
pub use provider::ScriptedProvider;
pub use request::{assistant, assistant_call, request, tool_result, user};
pub use sessions::InMemorySessions;
pub use step::{
    Step, call, call_with, done, done_with, done_with_data, error, gate, panic_in_chat, panic_with,
    reasoning, reasoning_with, refuse, text, text_with, until_cancelled, wait, yield_once,
};
pub use stored::{
    assistant_message, at, call_part, cut_message, metadata, session_created, text_part,
    tool_call_stored, tool_result_stored, user_message,
};
pub use tools::RecordingTool;
pub use transcript::validate_transcript;

//! For tests of apps, providers, tools and storages (feature `testing`).

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
    session_storage_skips_unreadable,
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
    reasoning, reasoning_with, refuse, text, until_cancelled, wait, yield_once,
};
pub use stored::{
    assistant_message, at, call_part, cut_message, metadata, session_created, text_part,
    tool_call_stored, tool_result_stored, user_message,
};
pub use tools::RecordingTool;
pub use transcript::validate_transcript;

//! The agent's promises, a module per chapter of the requirements. Everything runs against a
//! scripted provider, on paused time where time matters; nothing sleeps.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod build;
mod cancel;
mod cancel_races;
mod cancel_storage;
mod cancel_tools;
mod clock;
mod compaction;
mod compaction_limits;
mod compaction_models;
mod compaction_sizes;
mod compaction_thresholds;
mod context;
mod context_kept;
mod edges;
mod errors;
mod estimate;
mod events;
mod events_ends;
mod events_limits;
mod events_subscriptions;
mod every_write;
mod foreign_records;
mod histories;
mod hooks;
mod hooks_cancel;
mod hooks_compact;
mod hooks_faults;
mod hooks_limits;
mod hooks_observers;
mod hooks_order;
mod hooks_payloads;
mod hooks_retry;
mod hooks_tools;
mod images;
mod input;
mod lifecycle;
mod lifecycle_close;
mod lifecycle_replace;
mod lifecycle_shutdown;
mod listing;
mod lives;
mod look;
mod memory;
mod memory_answers;
mod memory_backlog;
mod memory_branches;
mod memory_checkpoints;
mod memory_cost;
mod memory_elsewhere;
mod memory_limits;
mod memory_requests;
mod memory_shutdown;
mod models;
mod models_lists;
mod panics;
mod panics_outside;
mod plugins;
mod plugins_shutdown;
mod probe;
mod prompt;
mod properties;
mod resume;
mod retries;
mod retry_turn;
mod rig;
mod runtime;
mod said;
mod sessions;
mod shutdown_limits;
mod side_calls;
mod skills;
mod snapshots;
mod stop_reasons;
mod storage_faults;
mod stored;
mod streaming;
mod streaming_faults;
mod threads;
mod told;
mod tools;
mod tools_cancel;
mod tools_inside;
mod tools_limits;
mod tools_order;
mod tools_output;
mod tools_refused;
mod tools_running;
mod tools_storable;
mod tools_timeouts;
mod tools_typed;
mod turns;

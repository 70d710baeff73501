//! What was stored and told is there after the process was killed, at whatever moment.
//!
//! The processes are real: this test binary starts itself again for the one that is killed.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; the processes talk through standard output"
)]

mod batches;
mod conversation;
mod killed;
mod kills;
mod verdict;

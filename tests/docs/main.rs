//! The documents say what is there: the tests they name, the commands, and the layers of the
//! code (ARCHITECTURE.md).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod documents;
mod examples;
mod layers;
mod sources;

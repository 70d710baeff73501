//! The app's agent plugins: two real uses of hooks.

mod audit;
mod redactor;
mod surroundings;

pub use audit::AuditLog;
pub use redactor::SecretRedactor;
pub use surroundings::Surroundings;

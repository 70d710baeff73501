//! The app's agent plugins: two real uses of hooks.

mod audit;
mod redactor;

pub use audit::AuditLog;
pub use redactor::SecretRedactor;

//! The one list of commands, and the TypeScript bindings made from it.

use tauri::Runtime;
use tauri::ipc::Invoke;

use super::commands::{catalog, session, stored, turn};

/// Hands the list of all commands to another macro.
macro_rules! with_commands {
    ($($then:ident)::+) => {
        $($then)::+![
            session::create_session,
            session::resume_session,
            session::current_session,
            turn::send_message,
            turn::retry_turn,
            turn::wait_turn,
            turn::cancel,
            turn::attach,
            turn::detach,
            turn::ack,
            session::compact,
            session::close_session,
            stored::session_history,
            stored::list_sessions,
            stored::find_sessions,
            stored::rename_session,
            stored::delete_session,
            catalog::list_models,
            catalog::list_tools,
            catalog::list_skills,
        ]
    };
}

/// The names in a list of commands.
#[cfg(any(test, feature = "__ipc-test"))]
macro_rules! names {
    ($($module:ident::$name:ident),* $(,)?) => { &[$(stringify!($name)),*] };
}

/// Names of all commands.
#[cfg(any(test, feature = "__ipc-test"))]
pub(super) const COMMANDS: &[&str] = with_commands!(names);

/// Calls the command that a page invoked.
pub(super) fn handler<R: Runtime>() -> impl Fn(Invoke<R>) -> bool + Send + Sync + 'static {
    with_commands!(tauri::generate_handler)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]
mod tests;

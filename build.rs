//! Writes the permission files for the commands.

/// Every command a page can invoke. A command that is missing here could never be allowed.
#[cfg(feature = "tauri")]
const COMMANDS: &[&str] = &[
    "create_session",
    "resume_session",
    "current_session",
    "send_message",
    "retry_turn",
    "wait_turn",
    "cancel",
    "attach",
    "detach",
    "ack",
    "compact",
    "close_session",
    "session_history",
    "list_sessions",
    "find_sessions",
    "rename_session",
    "delete_session",
    "list_models",
    "list_tools",
    "list_skills",
];

fn main() {
    #[cfg(feature = "tauri")]
    tauri_plugin::Builder::new(COMMANDS).build();
}

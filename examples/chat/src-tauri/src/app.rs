//! The Tauri app around the backend.

use std::sync::Arc;

use crate::backend::{Backend, Folders};
use crate::{commands, log, navigation};

/// The folder names of the app, as `identifier` in tauri.conf.json.
const IDENTIFIER: &str = "dev.youyou.chat";

/// Runs the app until its last window is closed.
///
/// # Errors
/// What kept it from starting, for the user.
pub fn run() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok();
    let folders = Folders::find(variable, IDENTIFIER)?;
    log::start(&folders.data, variable("YOUYOU_CHAT_LOG").as_deref());
    let backend = Arc::new(Backend::open(&folders, variable)?);

    // Nobody waits for it: until it ends, the well-known models are offered.
    let providers = backend.providers.clone();
    tauri::async_runtime::spawn(async move { providers.refresh().await });

    tauri::Builder::default()
        .plugin(youyou_agent::init(backend.agent()))
        .plugin(navigation::guard())
        .plugin(tauri_plugin_opener::init())
        .plugin(tauri_plugin_dialog::init())
        .manage(backend)
        .invoke_handler(tauri::generate_handler![
            commands::get_settings,
            commands::set_provider_key,
            commands::test_provider,
            commands::set_workspace,
            commands::pick_workspace,
            commands::list_memories,
            commands::delete_memory,
            commands::open_window,
        ])
        .run(tauri::generate_context!())
        .map_err(|error| error.to_string())
}

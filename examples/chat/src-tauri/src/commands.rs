//! The app's own commands, beside those of the agent: settings, the workspace, the memory panel.
//! Failures have the agent's shape, so that the page handles one kind of error.

#![expect(
    clippy::unreachable,
    reason = "tauri::command writes it into what it makes of a function"
)]

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tauri::{AppHandle, State, WebviewUrl, WebviewWindowBuilder};
use tauri_plugin_dialog::DialogExt;
use tokio::sync::oneshot;
use youyou_agent::{AgentError, MemoryStorage, StorageError};

use crate::backend::Backend;

/// The agent's memories have no namespace in this app.
const NAMESPACE: &str = "";

type Shared<'a> = State<'a, Arc<Backend>>;

/// What the settings page shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsView {
    providers: Vec<ProviderView>,
    workspace: String,
    demo: bool,
}

/// A provider as the settings page shows it. There is no field for the key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderView {
    id: String,
    display_name: String,
    has_key: bool,
    needs_key: bool,
    /// Where requests go; absent for the demo, which sends none.
    endpoint: Option<String>,
}

/// A memory as the panel shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryView {
    id: String,
    content: String,
    tags: Vec<String>,
    updated_at: u64,
}

#[tauri::command]
pub(crate) async fn get_settings(backend: Shared<'_>) -> Result<SettingsView, AgentError> {
    let servers = backend.providers.endpoints().map(|server| ProviderView {
        id: server.id().to_owned(),
        display_name: server.display_name().to_owned(),
        has_key: backend.settings.key(server.id()).is_some(),
        needs_key: server.needs_key(),
        endpoint: Some(server.shown_address()),
    });
    let demo = ProviderView {
        id: "demo".to_owned(),
        display_name: "Offline demo (not an AI)".to_owned(),
        has_key: false,
        needs_key: false,
        endpoint: None,
    };
    Ok(SettingsView {
        providers: servers.chain([demo]).collect(),
        workspace: backend.workspace.folder().display().to_string(),
        demo: true,
    })
}

#[tauri::command]
pub(crate) async fn set_provider_key(
    backend: Shared<'_>,
    provider_id: String,
    key: String,
) -> Result<(), AgentError> {
    let mut servers = backend.providers.endpoints();
    if !servers.any(|server| server.id() == provider_id && server.needs_key()) {
        return Err(AgentError::invalid_input(format!(
            "there is no provider \"{provider_id}\" that takes a key"
        )));
    }
    backend
        .settings
        .set_key(&provider_id, &key)
        .map_err(AgentError::invalid_input)?;
    // The well-known models are there at once; the vendor's own list follows.
    let providers = backend.providers.clone();
    tauri::async_runtime::spawn(async move { providers.check(&provider_id).await });
    Ok(())
}

/// Asks a provider whether its key and its address work; returns how many models it offers.
#[tauri::command]
pub(crate) async fn test_provider(
    backend: Shared<'_>,
    provider_id: String,
) -> Result<usize, AgentError> {
    let models = backend.providers.check(&provider_id).await;
    models
        .map(|models| models.len())
        .map_err(|error| AgentError::provider(&provider_id, &error))
}

#[tauri::command]
pub(crate) async fn set_workspace(backend: Shared<'_>, path: String) -> Result<(), AgentError> {
    backend
        .settings
        .set_workspace(Path::new(&path))
        .map_err(AgentError::invalid_input)
}

#[tauri::command]
pub(crate) async fn pick_workspace(app: AppHandle) -> Result<Option<String>, AgentError> {
    let (answer, picked) = oneshot::channel();
    app.dialog().file().pick_folder(move |folder| {
        // Nobody waits any more if the page was reloaded meanwhile.
        let _ = answer.send(folder);
    });
    Ok(picked.await.ok().flatten().map(|folder| folder.to_string()))
}

#[tauri::command]
pub(crate) async fn list_memories(backend: Shared<'_>) -> Result<Vec<MemoryView>, AgentError> {
    let memories = backend
        .database
        .memories()
        .load(NAMESPACE)
        .await
        .map_err(|error| failed("reading the memories", &error))?;
    let views = memories.into_iter().map(|memory| MemoryView {
        id: memory.id,
        content: memory.content,
        tags: memory.tags,
        updated_at: memory.updated_at,
    });
    Ok(views.collect())
}

#[tauri::command]
pub(crate) async fn delete_memory(backend: Shared<'_>, id: String) -> Result<(), AgentError> {
    // A memory that is gone already is what was wanted.
    backend
        .database
        .memories()
        .delete(NAMESPACE, &id)
        .await
        .map(drop)
        .map_err(|error| failed("deleting the memory", &error))
}

/// Opens another window of the app, or its second page.
#[tauri::command]
pub(crate) async fn open_window(app: AppHandle, page: Option<String>) -> Result<(), AgentError> {
    let file = match page.as_deref() {
        None => "index.html",
        Some("ai-sdk") => "ai-sdk.html",
        Some(other) => {
            return Err(AgentError::invalid_input(format!(
                "there is no page \"{other}\""
            )));
        }
    };
    // Labels must differ, also from those of windows that were closed.
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(2);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    WebviewWindowBuilder::new(&app, format!("main-{number}"), WebviewUrl::App(file.into()))
        .title("YouYou Chat")
        .inner_size(900.0, 760.0)
        .min_inner_size(420.0, 480.0)
        // The page takes dropped files itself, as in the first window.
        .disable_drag_drop_handler()
        .build()
        .map(drop)
        .map_err(|error| AgentError::internal(format!("the window could not be opened: {error}")))
}

fn failed(doing: &str, error: &StorageError) -> AgentError {
    AgentError::storage(doing, &error.message)
}

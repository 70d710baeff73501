//! The life of a session.

use tauri::State;

use crate::agent::config::{ResumeOptions, SessionConfig};
use crate::agent::error::AgentError;
use crate::ipc::page::Page;
use crate::ipc::requests::Named;
use crate::ipc::state::Ipc;
use crate::{CompactionOutcome, SessionInfo};

/// Creates a session. A repeated `requestId` of the page returns the same session.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn create_session(
    ipc: State<'_, Ipc>,
    page: Page,
    config: Option<SessionConfig>,
    request_id: Option<String>,
) -> Result<SessionInfo, AgentError> {
    ipc.answer("create_session", async {
        let config = config.unwrap_or_default();
        let request = Named::new(&page, request_id, &config)?;
        let create = || async { Ok(ipc.agent.create_session(config).await?.info()) };
        let created = ipc.sessions.once(request, create, |_| {}).await?;
        // A repeat may come when turns have run already.
        Ok(ipc
            .session(&created.session_id)
            .map_or(created, |session| session.info()))
    })
    .await
}

/// Opens a stored session again.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn resume_session(
    ipc: State<'_, Ipc>,
    session_id: String,
    options: Option<ResumeOptions>,
) -> Result<SessionInfo, AgentError> {
    ipc.answer("resume_session", async {
        let options = options.unwrap_or_default();
        let session = ipc.agent.resume_session(&session_id, options).await?;
        Ok(session.info())
    })
    .await
}

/// The open session, or null.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn current_session(
    ipc: State<'_, Ipc>,
) -> Result<Option<SessionInfo>, AgentError> {
    ipc.answer("current_session", async {
        Ok(ipc.agent.current_session().map(|session| session.info()))
    })
    .await
}

/// Makes the context of the open session smaller. It can be cancelled by its `requestId`; a
/// repeated one of the same page joins the first.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn compact(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    request_id: Option<String>,
) -> Result<CompactionOutcome, AgentError> {
    ipc.answer("compact", async {
        let request = Named::new(&page, request_id, &("compact", &session_id))?;
        let session = ipc.session(&session_id)?;
        ipc.compact(session, request).await
    })
    .await
}

/// Closes the open session; a running turn is cancelled first.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn close_session(
    ipc: State<'_, Ipc>,
    session_id: String,
) -> Result<(), AgentError> {
    ipc.answer("close_session", async {
        ipc.session(&session_id)?.close().await
    })
    .await
}

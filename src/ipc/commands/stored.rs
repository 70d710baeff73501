//! Sessions as they are stored.

use std::num::NonZeroUsize;

use tauri::State;

use super::wire::SafeInteger;
use crate::HistoryPage;
use crate::agent::error::AgentError;
use crate::agent::message::ContentBlock;
use crate::agent::storage::{ListPage, SessionEventKind, SessionSummary};
use crate::ipc::state::Ipc;

/// Rows of a page when the caller names no number.
const PAGE: u32 = 50;

/// Most rows of a page: what a webview takes in at once.
const LARGEST_PAGE: u32 = 500;

fn rows(limit: Option<u32>) -> Option<NonZeroUsize> {
    NonZeroUsize::new(limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE) as usize)
}

/// A page of the stored events of a session, oldest first. `cursor` is the `nextCursor` of
/// the page before: the index of the event that the page begins with. `limit` is 50 if
/// absent and at most 500; a page ends earlier after 4 MiB. The data of images is left out
/// unless `withImages` is true.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn session_history(
    ipc: State<'_, Ipc>,
    session_id: String,
    cursor: Option<SafeInteger>,
    limit: Option<u32>,
    with_images: Option<bool>,
) -> Result<HistoryPage, AgentError> {
    ipc.answer("session_history", async {
        let cursor = cursor.map(|index| index.0);
        let mut page = ipc
            .agent
            .session_history(&session_id, cursor, rows(limit))
            .await?;
        if !with_images.unwrap_or(false) {
            leave_out_images(&mut page);
        }
        Ok(page)
    })
    .await
}

fn leave_out_images(page: &mut HistoryPage) {
    for event in &mut page.events {
        let SessionEventKind::UserMessage { content, .. } = &mut event.kind else {
            continue;
        };
        for block in content {
            if let ContentBlock::Image { data, .. } = block {
                *data = "".into();
            }
        }
    }
}

/// A page of the stored sessions, newest first. `limit` is 50 if absent and at most 500.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn list_sessions(
    ipc: State<'_, Ipc>,
    cursor: Option<String>,
    limit: Option<u32>,
) -> Result<ListPage, AgentError> {
    let listed = ipc.agent.list_sessions(cursor.as_deref(), rows(limit));
    ipc.answer("list_sessions", listed).await
}

/// The stored sessions that fit: the one with that id, else all with that title, else all
/// whose id starts with it, else all whose title contains it.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn find_sessions(
    ipc: State<'_, Ipc>,
    query: String,
) -> Result<Vec<SessionSummary>, AgentError> {
    ipc.answer("find_sessions", ipc.agent.find_sessions(&query))
        .await
}

/// Changes the title of a session.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn rename_session(
    ipc: State<'_, Ipc>,
    session_id: String,
    title: String,
) -> Result<(), AgentError> {
    ipc.answer("rename_session", async {
        ipc.agent.rename_session(&session_id, &title).await?;
        Ok(())
    })
    .await
}

/// Deletes a stored session for good; the open one is `SESSION_BUSY`. Needs a permission of
/// its own.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn delete_session(
    ipc: State<'_, Ipc>,
    session_id: String,
) -> Result<(), AgentError> {
    ipc.answer("delete_session", async {
        ipc.agent.delete_session(&session_id).await?;
        Ok(())
    })
    .await
}

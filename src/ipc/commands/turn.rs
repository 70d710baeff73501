//! Turns and who watches them.

use tauri::State;
use tauri::ipc::Channel;

use super::wire::{Attachment, MessageContent, SafeInteger, TurnAccepted};
use crate::SendOptions;
use crate::agent::error::AgentError;
use crate::agent::event_log::TurnOutcome;
use crate::ipc::message::ChannelMessage;
use crate::ipc::page::Page;
use crate::ipc::requests::Named;
use crate::ipc::state::Ipc;

/// Starts a turn and returns as soon as it is accepted. Its events come through `onEvent`,
/// from the first to the last, and heartbeats between them once the page has acknowledged.
///
/// A `requestId`, of at most 128 characters, belongs to the page that sent it. Repeated with
/// the same content it starts nothing: it returns the same turn, whose events come through
/// the new channel. With other content it is refused.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn send_message(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    content: MessageContent,
    options: Option<SendOptions>,
    request_id: Option<String>,
    on_event: Channel<ChannelMessage>,
) -> Result<TurnAccepted, AgentError> {
    ipc.answer("send_message", async {
        let asked = ("send", &session_id, &content, &options);
        let request = Named::new(&page, request_id, &asked)?;
        let send = || {
            let session = ipc.session(&session_id)?;
            session.send_with(content, options.unwrap_or_default())
        };
        ipc.start_turn(page, request, on_event, send).await
    })
    .await
}

/// Runs the last user message again after a turn that failed or was cancelled.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn retry_turn(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    request_id: Option<String>,
    on_event: Channel<ChannelMessage>,
) -> Result<TurnAccepted, AgentError> {
    ipc.answer("retry_turn", async {
        let request = Named::new(&page, request_id, &("retry", &session_id))?;
        let retry = || ipc.session(&session_id)?.retry_turn();
        ipc.start_turn(page, request, on_event, retry).await
    })
    .await
}

/// Returns how the turn ended, as soon as it has; also for the last few turns. A failed turn
/// is an outcome, not an error of this command.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn wait_turn(
    ipc: State<'_, Ipc>,
    turn_id: String,
) -> Result<TurnOutcome, AgentError> {
    ipc.answer("wait_turn", async {
        let turn = ipc.agent.turn(&turn_id).ok_or_else(|| {
            AgentError::invalid_input(format!(
                "the turn \"{turn_id}\" is not known; only the running turn and the last few are"
            ))
        })?;
        Ok(turn.outcome().await)
    })
    .await
}

/// Cancels a turn by its id, a turn or a compaction by the request of this page that started
/// it; without either, whatever runs. Returns whether something that runs was meant. A
/// request that has not arrived yet is cancelled as soon as it starts.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn cancel(
    ipc: State<'_, Ipc>,
    page: Page,
    turn_id: Option<String>,
    request_id: Option<String>,
) -> Result<bool, AgentError> {
    ipc.answer("cancel", async {
        Ok(match (turn_id, request_id) {
            (Some(turn_id), _) => ipc.cancel_turn(&turn_id),
            (None, Some(request_id)) => ipc.cancel_request(&page, request_id)?,
            (None, None) => ipc
                .agent
                .current_session()
                .is_some_and(|session| session.cancel(None)),
        })
    })
    .await
}

/// Watches the open session: first what came after `afterSequence` (without it: the running
/// turn from its start; with a number above the newest event: nothing), then everything of
/// this and later turns, until `detach`, the end of the session or of the page. A page has at
/// most 1,024 subscriptions.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn attach(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    after_sequence: Option<SafeInteger>,
    on_event: Channel<ChannelMessage>,
) -> Result<Attachment, AgentError> {
    ipc.answer("attach", async {
        let after = after_sequence.map(|after| after.0);
        ipc.attach(page, &session_id, after, on_event)
    })
    .await
}

/// Ends a subscription of this page.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn detach(
    ipc: State<'_, Ipc>,
    page: Page,
    subscription: u32,
) -> Result<(), AgentError> {
    ipc.answer("detach", async {
        ipc.subscriptions.close(&page, subscription);
        Ok(())
    })
    .await
}

/// Tells that all messages up to this one have arrived; 0 before any has. From the first
/// acknowledgement on, at most 32 messages are on their way, and heartbeats come while a
/// running turn shows nothing. Returns false if there is no such subscription (any more).
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn ack(
    ipc: State<'_, Ipc>,
    page: Page,
    subscription: u32,
    sequence: SafeInteger,
) -> Result<bool, AgentError> {
    ipc.answer("ack", async {
        Ok(ipc
            .subscriptions
            .acknowledge(&page, subscription, sequence.0))
    })
    .await
}

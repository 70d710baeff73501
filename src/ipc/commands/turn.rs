//! Turns and who watches them.

use tauri::State;
use tauri::ipc::Channel;

use super::wire::{Attachment, MessageContent, SafeInteger, TurnAccepted};
use crate::SendOptions;
use crate::agent::error::AgentError;
use crate::agent::event::AgentEvent;
use crate::agent::event_log::{Coalescing, TurnOutcome};
use crate::ipc::page::Page;
use crate::ipc::state::Ipc;

/// Starts a turn and answers as soon as it is accepted. Its events come through `onEvent`,
/// from the first to the last. A repeated `requestId` starts nothing: it answers the same
/// turn, and its events come through the new channel.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn send_message(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    content: MessageContent,
    options: Option<SendOptions>,
    request_id: Option<String>,
    on_event: Channel<AgentEvent>,
) -> Result<TurnAccepted, AgentError> {
    let send = || {
        let session = ipc.session(&session_id)?;
        session.send_with(content, options.unwrap_or_default())
    };
    let turn = ipc.start_turn(page, request_id, on_event, send);
    ipc.answer("send_message", turn).await
}

/// Runs the last user message again after a turn that failed or was cancelled.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn retry_turn(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    request_id: Option<String>,
    on_event: Channel<AgentEvent>,
) -> Result<TurnAccepted, AgentError> {
    let retry = || ipc.session(&session_id)?.retry_turn();
    let turn = ipc.start_turn(page, request_id, on_event, retry);
    ipc.answer("retry_turn", turn).await
}

/// Answers when the turn has ended, also for the last few turns. A failed turn is an
/// answer, not a rejection.
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

/// Cancels a turn by its id, a turn or a compaction by the request that started it; without
/// either, whatever runs. Answers whether something that runs was meant. A request that has
/// not arrived yet is cancelled as soon as it starts.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn cancel(
    ipc: State<'_, Ipc>,
    turn_id: Option<String>,
    request_id: Option<String>,
) -> Result<bool, AgentError> {
    ipc.answer("cancel", async {
        Ok(match (turn_id, request_id) {
            (Some(turn_id), _) => ipc.cancel_turn(&turn_id),
            (None, Some(request_id)) => ipc.cancel_request(request_id),
            (None, None) => ipc
                .agent
                .current_session()
                .is_some_and(|session| session.cancel(None)),
        })
    })
    .await
}

/// Watches the open session: first what came after `afterSequence` (without it: the running
/// turn from its start), then everything of this and later turns, until `detach`, the end of
/// the session or of the page.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn attach(
    ipc: State<'_, Ipc>,
    page: Page,
    session_id: String,
    after_sequence: Option<SafeInteger>,
    on_event: Channel<AgentEvent>,
) -> Result<Attachment, AgentError> {
    ipc.answer("attach", async {
        let session = ipc.session(&session_id)?;
        let events = session
            .subscribe(after_sequence.map(|after| after.0))
            .coalescing(Coalescing::Always);
        let info = session.info();
        let turn_id = info.turn_id.as_deref();
        Ok(Attachment {
            subscription: ipc.subscriptions.open(page, turn_id, events, on_event),
            state: info.state,
            turn_id: turn_id.map(str::to_owned),
            last_sequence: info.last_sequence,
        })
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

/// Tells that all messages up to this one have arrived. From the first acknowledgement on,
/// at most 32 are on their way. False if there is no such subscription (any more): attach
/// again after the last event that arrived.
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

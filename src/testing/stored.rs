//! Stored events in few words, to fill a storage with. Time stands still in them: an
//! event's timestamp is its index unless [`at`] sets it.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    AssistantPart, ContentBlock, Interruption, MessageStatus, SessionEvent, SessionEventKind,
    SessionMetadata, SessionOverrides,
};

fn event(index: u64, kind: SessionEventKind) -> SessionEvent {
    SessionEvent {
        index,
        timestamp: index,
        turn_id: "turn".into(),
        kind,
    }
}

/// The same event at another time, in milliseconds since the Unix epoch.
#[must_use]
pub fn at(timestamp: u64, event: SessionEvent) -> SessionEvent {
    SessionEvent { timestamp, ..event }
}

/// The first event of a session.
#[must_use]
pub fn session_created(index: u64, title: &str, model_id: &str) -> SessionEvent {
    metadata(
        index,
        SessionMetadata::Created {
            title: title.to_owned(),
            model_id: model_id.into(),
            overrides: SessionOverrides::default(),
        },
    )
}

/// A fact about the session.
#[must_use]
pub fn metadata(index: u64, metadata: SessionMetadata) -> SessionEvent {
    event(index, SessionEventKind::Metadata { metadata })
}

/// Something the user said.
#[must_use]
pub fn user_message(index: u64, text: &str) -> SessionEvent {
    let content = vec![ContentBlock::text(text)];
    event(
        index,
        SessionEventKind::UserMessage {
            content,
            skill: None,
            steering: false,
        },
    )
}

/// A whole answer of these parts.
pub fn assistant_message(
    index: u64,
    parts: impl IntoIterator<Item = AssistantPart>,
) -> SessionEvent {
    answer(index, parts.into_iter().collect(), None)
}

/// A cut answer.
#[must_use]
pub fn cut_message(index: u64, text: &str, interruption: Interruption) -> SessionEvent {
    answer(index, vec![text_part(text)], Some(interruption))
}

fn answer(
    index: u64,
    parts: Vec<AssistantPart>,
    interruption: Option<Interruption>,
) -> SessionEvent {
    let status = if interruption.is_some() {
        MessageStatus::Incomplete
    } else {
        MessageStatus::Complete
    };
    event(
        index,
        SessionEventKind::AssistantMessage {
            parts,
            status,
            interruption,
            stop_reason: None,
            provider_id: "scripted".into(),
            model_id: "m1".into(),
            provider_data: None,
            usage: None,
        },
    )
}

/// A text part of an answer.
#[must_use]
pub fn text_part(text: &str) -> AssistantPart {
    AssistantPart::text(text)
}

/// A tool call in an answer.
#[must_use]
pub fn call_part(call_id: &str, tool_name: &str, arguments: Value) -> AssistantPart {
    AssistantPart::ToolCall {
        call_id: call_id.into(),
        tool_name: tool_name.into(),
        arguments: Arc::new(arguments),
        provider_data: None,
    }
}

/// A tool that starts.
#[must_use]
pub fn tool_call_stored(
    index: u64,
    call_id: &str,
    tool_name: &str,
    arguments: Value,
) -> SessionEvent {
    event(
        index,
        SessionEventKind::ToolCall {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            arguments: Arc::new(arguments),
        },
    )
}

/// A tool that succeeded.
#[must_use]
pub fn tool_result_stored(
    index: u64,
    call_id: &str,
    tool_name: &str,
    output: &str,
) -> SessionEvent {
    event(
        index,
        SessionEventKind::ToolResult {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            output: output.into(),
            is_error: false,
            error: None,
            metadata: None,
            duration_ms: 0,
        },
    )
}

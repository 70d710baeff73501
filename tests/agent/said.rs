//! What a request says, a line per message, so that whole requests are compared at a glance.

use youyou_agent::{
    AssistantPart, ChatRequest, ContentBlock, Message, SessionEvent, SessionEventKind,
    SessionMetadata, UserOrigin,
};

/// The messages of a request: `user: ..`, `summary: ..`, `skill: ..`, `assistant: ..` with
/// its calls as `<id tool>`, `result id: ..` (`error id: ..` for a failure), `note: ..`.
pub(crate) fn said(request: &ChatRequest) -> Vec<String> {
    request
        .messages
        .iter()
        .map(|message| line(message))
        .collect()
}

/// The same as one text, for a look whether something is in there at all.
pub(crate) fn all_said(request: &ChatRequest) -> String {
    said(request).join("\n")
}

fn line(message: &Message) -> String {
    match message {
        Message::User(user) => {
            let origin = match user.origin {
                UserOrigin::Input => "user",
                UserOrigin::Skill => "skill",
                UserOrigin::Summary => "summary",
                other => panic!("{other:?}"),
            };
            let blocks: Vec<String> = user.content.iter().map(block).collect();
            format!("{origin}: {}", blocks.join(" "))
        }
        Message::Assistant(assistant) => {
            let parts: Vec<String> = assistant.parts.iter().map(part).collect();
            format!("assistant: {}", parts.join(" "))
        }
        Message::ToolResult(result) => {
            let kind = if result.is_error { "error" } else { "result" };
            format!("{kind} {}: {}", result.call_id, result.content)
        }
        Message::System(note) => format!("note: {note}"),
        other => panic!("{other:?}"),
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => text.clone(),
        ContentBlock::Image { media_type, .. } => format!("<{media_type}>"),
        ContentBlock::File { name, text } => format!("<file {name}: {text}>"),
        other => panic!("{other:?}"),
    }
}

fn part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text { text, .. } => text.to_string(),
        AssistantPart::Reasoning { text, .. } => format!("<thinks {text}>"),
        AssistantPart::ToolCall {
            call_id, tool_name, ..
        } => format!("<{call_id} {tool_name}>"),
        other => panic!("{other:?}"),
    }
}

/// Stored events, a line per event: what [`said`] is for a request.
pub(crate) fn stored_lines(events: &[SessionEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| stored_line(&event.kind))
        .collect()
}

fn stored_line(kind: &SessionEventKind) -> String {
    match kind {
        SessionEventKind::UserMessage { content, .. } => {
            let blocks: Vec<String> = content.iter().map(block).collect();
            format!("user: {}", blocks.join(" "))
        }
        SessionEventKind::AssistantMessage {
            parts,
            interruption,
            stop_reason,
            ..
        } => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            let cut = match (interruption, stop_reason) {
                (Some(why), _) => format!(" ({why:?})"),
                (None, Some(why)) if why.is_cut() => format!(" ({why:?})"),
                (None, _) => String::new(),
            };
            format!("assistant: {}{cut}", parts.join(" "))
        }
        SessionEventKind::ToolCall { call_id, .. } => format!("call {call_id}"),
        SessionEventKind::ToolResult {
            call_id, output, ..
        } => format!("result {call_id}: {output}"),
        SessionEventKind::SystemMessage { text } => format!("system: {text}"),
        SessionEventKind::Metadata { metadata } => match metadata {
            SessionMetadata::Created { title, .. } => format!("created: {title}"),
            SessionMetadata::ModelChanged { model_id } => format!("model: {model_id}"),
            SessionMetadata::TurnInterrupted { interruption } => {
                format!("interrupted: {interruption:?}")
            }
            SessionMetadata::TurnEndedSilently { .. } => "silence".to_owned(),
            SessionMetadata::HeadMoved { to: Some(to) } => format!("head: {to}"),
            SessionMetadata::Compacted(record) => format!("compacted: {:?}", record.method),
            SessionMetadata::ImagesRefused { indices } => format!("images refused: {indices:?}"),
            SessionMetadata::MemoryCheckpoint { .. } => "memory checkpoint".to_owned(),
            SessionMetadata::Spent { .. } => "spent".to_owned(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

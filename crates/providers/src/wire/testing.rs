//! What the unit tests of all wires need.

use std::collections::VecDeque;

use serde_json::Value;
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatEvent, ChatRequest, ContentBlock, Message, ProviderData,
    ProviderError, ToolResultMessage, UserMessage, UserOrigin,
};

use super::origin::visible_arguments;
use super::{Decoder, Frame, Outgoing, Quirks, Target};

/// A server and a model to send to.
pub(crate) fn target() -> Target {
    Target {
        provider: "test".into(),
        vendor: "test".into(),
        service: "Test".into(),
        address: "http://127.0.0.1:1".into(),
        model: "test-1".into(),
        family: "test".into(),
        reasoning: true,
        max_output: 32_000,
        quirks: Quirks::default(),
    }
}

/// Feeds frames, then the end of the data.
pub(crate) fn read(
    decoder: &mut dyn Decoder,
    frames: &[(Option<&str>, &str)],
) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let mut events = VecDeque::new();
    for (event, data) in frames {
        let frame = Frame {
            event: *event,
            data,
        };
        if let Err(error) = decoder.frame(frame, &mut events) {
            return (events.into(), Err(error));
        }
        if matches!(events.back(), Some(ChatEvent::Done(_))) {
            return (events.into(), Ok(()));
        }
    }
    let end = decoder.end(&mut events);
    (events.into(), end)
}

/// Events without their opaque data, neighbouring pieces as they came.
pub(crate) fn shown(events: &[ChatEvent]) -> Vec<ChatEvent> {
    let bare = events.iter().map(|event| match event.clone() {
        ChatEvent::TextDelta { text, .. } => ChatEvent::text(text),
        ChatEvent::ReasoningDelta { text, .. } => ChatEvent::reasoning(text),
        ChatEvent::ToolCall {
            call_id,
            tool_name,
            arguments,
            ..
        } => ChatEvent::tool_call(call_id, tool_name, arguments),
        other => other,
    });
    // What carries data alone shows nothing.
    bare.filter(|event| !matches!(event, ChatEvent::TextDelta { text, .. } | ChatEvent::ReasoningDelta { text, .. } if text.is_empty()))
        .collect()
}

/// The answer as the agent stores it: pieces joined until data closes their part.
pub(crate) fn stored(events: &[ChatEvent]) -> AssistantMessage {
    let mut parts: Vec<AssistantPart> = Vec::new();
    for event in events {
        match event.clone() {
            ChatEvent::TextDelta {
                text,
                provider_data,
            } => match parts.last_mut() {
                Some(AssistantPart::Text {
                    text: open,
                    provider_data: data @ None,
                }) => {
                    *open = format!("{open}{text}").into();
                    *data = provider_data;
                }
                _ if text.is_empty() => reasoning(&mut parts, &text, provider_data),
                _ => parts.push(AssistantPart::Text {
                    text: text.into(),
                    provider_data,
                }),
            },
            ChatEvent::ReasoningDelta {
                text,
                provider_data,
            } => reasoning(&mut parts, &text, provider_data),
            ChatEvent::ToolCall {
                call_id,
                tool_name,
                arguments,
                provider_data,
            } => {
                let made_up = format!("made_up_{}", parts.len());
                let is_blank = call_id.trim().is_empty();
                parts.push(AssistantPart::ToolCall {
                    call_id: if is_blank { made_up } else { call_id }.into(),
                    tool_name: tool_name.into(),
                    arguments: visible_arguments(&arguments).into(),
                    provider_data,
                });
            }
            _ => {}
        }
    }
    AssistantMessage {
        parts,
        provider_data: None,
    }
}

fn reasoning(parts: &mut Vec<AssistantPart>, piece: &str, new: Option<ProviderData>) {
    match parts.last_mut() {
        Some(AssistantPart::Reasoning {
            text,
            provider_data: data @ None,
        }) => {
            *text = format!("{text}{piece}").into();
            *data = new;
        }
        _ => parts.push(AssistantPart::Reasoning {
            text: piece.into(),
            provider_data: new,
        }),
    }
}

/// A message of the user's.
pub(crate) fn user(text: &str) -> Message {
    Message::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        origin: UserOrigin::Input,
    })
}

/// The conversation after an answer: a question, the answer, and a result for each call or
/// the next question.
pub(crate) fn after(answer: AssistantMessage) -> ChatRequest {
    let calls: Vec<Message> = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::ToolCall {
                call_id, tool_name, ..
            } => Some(Message::ToolResult(ToolResultMessage {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                content: "done".into(),
                is_error: false,
            })),
            _ => None,
        })
        .collect();
    let mut messages = vec![user("hi"), Message::Assistant(answer)];
    if calls.is_empty() {
        messages.push(user("go on"));
    }
    messages.extend(calls);
    ChatRequest::new("test-1", messages)
}

/// The body of a request as JSON.
pub(crate) fn json(outgoing: Result<Outgoing, ProviderError>) -> Value {
    serde_json::from_str(&outgoing.unwrap().body).unwrap()
}

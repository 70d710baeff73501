//! Requests and messages in few words, to test a provider with or to compare one against.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, PromptBlock,
    ToolResultMessage, UserMessage, UserOrigin,
};

/// A request with these messages, a one-line system prompt and no tools.
pub fn request(model_id: &str, messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    let mut request = ChatRequest::new(model_id, messages);
    request.system = [PromptBlock {
        text: "You are a test.".into(),
        stable: true,
    }]
    .into();
    request
}

/// A message that the user wrote.
#[must_use]
pub fn user(text: &str) -> Message {
    Message::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        origin: UserOrigin::Input,
    })
}

/// An answer without tool calls.
#[must_use]
pub fn assistant(text: &str) -> Message {
    Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::text(text)],
        provider_data: None,
    })
}

/// An answer that is one tool call.
#[must_use]
pub fn assistant_call(call_id: &str, tool_name: &str, arguments: Value) -> Message {
    Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::ToolCall {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            arguments: Arc::new(arguments),
            provider_data: None,
        }],
        provider_data: None,
    })
}

/// The result of a tool call that succeeded.
#[must_use]
pub fn tool_result(call_id: &str, tool_name: &str, content: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        call_id: call_id.into(),
        tool_name: tool_name.into(),
        content: content.into(),
        is_error: false,
    })
}

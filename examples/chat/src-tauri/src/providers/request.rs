//! From the agent's request to genai's.

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    Binary, CacheControl, ChatMessage, ChatOptions, ChatRequest as GenaiRequest, ContentPart,
    MessageContent, ReasoningEffort as GenaiEffort, Tool, ToolCall, ToolResponse,
};
use youyou_agent::{
    AssistantMessage, AssistantPart, Capabilities, ChatRequest, ContentBlock, Message,
    ProviderData, ReasoningEffort,
};

/// The whole request for this adapter.
pub(super) fn build(request: &ChatRequest, adapter: AdapterKind) -> GenaiRequest {
    let mut messages = Messages::default();
    for message in &request.messages {
        match &**message {
            Message::User(user) => user
                .content
                .iter()
                .for_each(|block| messages.user(block_part(block))),
            // A note between messages. Only OpenAI knows a system role there: the others would
            // move it to the front, and local chat templates refuse it.
            Message::System(note) => messages.user(ContentPart::Text(note.to_string())),
            Message::Assistant(assistant) => {
                messages.push(ChatMessage::assistant(assistant_content(assistant)))
            }
            Message::ToolResult(result) => messages.push(ChatMessage::tool(
                ToolResponse::new(result.call_id.to_string(), result.content.to_string())
                    .with_fn_name(result.tool_name.to_string()),
            )),
        }
    }
    let mut messages = messages.finish();
    let mut built = GenaiRequest::default();
    let system = |stable: Option<bool>| {
        let blocks = request
            .system
            .iter()
            .filter(|block| stable.is_none_or(|stable| block.stable == stable));
        let texts: Vec<&str> = blocks.map(|block| &*block.text).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    };
    if adapter == AdapterKind::Anthropic {
        // Anthropic caches up to marked places: the end of what stays the same, and the end
        // of the history.
        if let Some(last) = messages.last_mut() {
            last.options = Some(CacheControl::Ephemeral.into());
        }
        let stable = system(Some(true))
            .map(|text| ChatMessage::system(text).with_options(CacheControl::Ephemeral));
        let volatile = system(Some(false)).map(ChatMessage::system);
        messages.splice(0..0, stable.into_iter().chain(volatile));
    } else {
        built.system = system(None);
    }
    built.messages = messages;
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            Tool::new(tool.name.to_string())
                .with_description(tool.description.clone())
                .with_schema(tool.parameters.clone())
        });
        built.tools = Some(tools.collect());
    }
    built
}

/// Temperature, limits, effort, and what genai has to keep for us.
pub(super) fn options(
    request: &ChatRequest,
    adapter: AdapterKind,
    can: Capabilities,
) -> ChatOptions {
    ChatOptions {
        // Through text, so that 0.7 stays 0.7.
        temperature: request
            .temperature
            .and_then(|value| value.to_string().parse().ok()),
        max_tokens: request.max_tokens,
        reasoning_effort: request
            .reasoning_effort
            .filter(|_| can.reasoning)
            .map(|effort| match effort {
                ReasoningEffort::Minimal => GenaiEffort::Minimal,
                ReasoningEffort::Low => GenaiEffort::Low,
                ReasoningEffort::Medium => GenaiEffort::Medium,
                ReasoningEffort::High => GenaiEffort::High,
            }),
        capture_usage: Some(true),
        capture_tool_calls: Some(true),
        // For Gemini this asks for thoughts, which models without them refuse.
        capture_reasoning_content: Some(can.reasoning || adapter != AdapterKind::Gemini),
        ..ChatOptions::default()
    }
}

/// Collects messages; neighbours from the user's side become one, because many chat
/// templates insist on taking turns.
#[derive(Default)]
struct Messages {
    done: Vec<ChatMessage>,
    user: Vec<ContentPart>,
}

impl Messages {
    fn user(&mut self, part: ContentPart) {
        self.user.push(part);
    }

    fn push(&mut self, message: ChatMessage) {
        if !self.user.is_empty() {
            let parts = std::mem::take(&mut self.user);
            self.done
                .push(ChatMessage::user(MessageContent::from_parts(parts)));
        }
        self.done.push(message);
    }

    fn finish(mut self) -> Vec<ChatMessage> {
        if !self.user.is_empty() {
            self.done
                .push(ChatMessage::user(MessageContent::from_parts(self.user)));
        }
        self.done
    }
}

fn block_part(block: &ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text { text } => ContentPart::Text(text.clone()),
        // The bytes are shared, not copied.
        ContentBlock::Image { media_type, data } => {
            ContentPart::Binary(Binary::from_base64(media_type.clone(), data.clone(), None))
        }
        ContentBlock::File { name, text } => {
            ContentPart::Text(format!("File \"{name}\":\n\n{text}"))
        }
    }
}

/// Reasoning goes back only as the provider's own data: text without its signature is
/// refused by the vendors that want it back.
fn assistant_content(message: &AssistantMessage) -> MessageContent {
    let mut parts = message
        .provider_data
        .as_ref()
        .map(parse::<Vec<ContentPart>>)
        .unwrap_or_default();
    for part in &message.parts {
        match part {
            AssistantPart::Text { text } => parts.push(ContentPart::Text(text.to_string())),
            AssistantPart::Reasoning { .. } => {}
            AssistantPart::ToolCall {
                call_id,
                tool_name,
                arguments,
                provider_data,
            } => {
                parts.push(ContentPart::ToolCall(ToolCall {
                    call_id: call_id.to_string(),
                    fn_name: tool_name.to_string(),
                    fn_arguments: (**arguments).clone(),
                    thought_signatures: provider_data
                        .as_ref()
                        .map(parse)
                        .filter(|all: &Vec<String>| !all.is_empty()),
                }));
            }
        }
    }
    MessageContent::from_parts(parts)
}

/// Data of another version or another provider counts as none.
fn parse<T: serde::de::DeserializeOwned + Default>(data: &ProviderData) -> T {
    serde_json::from_str(&data.0).unwrap_or_default()
}

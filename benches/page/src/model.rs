//! A model that follows the script it finds in the user's message, and its one tool.

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    Capabilities, ChatEvent, ChatRequest, ChatStream, Message, ModelInfo, ModelProvider,
    ProviderError, ProviderErrorKind, ToolContext, ToolDefinition, ToolError, ToolHandler,
    ToolInput, ToolOutput,
};

use crate::script::Script;

/// The model.
pub(crate) struct Scripted;

#[async_trait]
impl ModelProvider for Scripted {
    fn id(&self) -> &str {
        "scripted"
    }

    fn models(&self) -> Vec<ModelInfo> {
        let window = 1_000_000_000;
        vec![ModelInfo::new(
            "scripted",
            "Scripted",
            window,
            Capabilities::default(),
        )]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let asked = request
            .messages
            .iter_rev()
            .find_map(|message| match &**message {
                Message::User(_) => Some(message.text()),
                _ => None,
            });
        let script: Script = serde_json::from_str(&asked.unwrap_or_default()).map_err(|error| {
            ProviderError::new(ProviderErrorKind::InvalidRequest, error.to_string())
        })?;
        let middle = script.deltas / 2;
        let had_tool = matches!(
            request.messages.last().map(|message| &**message),
            Some(Message::ToolResult(_))
        );
        let deltas = match (script.big_bytes > 0, had_tool) {
            (false, _) => script.deltas(0, script.deltas),
            (true, false) => script.deltas(0, middle),
            (true, true) => script.deltas(middle, script.deltas),
        };
        let mut last = Vec::new();
        if script.big_bytes > 0 && !had_tool {
            let arguments = json!({ "bytes": script.big_bytes }).to_string();
            last.push(ChatEvent::tool_call("big", "big", arguments));
        }
        last.push(ChatEvent::done());
        let texts = deltas.map(|text| Ok(ChatEvent::text(text)));
        Ok(if script.hangs {
            texts.chain(stream::pending()).boxed()
        } else {
            texts.chain(stream::iter(last.into_iter().map(Ok))).boxed()
        })
    }
}

/// Answers with as many bytes as it is asked for.
pub(crate) struct Big;

#[async_trait]
impl ToolHandler for Big {
    fn definition(&self) -> ToolDefinition {
        let parameters = json!({
            "type": "object",
            "properties": { "bytes": { "type": "integer" } },
            "required": ["bytes"]
        });
        ToolDefinition::new("big", "Gives many bytes.", parameters)
    }

    async fn call(&self, input: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let bytes = input
            .arguments
            .get("bytes")
            .and_then(|bytes| bytes.as_u64());
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        Ok(ToolOutput::text("x".repeat(bytes.unwrap_or_default())))
    }
}

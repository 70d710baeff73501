//! From the agent's request to a body of the Responses protocol.
//!
//! Nothing is stored at the server: all that it needs goes back with each request.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, ProviderError,
    ProviderErrorKind, ResponseFormat, ToolResultMessage, ToolSpec,
};

use super::WIRE;
use crate::wire::body::{self, Piece};
use crate::wire::chat::effort_word;
use crate::wire::json::Fields;
use crate::wire::origin::{Origin, Seen};
use crate::wire::{Outgoing, Shape, Target, names, schema};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    input: Vec<Piece>,
}

/// Builds the request.
///
/// # Errors
/// `UnsupportedContent`: the server cannot hold an answer to a schema.
pub(crate) fn request(request: &ChatRequest, target: &Target) -> Result<Outgoing, ProviderError> {
    let mut instructions: Vec<String> = request
        .system
        .iter()
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| block.text.to_string())
        .collect();
    let mut text = None;
    if let Some(shape) = &request.response_format {
        text = Some(json!({ "format": format(shape, target)? }));
        if target.quirks.shape == Shape::Json {
            instructions.push(format!(
                "Answer with JSON alone. It must fit this JSON schema:\n{}",
                shape.schema
            ));
        }
    }
    let mut input = Input::new(target);
    for message in &request.messages {
        input.message(message)?;
    }
    let effort = request.reasoning_effort.filter(|_| target.reasoning);
    // The vendor's reasoning models refuse a temperature.
    let takes_temperature = !(target.reasoning && &*target.vendor == "openai");
    let body = body::text(&Body {
        model: &target.model,
        stream: true,
        store: false,
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        tools: request.tools.iter().map(tool).collect(),
        temperature: request.temperature.filter(|_| takes_temperature),
        max_output_tokens: request.max_tokens,
        reasoning: effort.map(|effort| json!({ "effort": effort_word(effort, &target.model) })),
        // Models that do not reason refuse to include it.
        include: match target.reasoning {
            true => vec!["reasoning.encrypted_content"],
            false => Vec::new(),
        },
        text,
        input: input.finish()?,
    })?;
    Ok(Outgoing {
        path: "responses".to_owned(),
        headers: Vec::new(),
        body,
    })
}

fn format(shape: &ResponseFormat, target: &Target) -> Result<Value, ProviderError> {
    match target.quirks.shape {
        Shape::Schema => Ok(json!({
            "type": "json_schema",
            "name": shape.name,
            "schema": shape.schema,
            "strict": schema::is_strict(&shape.schema),
        })),
        Shape::Json => Ok(json!({ "type": "json_object" })),
        Shape::None => Err(ProviderError::new(
            ProviderErrorKind::UnsupportedContent,
            format!(
                "{} cannot hold the answers of {} to a schema; choose another model",
                target.service, target.model
            ),
        )),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": &*tool.name,
        "description": tool.description,
        "parameters": schema::parameters(&tool.parameters),
        // Without this word the server rewrites the schema, or refuses it.
        "strict": false,
    })
}

/// Collects items; what the user's side says in a row is one message.
struct Input {
    items: Vec<Piece>,
    user: Vec<Value>,
    origin: Origin,
    is_strict: bool,
    /// Calls whose own item went back, with an id that other servers may refuse.
    own_ids: HashSet<String>,
}

impl Input {
    fn new(target: &Target) -> Self {
        Self {
            items: Vec::new(),
            user: Vec::new(),
            origin: Origin::new(WIRE, target),
            is_strict: target.quirks.strict_roles,
            own_ids: HashSet::new(),
        }
    }

    fn finish(mut self) -> Result<Vec<Piece>, ProviderError> {
        self.close_user()?;
        Ok(self.items)
    }

    fn close_user(&mut self) -> Result<(), ProviderError> {
        if !self.user.is_empty() {
            let content = std::mem::take(&mut self.user);
            let message = json!({ "type": "message", "role": "user", "content": content });
            self.items.push(body::own(&message)?);
        }
        Ok(())
    }

    fn push(&mut self, item: Piece) -> Result<(), ProviderError> {
        self.close_user()?;
        self.items.push(item);
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<(), ProviderError> {
        match message {
            Message::User(user) => self.user.extend(user.content.iter().filter_map(block)),
            Message::System(note) if self.is_strict => self.user.push(input_text(note)),
            Message::System(note) => {
                let item = json!({ "type": "message", "role": "developer", "content": &**note });
                self.push(body::own(&item)?)?;
            }
            Message::Assistant(answer) => self.answer(answer)?,
            Message::ToolResult(result) => self.result(result)?,
            _ => {}
        }
        Ok(())
    }

    fn result(&mut self, result: &ToolResultMessage) -> Result<(), ProviderError> {
        let id = if self.own_ids.contains(&*result.call_id) {
            result.call_id.as_ref().into()
        } else {
            names::call_id(&result.call_id)
        };
        let item = body::own(&json!({
            "type": "function_call_output",
            "call_id": id,
            "output": &*result.content,
        }))?;
        // What the user's side says waits until all results are there.
        self.items.push(item);
        Ok(())
    }

    fn answer(&mut self, answer: &AssistantMessage) -> Result<(), ProviderError> {
        self.close_user()?;
        // Reasoning is refused without an item behind it: it waits for one.
        let mut reasoning = Vec::new();
        for part in &answer.parts {
            match part {
                AssistantPart::Reasoning {
                    text,
                    provider_data,
                } => {
                    let back = self.origin.back(provider_data.as_ref(), Seen::Text(text));
                    if let Some(back) = back.filter(|back| is_useful(&back.item)) {
                        reasoning.push(body::kept(back.item)?);
                    }
                }
                AssistantPart::Text {
                    text,
                    provider_data,
                } => {
                    let back = self.origin.back(provider_data.as_ref(), Seen::Text(text));
                    let before = back.as_ref().map_or(&**text, |back| back.before);
                    if !before.trim().is_empty() {
                        self.items.append(&mut reasoning);
                        let message =
                            json!({ "type": "message", "role": "assistant", "content": before });
                        self.items.push(body::own(&message)?);
                    }
                    if let Some(back) = back {
                        self.items.append(&mut reasoning);
                        self.items.push(body::kept(back.item)?);
                    }
                }
                AssistantPart::ToolCall {
                    call_id,
                    tool_name,
                    arguments,
                    provider_data,
                } => {
                    self.items.append(&mut reasoning);
                    let seen = Seen::Call {
                        id: Some(call_id),
                        name: tool_name,
                        arguments,
                    };
                    let item = match self.origin.back(provider_data.as_ref(), seen) {
                        Some(back) => {
                            self.own_ids.insert(call_id.to_string());
                            body::kept(back.item)?
                        }
                        None => body::own(&json!({
                            "type": "function_call",
                            "call_id": names::call_id(call_id),
                            "name": names::tool_name(tool_name),
                            "arguments": arguments.to_string(),
                        }))?,
                    };
                    self.items.push(item);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } if text.trim().is_empty() => None,
        ContentBlock::Text { text } => Some(input_text(text)),
        ContentBlock::Image { media_type, data } => Some(json!({
            "type": "input_image",
            "image_url": format!("data:{media_type};base64,{data}"),
            "detail": "auto",
        })),
        ContentBlock::File { name, text } => {
            Some(input_text(&format!("File \"{name}\":\n\n{text}")))
        }
        _ => None,
    }
}

/// Whether a server that stores nothing can read an item: reasoning needs its encrypted
/// content, or its text where a server shows it.
fn is_useful(item: &str) -> bool {
    let fields = Fields::parse(item).unwrap_or_default();
    let is_reasoning = fields.text("type").as_deref() == Some("reasoning");
    !is_reasoning
        || fields
            .text("encrypted_content")
            .is_some_and(|content| !content.is_empty())
        || !fields.items("content").is_empty()
}

//! From the agent's request to a body of `generateContent`.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, ProviderError,
    ProviderErrorKind, ToolResultMessage, ToolSpec,
};

use super::WIRE;
use super::model::Gemini;
use crate::wire::body::{self, Piece};
use crate::wire::json::Fields;
use crate::wire::origin::{Origin, Seen};
use crate::wire::{Outgoing, Shape, Target, names, schema};

/// What the vendor takes in place of a signature for a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Config::is_empty")]
    generation_config: Config,
    contents: Vec<Content>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Value>,
}

impl Config {
    fn is_empty(&self) -> bool {
        self.temperature.is_none()
            && self.max_output_tokens.is_none()
            && self.thinking_config.is_none()
            && self.response_mime_type.is_none()
    }
}

/// A message: neighbours of one role are one.
#[derive(Serialize)]
struct Content {
    role: &'static str,
    parts: Vec<Piece>,
    /// How many results of calls the parts begin with.
    #[serde(skip)]
    results: usize,
}

/// Builds the request.
///
/// # Errors
/// `UnsupportedContent`: the server cannot hold an answer to a schema.
pub(crate) fn request(request: &ChatRequest, target: &Target) -> Result<Outgoing, ProviderError> {
    let model = Gemini::of(&target.model);
    let mut config = Config {
        temperature: request.temperature,
        max_output_tokens: request.max_tokens,
        ..Config::default()
    };
    if target.reasoning {
        config.thinking_config = model.thinking(request.reasoning_effort);
    }
    let mut system: Vec<Value> = request
        .system
        .iter()
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| json!({ "text": &*block.text }))
        .collect();
    if let Some(shape) = &request.response_format {
        config.response_mime_type = Some("application/json");
        match target.quirks.shape {
            Shape::Schema => config.response_json_schema = Some(shape.schema.clone()),
            Shape::Json => system.push(json!({
                "text": format!("The answer must fit this JSON schema:\n{}", shape.schema),
            })),
            Shape::None => return Err(no_shape(target)),
        }
    }
    let tools: Vec<Value> = request.tools.iter().map(tool).collect();
    let tools = match tools.is_empty() {
        true => Vec::new(),
        false => vec![json!({ "functionDeclarations": tools })],
    };
    let mut contents = Contents::new(target, model.demands_signatures());
    for message in &request.messages {
        contents.message(message)?;
    }
    let body = body::text(&Body {
        system_instruction: (!system.is_empty()).then(|| json!({ "parts": system })),
        tools,
        generation_config: config,
        contents: contents.finish(),
    })?;
    // A name with a path of its own is a tuned model.
    let model = match target.model.contains('/') {
        true => target.model.to_string(),
        false => format!("models/{}", target.model),
    };
    Ok(Outgoing {
        path: format!("{model}:streamGenerateContent?alt=sse"),
        headers: Vec::new(),
        body,
    })
}

fn no_shape(target: &Target) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::UnsupportedContent,
        format!(
            "{} cannot hold the answers of {} to a schema; choose another model",
            target.service, target.model
        ),
    )
}

fn tool(tool: &ToolSpec) -> Value {
    let mut made = json!({ "name": &*tool.name, "description": tool.description });
    // An object without properties is refused.
    if !schema::takes_nothing(&tool.parameters) {
        let parameters = schema::parameters(&tool.parameters);
        body::put(&mut made, "parametersJsonSchema", parameters);
    }
    made
}

/// Collects messages.
struct Contents {
    done: Vec<Content>,
    open: Content,
    origin: Origin,
    demands_signatures: bool,
    /// The vendor's own id of each call that it gave one.
    own_ids: HashMap<String, String>,
}

impl Contents {
    fn new(target: &Target, demands_signatures: bool) -> Self {
        Self {
            done: Vec::new(),
            open: Content::new("user"),
            origin: Origin::new(WIRE, target),
            demands_signatures,
            own_ids: HashMap::new(),
        }
    }

    fn content(&mut self, role: &'static str) -> &mut Content {
        if self.open.role != role {
            self.close(role);
        }
        &mut self.open
    }

    fn close(&mut self, role: &'static str) {
        let done = std::mem::replace(&mut self.open, Content::new(role));
        if done.parts.is_empty() {
            return;
        }
        match self.done.last_mut() {
            // Nothing was left of the message between them.
            Some(last) if last.role == done.role => last.parts.extend(done.parts),
            _ => self.done.push(done),
        }
    }

    fn finish(mut self) -> Vec<Content> {
        self.close("user");
        self.done
    }

    fn message(&mut self, message: &Message) -> Result<(), ProviderError> {
        match message {
            Message::User(user) => {
                for block in &user.content {
                    self.block(block)?;
                }
            }
            // System text is legal at the start only.
            Message::System(note) => self.text("user", note)?,
            Message::Assistant(answer) => self.answer(answer)?,
            Message::ToolResult(result) => self.result(result)?,
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, role: &'static str, text: &str) -> Result<(), ProviderError> {
        if !text.trim().is_empty() {
            let piece = body::own(&json!({ "text": text }))?;
            self.content(role).parts.push(piece);
        }
        Ok(())
    }

    fn block(&mut self, block: &ContentBlock) -> Result<(), ProviderError> {
        match block {
            ContentBlock::Text { text } => self.text("user", text)?,
            ContentBlock::Image { media_type, data } => {
                let image = json!({ "inlineData": { "mimeType": media_type, "data": &**data } });
                let piece = body::own(&image)?;
                self.content("user").parts.push(piece);
            }
            ContentBlock::File { name, text } => {
                self.text("user", &format!("File \"{name}\":\n\n{text}"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The results of a round stand together before anything else of their message.
    fn result(&mut self, result: &ToolResultMessage) -> Result<(), ProviderError> {
        let key = if result.is_error { "error" } else { "output" };
        let mut made = json!({
            "name": names::tool_name(&result.tool_name),
            "response": { key: &*result.content },
        });
        if let Some(id) = self.own_ids.get(&*result.call_id) {
            body::put(&mut made, "id", id.as_str());
        }
        let piece = body::own(&json!({ "functionResponse": made }))?;
        let content = self.content("user");
        content.parts.insert(content.results, piece);
        content.results += 1;
        Ok(())
    }

    fn answer(&mut self, answer: &AssistantMessage) -> Result<(), ProviderError> {
        let mut is_first_call = true;
        for part in &answer.parts {
            match part {
                AssistantPart::Text {
                    text,
                    provider_data,
                } => match self.origin.back(provider_data.as_ref(), Seen::Text(text)) {
                    Some(back) => {
                        self.text("model", back.before)?;
                        self.item(back.item)?;
                    }
                    None => self.text("model", text)?,
                },
                // Thoughts without a signature mean nothing to the server.
                AssistantPart::Reasoning {
                    text,
                    provider_data,
                } => {
                    if let Some(back) = self.origin.back(provider_data.as_ref(), Seen::Text(text)) {
                        self.item(back.item)?;
                    }
                }
                AssistantPart::ToolCall {
                    call_id,
                    tool_name,
                    arguments,
                    provider_data,
                } => {
                    let seen = Seen::Call {
                        id: None,
                        name: tool_name,
                        arguments,
                    };
                    match self.origin.back(provider_data.as_ref(), seen) {
                        Some(back) => {
                            if let Some(id) = own_id(&back.item) {
                                self.own_ids.insert(call_id.to_string(), id);
                            }
                            self.item(back.item)?;
                        }
                        None => {
                            let mut made = json!({ "functionCall": {
                                "name": names::tool_name(tool_name),
                                "args": &**arguments,
                            } });
                            if is_first_call && self.demands_signatures {
                                body::put(&mut made, "thoughtSignature", NO_SIGNATURE);
                            }
                            let piece = body::own(&made)?;
                            self.content("model").parts.push(piece);
                        }
                    }
                    is_first_call = false;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn item(&mut self, item: String) -> Result<(), ProviderError> {
        let piece = body::kept(item)?;
        self.content("model").parts.push(piece);
        Ok(())
    }
}

impl Content {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            parts: Vec::new(),
            results: 0,
        }
    }
}

/// The id in a vendor's own call.
fn own_id(item: &str) -> Option<String> {
    let fields = Fields::parse(item).ok()?;
    let id = fields.object("functionCall").text("id")?.into_owned();
    Some(id).filter(|id| !id.is_empty())
}

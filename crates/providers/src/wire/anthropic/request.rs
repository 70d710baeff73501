//! From the agent's request to a body of the Messages protocol.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, ProviderError,
    ProviderErrorKind, ToolResultMessage,
};

use super::WIRE;
use super::claude::{self, Claude, Thinking};
use crate::wire::body::{self, Piece};
use crate::wire::json::Fields;
use crate::wire::origin::{Origin, Seen};
use crate::wire::{Outgoing, Shape, Target, names, schema};

/// The body. `messages` comes last: a paused answer is gone on with by adding to its end.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<Turn>,
}

/// A message: neighbours of one role are one.
#[derive(Serialize)]
struct Turn {
    role: &'static str,
    content: Vec<Piece>,
    /// How many tool results the content begins with.
    #[serde(skip)]
    results: usize,
    /// Whether an assistant's content begins with thinking.
    #[serde(skip)]
    thinks_first: bool,
    /// Whether an assistant's content calls tools.
    #[serde(skip)]
    calls: bool,
}

impl Turn {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            content: Vec::new(),
            results: 0,
            thinks_first: false,
            calls: false,
        }
    }
}

/// Builds the request.
///
/// # Errors
/// `UnsupportedContent`: the model cannot hold its answer to a schema.
pub(crate) fn request(request: &ChatRequest, target: &Target) -> Result<Outgoing, ProviderError> {
    let claude = Claude::of(&target.model);
    let max_tokens = request.max_tokens.unwrap_or(target.max_output).max(1);
    let mut turns = Turns::new(target);
    for message in &request.messages {
        turns.message(message)?;
    }
    let mut turns = turns.into_turns();
    let mut thinking = match claude {
        Some(claude) => claude.thinking(request.reasoning_effort, max_tokens),
        None if target.reasoning => claude::budget(request.reasoning_effort, max_tokens),
        None => Thinking::default(),
    };
    if thinking.has_budget && is_round_without_thinking(&turns) {
        thinking = Thinking::default();
    }
    let mut system = system(request);
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if target.quirks.cache_marks {
        let stable = request.system.iter().take_while(|block| block.stable);
        let last = stable.filter(|block| !block.text.trim().is_empty()).count();
        let end = match last.checked_sub(1) {
            Some(last) => system.get_mut(last),
            // Without a stable start of the prompt the tools before it are still the same.
            None => tools.last_mut(),
        };
        if let Some(end) = end {
            body::put(end, "cache_control", json!({ "type": "ephemeral" }));
        }
        mark_end(&mut turns)?;
    }
    let mut format = None;
    if let Some(shape) = &request.response_format {
        let is_known = claude.is_none_or(Claude::has_structured_output);
        match target.quirks.shape {
            Shape::Schema if is_known => {
                let schema = schema::closed(&shape.schema);
                format = Some(json!({ "type": "json_schema", "schema": schema }));
            }
            Shape::Json => system.push(json!({
                "type": "text",
                "text": format!(
                    "Answer with JSON alone. It must fit this JSON schema:\n{}",
                    shape.schema
                ),
            })),
            Shape::Schema | Shape::None => return Err(no_shape(target)),
        }
    }
    let output_config = (thinking.effort.is_some() || format.is_some()).then(|| {
        let mut config = json!({});
        if let Some(effort) = thinking.effort {
            body::put(&mut config, "effort", effort);
        }
        if let Some(format) = format {
            body::put(&mut config, "format", format);
        }
        config
    });
    let refuses_temperature =
        thinking.field.is_some() || claude.is_some_and(Claude::refuses_temperature);
    let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
    if let Some(beta) = thinking.beta {
        headers.push(("anthropic-beta", beta.to_owned()));
    }
    let body = body::text(&Body {
        model: &target.model,
        max_tokens,
        stream: true,
        temperature: request.temperature.filter(|_| !refuses_temperature),
        thinking: thinking.field,
        output_config,
        tools,
        system,
        messages: turns,
    })?;
    Ok(Outgoing {
        path: "messages".to_owned(),
        headers,
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

/// The system prompt; the server refuses blank blocks.
fn system(request: &ChatRequest) -> Vec<Value> {
    let blocks = request.system.iter();
    blocks
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| json!({ "type": "text", "text": &*block.text }))
        .collect()
}

fn tool(tool: &youyou_agent::ToolSpec) -> Value {
    let mut made = json!({
        "name": &*tool.name,
        "input_schema": schema::parameters(&tool.parameters),
    });
    if !tool.description.is_empty() {
        body::put(&mut made, "description", &*tool.description);
    }
    made
}

/// Marks the end of the conversation, so that the next request finds all of it in the cache.
fn mark_end(turns: &mut [Turn]) -> Result<(), ProviderError> {
    let Some(last) = turns.last_mut().filter(|turn| turn.role == "user") else {
        return Ok(());
    };
    if let Some(block) = last.content.last_mut() {
        let mark = r#"{"type":"ephemeral"}"#.to_owned();
        *block = body::kept(body::with_fields(block.get(), &[("cache_control", mark)]))?;
    }
    Ok(())
}

/// Whether the request goes on with a round of calls that does not begin with thinking, as
/// when another model began it. A server refuses that while the model thinks with a budget.
fn is_round_without_thinking(turns: &[Turn]) -> bool {
    match turns {
        [.., asked, answered] => asked.calls && answered.results > 0 && !asked.thinks_first,
        _ => false,
    }
}

/// Collects messages.
struct Turns {
    done: Vec<Turn>,
    open: Turn,
    origin: Origin,
    demands_signatures: bool,
    /// Calls whose own item went back, with an id that other servers may refuse.
    own_ids: HashSet<String>,
}

impl Turns {
    fn new(target: &Target) -> Self {
        Self {
            done: Vec::new(),
            open: Turn::new("user"),
            origin: Origin::new(WIRE, target),
            demands_signatures: Claude::of(&target.model).is_some(),
            own_ids: HashSet::new(),
        }
    }

    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.open.role != role {
            let done = std::mem::replace(&mut self.open, Turn::new(role));
            self.finish(done);
        }
        &mut self.open
    }

    fn finish(&mut self, turn: Turn) {
        if turn.content.is_empty() {
            return;
        }
        match self.done.last_mut() {
            // Nothing was left of the message between them.
            Some(last) if last.role == turn.role => last.content.extend(turn.content),
            _ => self.done.push(turn),
        }
    }

    fn into_turns(mut self) -> Vec<Turn> {
        let last = std::mem::replace(&mut self.open, Turn::new("user"));
        self.finish(last);
        self.done
    }

    fn user(&mut self, block: &impl Serialize) -> Result<(), ProviderError> {
        let piece = body::own(block)?;
        self.turn("user").content.push(piece);
        Ok(())
    }

    fn assistant(&mut self, kind: &str, piece: Piece) {
        let turn = self.turn("assistant");
        if turn.content.is_empty() {
            turn.thinks_first = matches!(kind, "thinking" | "redacted_thinking");
        }
        turn.calls |= kind == "tool_use";
        turn.content.push(piece);
    }

    fn text(&mut self, text: &str) -> Result<(), ProviderError> {
        // A blank block is refused.
        if text.trim().is_empty() {
            return Ok(());
        }
        let piece = body::own(&json!({ "type": "text", "text": text }))?;
        self.assistant("text", piece);
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<(), ProviderError> {
        match message {
            Message::User(user) => {
                for block in &user.content {
                    self.block(block)?;
                }
            }
            // System text is legal at the start only.
            Message::System(note) => self.user(&json!({ "type": "text", "text": &**note }))?,
            Message::Assistant(answer) => self.answer(answer)?,
            Message::ToolResult(result) => self.result(result)?,
            _ => {}
        }
        Ok(())
    }

    fn block(&mut self, block: &ContentBlock) -> Result<(), ProviderError> {
        match block {
            ContentBlock::Text { text } if text.trim().is_empty() => Ok(()),
            ContentBlock::Text { text } => self.user(&json!({ "type": "text", "text": text })),
            ContentBlock::Image { media_type, data } => self.user(&json!({
                "type": "image",
                "source": { "type": "base64", "media_type": media_type, "data": &**data },
            })),
            ContentBlock::File { name, text } => self.user(&json!({
                "type": "text",
                "text": format!("File \"{name}\":\n\n{text}"),
            })),
            _ => Ok(()),
        }
    }

    /// Results stand before anything else of their message, whatever came between.
    fn result(&mut self, result: &ToolResultMessage) -> Result<(), ProviderError> {
        let id = if self.own_ids.contains(&*result.call_id) {
            result.call_id.as_ref().into()
        } else {
            names::call_id(&result.call_id)
        };
        let mut made = json!({
            "type": "tool_result",
            "tool_use_id": id,
            "content": &*result.content,
        });
        if result.is_error {
            body::put(&mut made, "is_error", true);
        }
        let piece = body::own(&made)?;
        let turn = self.turn("user");
        turn.content.insert(turn.results, piece);
        turn.results += 1;
        Ok(())
    }

    fn answer(&mut self, answer: &AssistantMessage) -> Result<(), ProviderError> {
        for part in &answer.parts {
            match part {
                AssistantPart::Text {
                    text,
                    provider_data,
                } => match self.origin.back(provider_data.as_ref(), Seen::Text(text)) {
                    Some(back) => {
                        self.text(back.before)?;
                        self.item(back.item)?;
                    }
                    None => self.text(text)?,
                },
                // Thinking without its signature is refused.
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
                        id: Some(call_id),
                        name: tool_name,
                        arguments,
                    };
                    match self.origin.back(provider_data.as_ref(), seen) {
                        Some(back) => {
                            self.own_ids.insert(call_id.to_string());
                            self.item(back.item)?;
                        }
                        None => {
                            let made = tool_use(call_id, tool_name, &arguments.to_string());
                            self.assistant("tool_use", body::kept(made)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn item(&mut self, item: String) -> Result<(), ProviderError> {
        let fields = Fields::parse(&item).unwrap_or_default();
        let kind = fields.text("type").unwrap_or_default().into_owned();
        let is_signed = fields
            .text("signature")
            .is_some_and(|text| !text.is_empty());
        // Thinking that the limit cut has no signature, and the vendor refuses it. Others who
        // speak the protocol sign nothing and want it back.
        if kind == "thinking" && self.demands_signatures && !is_signed {
            return Ok(());
        }
        self.assistant(&kind, body::kept(item)?);
        Ok(())
    }
}

/// A call as this wire makes it of what is visible.
pub(super) fn tool_use(id: &str, name: &str, input: &str) -> String {
    format!(
        r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
        body::quoted(&names::call_id(id)),
        body::quoted(&names::tool_name(name)),
    )
}

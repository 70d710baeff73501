//! From the agent's request to a body of Chat Completions.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use youyou_agent::{ChatRequest, ContentBlock, Message, ProviderError, ReasoningEffort, ToolSpec};

use super::assistant::Answer;
use crate::failure;
use crate::wire::body::{self, Piece};
use crate::wire::{CallIds, EffortField, Outgoing, Shape, Target, names, schema};

/// Builds the request.
///
/// # Errors
/// `UnsupportedContent`: the server cannot hold an answer to a shape.
pub(crate) fn request(request: &ChatRequest, target: &Target) -> Result<Outgoing, ProviderError> {
    let quirks = &target.quirks;
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("model", json!(&*target.model));
    put("stream", json!(true));
    if quirks.usage_option {
        put("stream_options", json!({ "include_usage": true }));
    }
    if let Some(temperature) = request.temperature {
        put("temperature", number(temperature));
    }
    if let Some(limit) = request.max_tokens {
        put(quirks.max_tokens_field, json!(limit));
    }
    if let Some(effort) = request.reasoning_effort.filter(|_| target.reasoning) {
        let thinks = effort != ReasoningEffort::Minimal;
        let word = effort_word(effort, &target.model);
        match quirks.effort {
            EffortField::ReasoningEffort => put("reasoning_effort", json!(word)),
            EffortField::Reasoning => put("reasoning", json!({ "effort": word })),
            EffortField::Thinking => {
                put(
                    "thinking",
                    json!({ "type": if thinks { "enabled" } else { "disabled" } }),
                );
            }
            EffortField::EnableThinking => put("enable_thinking", json!(thinks)),
            EffortField::None => {}
        }
    }
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(tool).collect());
    }
    let mut in_words = None;
    if let Some(format) = &request.response_format {
        match quirks.shape {
            Shape::Schema => {
                let schema = schema::closed(&format.schema);
                let shape = json!({
                    "name": format.name,
                    "strict": schema::is_strict(&schema),
                    "schema": schema,
                });
                put(
                    "response_format",
                    json!({ "type": "json_schema", "json_schema": shape }),
                );
            }
            Shape::Json => {
                put("response_format", json!({ "type": "json_object" }));
                in_words = Some(format!(
                    "Answer with JSON alone. It must fit this JSON schema:\n{}",
                    format.schema
                ));
            }
            Shape::None => {
                return Err(failure::unsupported(target, "hold its answers to a schema"));
            }
        }
    }
    let messages = messages(request, target, in_words)?;
    let mut text = body::text(&body)?;
    // The messages have the vendors' own JSON in them, which no `Value` keeps.
    text.pop();
    let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    text.push_str(&format!(",\"messages\":[{}]}}", messages.join(",")));
    Ok(Outgoing {
        path: "chat/completions".to_owned(),
        headers: Vec::new(),
        body: text,
    })
}

/// Through text, so that 0.7 stays 0.7.
fn number(value: f32) -> Value {
    value
        .to_string()
        .parse::<f64>()
        .map_or(Value::Null, |value| json!(value))
}

/// The least effort has a name of its own for one generation of models only.
pub(crate) fn effort_word(effort: ReasoningEffort, model: &str) -> &'static str {
    let name = model.rsplit('/').next().unwrap_or(model);
    let knows_minimal = name.starts_with("gpt-5") && !name.starts_with("gpt-5.");
    match effort {
        ReasoningEffort::Minimal if knows_minimal => "minimal",
        ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::High => "high",
        _ => "medium",
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": &*tool.name,
            "description": tool.description,
            "parameters": schema::parameters(&tool.parameters),
        },
    })
}

/// An id of a call that the server takes, the same for the call and for its result.
pub(super) fn call_id<'a>(target: &Target, id: &'a str) -> Cow<'a, str> {
    let plain = names::call_id(id);
    let fits = match target.quirks.call_ids {
        // Some models read their own ids (`functions.go:0` of Kimi). Claude is behind gateways,
        // too, and its vendor refuses such letters.
        CallIds::Any if &*target.family != "claude" && !id.is_empty() => return Cow::Borrowed(id),
        CallIds::Any => true,
        CallIds::UpTo40 => plain.len() <= 40,
        CallIds::Exactly9 => {
            plain.len() == 9 && plain.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    };
    if fits {
        return plain;
    }
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let letters = (0..9).filter_map(|_| {
        let digit = u32::try_from(hash % 36).ok()?;
        hash /= 36;
        char::from_digit(digit, 36)
    });
    Cow::Owned(letters.collect())
}

/// The messages; neighbours from the user's side are one, and so are neighbours from the
/// model's, because many chat templates insist on taking turns.
fn messages(
    request: &ChatRequest,
    target: &Target,
    in_words: Option<String>,
) -> Result<Vec<Piece>, ProviderError> {
    let mut made = Messages {
        target,
        all: Vec::new(),
        user: Vec::new(),
        answer: None,
    };
    made.system(request, in_words)?;
    for message in &request.messages {
        match &**message {
            Message::User(user) => made.user(user.content.iter().map(part))?,
            Message::System(note) if target.quirks.strict_roles => made.user([text_part(note)])?,
            Message::System(note) => {
                made.flush()?;
                made.all
                    .push(body::own(&json!({ "role": "system", "content": &**note }))?);
            }
            Message::Assistant(answer) => {
                made.flush_user()?;
                made.answer
                    .get_or_insert_with(|| Answer::new(target))
                    .add(answer);
            }
            Message::ToolResult(result) => {
                made.flush()?;
                made.all.push(body::own(&json!({
                    "role": "tool",
                    "tool_call_id": call_id(target, &result.call_id),
                    "content": &*result.content,
                }))?);
            }
            _ => {}
        }
    }
    made.finish()
}

struct Messages<'a> {
    target: &'a Target,
    all: Vec<Piece>,
    /// The parts of the user's message that is being made.
    user: Vec<Value>,
    /// The answer that is being made.
    answer: Option<Answer<'a>>,
}

impl Messages<'_> {
    fn system(
        &mut self,
        request: &ChatRequest,
        in_words: Option<String>,
    ) -> Result<(), ProviderError> {
        let blocks = request
            .system
            .iter()
            .filter(|block| !block.text.trim().is_empty());
        let content = if self.marks_cache() {
            let mut parts: Vec<Value> =
                blocks.clone().map(|block| text_part(&block.text)).collect();
            let stable = blocks.take_while(|block| block.stable).count();
            if let Some(end) = stable.checked_sub(1).and_then(|last| parts.get_mut(last)) {
                mark(end);
            }
            parts.extend(in_words.as_deref().map(text_part));
            Some(Value::Array(parts)).filter(|parts| parts != &json!([]))
        } else {
            let texts: Vec<&str> = blocks
                .map(|block| &*block.text)
                .chain(in_words.as_deref())
                .collect();
            (!texts.is_empty()).then(|| json!(texts.join("\n\n")))
        };
        if let Some(content) = content {
            self.all
                .push(body::own(&json!({ "role": "system", "content": content }))?);
        }
        Ok(())
    }

    /// Claude caches up to marked places only, behind a gateway too.
    fn marks_cache(&self) -> bool {
        self.target.quirks.cache_marks && &*self.target.family == "claude"
    }

    fn user(&mut self, parts: impl IntoIterator<Item = Value>) -> Result<(), ProviderError> {
        self.flush_answer()?;
        self.user.extend(parts);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ProviderError> {
        self.flush_user()?;
        self.flush_answer()
    }

    fn flush_answer(&mut self) -> Result<(), ProviderError> {
        if let Some(answer) = self.answer.take() {
            self.all.extend(answer.into_message()?);
        }
        Ok(())
    }

    fn flush_user(&mut self) -> Result<(), ProviderError> {
        let parts = std::mem::take(&mut self.user);
        if parts.is_empty() {
            return Ok(());
        }
        let texts: Option<Vec<&str>> = parts
            .iter()
            .map(|part| part.get("text")?.as_str())
            .collect();
        let joined = texts.map(|texts| texts.join("\n\n"));
        if let Some(words) = &joined
            && self.put_behind_a_result(words)?
        {
            return Ok(());
        }
        let content = joined.map_or(Value::Array(parts), Value::String);
        self.all
            .push(body::own(&json!({ "role": "user", "content": content }))?);
        Ok(())
    }

    /// Where no user may speak behind a result, the words go to its end.
    fn put_behind_a_result(&mut self, words: &str) -> Result<bool, ProviderError> {
        if self.target.quirks.user_after_tool {
            return Ok(false);
        }
        let Some(last) = self.all.last_mut() else {
            return Ok(false);
        };
        let mut message: Value = serde_json::from_str(last.get()).unwrap_or_default();
        if message.get("role") != Some(&json!("tool")) {
            return Ok(false);
        }
        if let Some(Value::String(content)) = message.get_mut("content") {
            content.push_str("\n\n");
            content.push_str(words);
        }
        *last = body::own(&message)?;
        Ok(true)
    }

    fn finish(mut self) -> Result<Vec<Piece>, ProviderError> {
        if self.marks_cache()
            && let Some(last) = self.user.last_mut()
        {
            mark(last);
            let parts = std::mem::take(&mut self.user);
            self.all
                .push(body::own(&json!({ "role": "user", "content": parts }))?);
        }
        self.flush()?;
        Ok(self.all)
    }
}

fn mark(part: &mut Value) {
    if let Value::Object(part) = part {
        part.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Image { media_type, data } => json!({
            "type": "image_url",
            "image_url": { "url": format!("data:{media_type};base64,{data}") },
        }),
        ContentBlock::File { name, text } => text_part(&format!("File \"{name}\":\n\n{text}")),
        other => text_part(other.as_text().unwrap_or_default()),
    }
}

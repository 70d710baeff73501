//! The offline demo: answers from a script, so that everything in the app can be seen
//! without a key and without a network. It says of itself that it is no AI.
//!
//! Its tool calls are real, and so are the limits: its windows are small and kept.

mod internal;
mod texts;
mod wish;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use youyou_agent::{
    AssistantMessage, AssistantPart, Capabilities, ChatEvent, ChatRequest, ChatStream, Completion,
    ContentBlock, Message, ModelInfo, ModelProvider, ProviderError, ProviderErrorKind, StopReason,
    Usage, UserMessage, UserOrigin,
};

use texts::{Language, Outcome};
use wish::Wish;

/// The model with tools and vision.
pub const DEMO: &str = "demo";
/// A model with a tiny window and without vision, to see compaction and refusals.
pub const DEMO_SMALL: &str = "demo-small";

const WINDOW: u32 = 16_000;
const SMALL_WINDOW: u32 = 4_000;

/// How a text is spoken: so many characters at a time, with a pause after each.
#[derive(Debug, Clone, Copy)]
struct Pace {
    characters: usize,
    pause: Duration,
}

const QUICK: Pace = Pace {
    characters: 6,
    pause: Duration::from_millis(12),
};
/// Slow enough that a person can watch, stop, or reload in the middle.
const CALM: Pace = Pace {
    characters: 10,
    pause: Duration::from_millis(45),
};

/// For floods.
const AT_ONCE: Pace = Pace {
    characters: 1,
    pause: Duration::ZERO,
};

/// The provider of the offline demo.
#[derive(Debug, Default)]
pub struct DemoProvider;

#[async_trait]
impl ModelProvider for DemoProvider {
    fn id(&self) -> &str {
        "demo"
    }

    fn models(&self) -> Vec<ModelInfo> {
        let seeing = Capabilities {
            vision: true,
            reasoning: true,
            ..Capabilities::default()
        };
        let blind = Capabilities {
            reasoning: true,
            ..Capabilities::default()
        };
        vec![
            ModelInfo::new(DEMO, "Offline demo (not an AI)", WINDOW, seeing),
            ModelInfo::new(
                DEMO_SMALL,
                "Offline demo, tiny window (not an AI)",
                SMALL_WINDOW,
                blind,
            ),
        ]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let input = estimate(&request);
        let window = if &*request.model_id == DEMO_SMALL {
            SMALL_WINDOW
        } else {
            WINDOW
        };
        if input > u64::from(window) {
            return Err(ProviderError::new(
                ProviderErrorKind::ContextLengthExceeded,
                format!(
                    "the conversation is too long for this model: {input} tokens, the window holds {window}"
                ),
            ));
        }
        let beats = answer(&request, input)?;
        // A dropped stream stops speaking: nothing runs beside it.
        let spoken = stream::unfold(beats.into_iter(), |mut beats| async move {
            let (event, pause) = beats.next()?;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Some((Ok(event), beats))
        });
        Ok(Box::pin(spoken))
    }
}

/// Events, each with the pause before it.
type Beats = Vec<(ChatEvent, Duration)>;

fn answer(request: &ChatRequest, input: u64) -> Result<Beats, ProviderError> {
    // The app always offers tools; a request without any is one of the agent's own.
    if request.tools.is_empty() {
        return Ok(speak(&[Say::Text(internal::answer(request), QUICK)], input));
    }
    let heard = Heard::of(request);
    let language = Language::of(&heard.text);
    if !heard.results.is_empty() {
        return Ok(speak(
            &[Say::Text(texts::results(language, &heard.results), QUICK)],
            input,
        ));
    }
    let wish = Wish::of(&heard.text);
    let say = match wish {
        Wish::Call { tool, .. } if !request.tools.iter().any(|known| &*known.name == tool) => {
            vec![Say::Text(texts::no_tool(language, tool), QUICK)]
        }
        Wish::Call { tool, arguments } => {
            let mut say = vec![Say::Text(texts::calling(language), QUICK)];
            say.extend(
                arguments
                    .into_iter()
                    .map(|arguments| Say::Call(tool, arguments)),
            );
            say
        }
        Wish::LongAnswer => vec![
            Say::Reasoning(texts::long_reasoning(language), CALM),
            Say::Text(texts::long_answer(language), CALM),
        ],
        Wish::Flood(count) => {
            // Words of the same length: what is missing or doubled can be seen.
            let text = "abcdefghi ".chars().cycle().take(count).collect();
            vec![Say::Text(text, AT_ONCE)]
        }
        Wish::End(stop) => vec![
            Say::Text(texts::ending(language, stop), QUICK),
            Say::End(stop),
        ],
        Wish::GoOn => vec![Say::Text(texts::going_on(language), QUICK)],
        Wish::Error => {
            return Err(ProviderError::new(
                ProviderErrorKind::Other,
                texts::error(language),
            ));
        }
        Wish::Overflow if heard.compacted => vec![Say::Text(texts::compacted(language), QUICK)],
        Wish::Overflow => {
            return Err(ProviderError::new(
                ProviderErrorKind::ContextLengthExceeded,
                texts::overflow(language),
            ));
        }
        Wish::Remember => vec![Say::Text(texts::remember(language), QUICK)],
        Wish::Other if heard.skill => vec![Say::Text(texts::skill(language), QUICK)],
        Wish::Other => vec![Say::Text(
            texts::help(language, heard.images, heard.files),
            QUICK,
        )],
    };
    Ok(speak(&say, input))
}

/// A part of an answer.
enum Say {
    Reasoning(String, Pace),
    Text(String, Pace),
    Call(&'static str, Value),
    /// The answer ends for another reason than being finished.
    End(StopReason),
}

fn speak(parts: &[Say], input: u64) -> Beats {
    let mut beats = Beats::new();
    let mut output = 0;
    let mut calls = 0;
    let mut stop = StopReason::EndTurn;
    for part in parts {
        match part {
            Say::Reasoning(text, pace) => {
                output += tokens(text);
                beats.extend(
                    pieces(text, *pace).map(|piece| (ChatEvent::reasoning(piece), pace.pause)),
                );
            }
            Say::Text(text, pace) => {
                output += tokens(text);
                beats.extend(pieces(text, *pace).map(|piece| (ChatEvent::text(piece), pace.pause)));
            }
            Say::Call(tool, arguments) => {
                calls += 1;
                let arguments = arguments.to_string();
                output += tokens(&arguments);
                // Ids repeat from response to response; the agent makes them unique.
                let call = ChatEvent::tool_call(format!("demo_{calls}"), *tool, arguments);
                beats.push((call, QUICK.pause));
            }
            Say::End(reason) => stop = *reason,
        }
    }
    let end = Completion::new()
        .with_usage(Usage::new(input, output))
        .with_stop_reason(stop);
    beats.push((ChatEvent::Done(end), Duration::ZERO));
    beats
}

fn pieces(text: &str, pace: Pace) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters
        .chunks(pace.characters)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}

/// What the newest turn holds.
#[derive(Default)]
struct Heard<'a> {
    text: String,
    images: usize,
    files: usize,
    skill: bool,
    compacted: bool,
    /// The results of the calls made in this turn, the oldest first.
    results: Vec<Outcome<'a>>,
}

impl<'a> Heard<'a> {
    fn of(request: &'a ChatRequest) -> Self {
        let mut heard = Self::default();
        let mut in_turn = true;
        for message in request.messages.iter_rev() {
            match &**message {
                Message::ToolResult(result) if in_turn => {
                    heard.results.insert(0, Outcome { result, path: None });
                }
                Message::Assistant(answer) if in_turn => heard.look_up(answer),
                Message::User(user) if in_turn && user.origin == UserOrigin::Input => {
                    heard.listen(user);
                    in_turn = false;
                }
                Message::User(user) => match user.origin {
                    UserOrigin::Skill => heard.skill = true,
                    UserOrigin::Summary => heard.compacted = true,
                    _ => {}
                },
                _ => {}
            }
        }
        heard
    }

    /// Finds in the calls of an answer which file each result is of.
    fn look_up(&mut self, answer: &'a AssistantMessage) {
        for part in &answer.parts {
            if let AssistantPart::ToolCall {
                call_id, arguments, ..
            } = part
                && let Some(outcome) = self
                    .results
                    .iter_mut()
                    .find(|outcome| outcome.result.call_id == *call_id)
            {
                outcome.path = arguments.get("path").and_then(Value::as_str);
            }
        }
    }

    fn listen(&mut self, user: &UserMessage) {
        for block in &user.content {
            match block {
                ContentBlock::Text { text } => {
                    self.text.push_str(text);
                    self.text.push('\n');
                }
                ContentBlock::Image { .. } => self.images += 1,
                ContentBlock::File { .. } => self.files += 1,
                _ => {}
            }
        }
    }
}

/// A rough count, as good as the demo needs.
fn estimate(request: &ChatRequest) -> u64 {
    let system: u64 = request.system.iter().map(|block| tokens(&block.text)).sum();
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| tokens(&json!(tool.parameters).to_string()))
        .sum();
    let messages: u64 = request
        .messages
        .iter_rev()
        .map(|message| tokens(&message.text()) + 4)
        .sum();
    system + tools + messages
}

fn tokens(text: &str) -> u64 {
    text.chars()
        .map(|c| if c.is_ascii() { 1 } else { 4 })
        .sum::<u64>()
        / 4
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
mod tests;

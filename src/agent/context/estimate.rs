//! How many tokens something costs, roughly (chapter 5.2): characters / 4, wide characters
//! and emoji 1 each, an image 1,600.
//!
//! Counted in quarters of a token, so that sums stay exact.

use std::io;

use serde::Serialize;

use crate::agent::message::{AssistantPart, ContentBlock, Message};
use crate::agent::provider::{PromptBlock, ToolSpec};

/// Quarters of a token.
pub(crate) type Quarters = u64;

/// Quarters in a token.
pub(crate) const QUARTERS: Quarters = 4;

/// What an image costs, whatever its size.
const IMAGE: Quarters = 1_600 * QUARTERS;

pub(crate) fn text(text: &str) -> Quarters {
    if text.is_ascii() {
        return text.len() as Quarters;
    }
    text.chars()
        .map(|c| if is_wide(c) { QUARTERS } else { 1 })
        .sum()
}

/// The start of a text that costs at most `tokens`.
pub(crate) fn head(whole: &str, tokens: u64) -> &str {
    let mut left = tokens.saturating_mul(QUARTERS);
    let end = whole.char_indices().find(|(_, c)| {
        let cost = if is_wide(*c) { QUARTERS } else { 1 };
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        !fits
    });
    match end {
        Some((end, _)) => whole.get(..end).unwrap_or_default(),
        None => whole,
    }
}

/// CJK, kana and hangul of any width, full-width forms and emoji.
fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11ff
        | 0x231a..=0x231b
        | 0x23e9..=0x23f3
        | 0x25fd..=0x25fe
        | 0x2600..=0x27bf
        | 0x2b1b..=0x2b55
        | 0x2e80..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7ff
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
        | 0xff00..=0xffe6
        | 0x16fe0..=0x1b2ff
        | 0x1f000..=0x1faff
        | 0x20000..=0x3fffd)
}

pub(crate) fn message(message: &Message) -> Quarters {
    match message {
        Message::User(user) => user.content.iter().map(block).sum(),
        Message::Assistant(assistant) => {
            let own = assistant
                .provider_data
                .as_ref()
                .map_or(0, |data| text(&data.0));
            own + assistant.parts.iter().map(part).sum::<Quarters>()
        }
        Message::ToolResult(result) => text(&result.content),
        Message::System(note) => text(note),
    }
}

fn block(block: &ContentBlock) -> Quarters {
    match block {
        ContentBlock::Text { text: own } => text(own),
        ContentBlock::File { name, text: own } => text(name) + text(own),
        ContentBlock::Image { .. } => IMAGE,
    }
}

fn part(part: &AssistantPart) -> Quarters {
    let data = |data: &Option<crate::agent::message::ProviderData>| {
        data.as_ref().map_or(0, |data| text(&data.0))
    };
    match part {
        AssistantPart::Text { text: own, .. } => text(own),
        AssistantPart::Reasoning {
            text: own,
            provider_data,
        } => text(own) + data(provider_data),
        AssistantPart::ToolCall {
            tool_name,
            arguments,
            provider_data,
            ..
        } => text(tool_name) + json(&**arguments) + data(provider_data),
    }
}

/// The part of every request that does not change with the conversation.
pub(crate) fn fixed(system: &[PromptBlock], tools: &[ToolSpec]) -> Quarters {
    let prompt: Quarters = system.iter().map(|block| text(&block.text)).sum();
    let tools: Quarters = tools
        .iter()
        .map(|tool| text(&tool.name) + text(&tool.description) + json(&tool.parameters))
        .sum();
    prompt + tools
}

/// What a value costs as JSON, without writing it out.
fn json(value: &impl Serialize) -> Quarters {
    struct Count(Quarters);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // serde_json writes whole strings, so characters are never torn apart.
            self.0 += std::str::from_utf8(bytes).map_or(bytes.len() as Quarters, text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

//! A conversation written out as text, for a model that is to read it, not to go on with it:
//! the summariser and the memory extractor.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::estimate::{self, QUARTERS};
use crate::agent::message::{AssistantPart, ContentBlock, Message, UserOrigin};
use crate::agent::text::head_and_tail;

/// Longest tool result or file in a transcript, in bytes.
const LONG_ENTRY: usize = 16_384;

/// Writes the messages out, at most `limit_tokens` of them by the estimate. The middle gives
/// way first: what came first tells the goal, what came last tells where things stand.
pub(crate) fn written<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    limit_tokens: u64,
) -> String {
    let entries: Vec<String> = messages.into_iter().map(entry).collect();
    let costs: Vec<u64> = entries.iter().map(|entry| estimate::text(entry)).collect();
    let limit = limit_tokens.saturating_mul(QUARTERS);
    if costs.iter().sum::<u64>() <= limit {
        return entries.concat();
    }
    let mut head = Vec::new();
    let mut left = limit;
    for (entry, cost) in entries.iter().zip(&costs) {
        if *cost > left.saturating_sub(limit / 4 * 3) {
            break;
        }
        left -= cost;
        head.push(entry.as_str());
    }
    let mut tail = Vec::new();
    for (entry, cost) in entries.iter().zip(&costs).skip(head.len()).rev() {
        if *cost > left {
            break;
        }
        left -= cost;
        tail.push(entry.as_str());
    }
    let dropped = entries.len() - head.len() - tail.len();
    let mut text = head.concat();
    let _ = write!(text, "\n[{dropped} messages left out here for length]\n");
    if tail.is_empty() {
        // Not even the newest message fits: give its start and end.
        if let Some(newest) = entries.last() {
            let bytes = usize::try_from(left / QUARTERS * 3).unwrap_or(usize::MAX);
            text.push_str(&head_and_tail(newest, bytes));
        }
    }
    text.extend(tail.into_iter().rev());
    text
}

fn entry(message: &Message) -> String {
    let mut text = String::new();
    match message {
        Message::User(user) => {
            text.push_str(match user.origin {
                UserOrigin::Input => "\n[User]\n",
                UserOrigin::Skill => "\n[Instructions the user called]\n",
                UserOrigin::Summary => "\n[Summary of what came before]\n",
            });
            for block in &user.content {
                match block {
                    ContentBlock::Text { text: own } => text.push_str(own),
                    ContentBlock::File { name, text: own } => {
                        let _ = write!(text, "(file {name})\n{}", shortened(own));
                    }
                    ContentBlock::Image { .. } => text.push_str("(an image)"),
                }
                text.push('\n');
            }
        }
        Message::Assistant(assistant) => {
            text.push_str("\n[Assistant]\n");
            for part in &assistant.parts {
                match part {
                    AssistantPart::Text { text: own, .. } => {
                        text.push_str(own);
                        text.push('\n');
                    }
                    AssistantPart::Reasoning { .. } => {}
                    AssistantPart::ToolCall {
                        tool_name,
                        arguments,
                        ..
                    } => {
                        let arguments = arguments.to_string();
                        let _ = writeln!(text, "(calls {tool_name} {})", shortened(&arguments));
                    }
                }
            }
        }
        Message::ToolResult(result) => {
            let failed = if result.is_error { ", failed" } else { "" };
            let _ = write!(
                text,
                "\n[Result of {}{failed}]\n{}\n",
                result.tool_name,
                shortened(&result.content)
            );
        }
        Message::System(note) => {
            let _ = write!(text, "\n{note}\n");
        }
    }
    text
}

fn shortened(text: &str) -> Cow<'_, str> {
    head_and_tail(text, LONG_ENTRY)
}

//! The rules that providers hold a request to, as strictly as the strictest of them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, ToolResultMessage,
    UserMessage,
};

/// Checks that a request is one every provider would take.
///
/// - Each tool call is followed at once by exactly one result, in call order; there is no
///   result without a call; ids are unique and not empty; arguments are an object.
/// - Nothing is empty or blank: no message, no text block, no system prompt block.
/// - The first message is from the user's side, and there is one.
///
/// # Errors
/// All violations, each naming the message by its position from 0.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{request, validate_transcript};
///
/// let mut sent = request("m1", []);
/// assert!(validate_transcript(&sent).is_err());
/// sent = request("m1", [youyou_agent::testing::user("hello")]);
/// assert_eq!(validate_transcript(&sent), Ok(()));
/// ```
pub fn validate_transcript(request: &ChatRequest) -> Result<(), Vec<String>> {
    let mut check = Check::default();
    for (position, block) in request.system.iter().enumerate() {
        if is_blank(&block.text) {
            check.report(format!("block {position} of the system prompt is blank"));
        }
    }
    match request.messages.iter().next().map(AsRef::as_ref) {
        Some(Message::User(_)) => {}
        Some(first) => check.report(format!(
            "the first message is {}, it must be from the user's side",
            name_of(first)
        )),
        None => check.report("there is no message".to_owned()),
    }
    for (position, message) in request.messages.iter().enumerate() {
        check.position = position;
        check.message(message);
    }
    check.close_round("the end of the request");
    if check.violations.is_empty() {
        Ok(())
    } else {
        Err(check.violations)
    }
}

#[derive(Default)]
struct Check {
    position: usize,
    /// Calls of the latest assistant message without a result yet, the next one last.
    open: Vec<Arc<str>>,
    known: HashSet<Arc<str>>,
    violations: Vec<String>,
}

impl Check {
    fn report(&mut self, violation: String) {
        self.violations.push(violation);
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::ToolResult(result) => self.result(result),
            Message::User(user) => {
                self.close_round(name_of(message));
                self.user(user);
            }
            Message::Assistant(assistant) => {
                self.close_round(name_of(message));
                self.assistant(assistant);
            }
            Message::System(text) => {
                self.close_round(name_of(message));
                if is_blank(text) {
                    self.report(format!("message {}: the note is blank", self.position));
                }
            }
        }
    }

    /// Whatever is no result ends the round of results.
    fn close_round(&mut self, by: &str) {
        for call_id in std::mem::take(&mut self.open).into_iter().rev() {
            self.report(format!(
                "the tool call \"{call_id}\" has no result before {by} (message {})",
                self.position
            ));
        }
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let at = self.position;
        let call_id = &result.call_id;
        if is_blank(&result.content) {
            self.report(format!(
                "message {at}: the result of \"{call_id}\" is blank"
            ));
        }
        match self.open.iter().rposition(|open| open == call_id) {
            None => self.report(format!(
                "message {at}: the result of \"{call_id}\" answers no open call"
            )),
            Some(found) => {
                if found + 1 != self.open.len() {
                    self.report(format!(
                        "message {at}: the result of \"{call_id}\" is not in call order"
                    ));
                }
                self.open.remove(found);
            }
        }
    }

    fn user(&mut self, user: &UserMessage) {
        let at = self.position;
        if user.content.is_empty() {
            self.report(format!("message {at}: the user message is empty"));
        }
        for block in &user.content {
            // A file is content even when it is empty: its name says something.
            if let ContentBlock::Text { text } = block
                && is_blank(text)
            {
                self.report(format!("message {at}: a text block is blank"));
            }
        }
    }

    fn assistant(&mut self, assistant: &AssistantMessage) {
        let at = self.position;
        let mut says_something = false;
        let mut calls = Vec::new();
        for part in &assistant.parts {
            match part {
                AssistantPart::Text { text, .. } if is_blank(text) => {
                    self.report(format!("message {at}: a text part is blank"));
                }
                AssistantPart::Text { .. } => says_something = true,
                AssistantPart::Reasoning { .. } => {}
                AssistantPart::ToolCall {
                    call_id, arguments, ..
                } => {
                    says_something = true;
                    if !arguments.is_object() {
                        self.report(format!(
                            "message {at}: the arguments of \"{call_id}\" are no JSON object"
                        ));
                    }
                    if is_blank(call_id) {
                        self.report(format!("message {at}: a tool call has an empty id"));
                    }
                    if !self.known.insert(Arc::clone(call_id)) {
                        self.report(format!(
                            "message {at}: the call id \"{call_id}\" is used twice"
                        ));
                    }
                    calls.push(Arc::clone(call_id));
                }
            }
        }
        if !says_something {
            self.report(format!(
                "message {at}: the assistant message has neither text nor tool calls"
            ));
        }
        calls.reverse();
        self.open = calls;
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn name_of(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "a user message",
        Message::Assistant(_) => "an assistant message",
        Message::ToolResult(_) => "a tool result",
        Message::System(_) => "a system note",
    }
}

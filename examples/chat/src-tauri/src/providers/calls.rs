//! The tool calls of an answer, put right where genai gets them wrong.
//!
//! It tells parallel calls apart by their index alone. Some servers give every call the same
//! one; some count from one, and genai fills the gap.

use ::genai::chat::ToolCall;
use serde_json::{Map, Value};

/// The calls as their pieces showed them: of each id the newest, in order of appearance.
#[derive(Default)]
pub(super) struct Calls(Vec<ToolCall>);

impl Calls {
    /// Takes note of a piece; genai repeats in it what came before.
    pub(super) fn note(&mut self, call: ToolCall) {
        match self.0.iter_mut().find(|seen| seen.call_id == call.call_id) {
            Some(seen) => *seen = call,
            None => self.0.push(call),
        }
    }

    /// The calls that the model made, given those that genai made of them.
    pub(super) fn put_right(mut self, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let calls = without_fillers(calls);
        let is_left = |seen: &ToolCall| calls.iter().any(|call| call.call_id == seen.call_id);
        if self.0.iter().all(is_left) {
            return calls;
        }
        let mut all = Vec::new();
        for call in calls.iter().cloned() {
            let gone = self.merged_into(&call, is_left);
            match self.find(&call).and_then(|(_, last)| apart(&gone, last)) {
                Some(apart) if !gone.is_empty() => {
                    // Each was merged into one call only.
                    let is_gone = |seen: &ToolCall| gone.iter().any(|g| g.call_id == seen.call_id);
                    self.0.retain(|seen| !is_gone(seen));
                    all.extend(apart);
                }
                Some(_) | None => all.push(call),
            }
        }
        all
    }

    /// Earlier calls that are not left and whose text is in front of this one's.
    fn merged_into(&self, call: &ToolCall, is_left: impl Fn(&ToolCall) -> bool) -> Vec<ToolCall> {
        let Some((position, last)) = self.find(call) else {
            return Vec::new();
        };
        let text = arguments_text(&last.fn_arguments);
        let before = self.0.iter().take(position);
        before
            .filter(|seen| !is_left(seen) && text.starts_with(&arguments_text(&seen.fn_arguments)))
            .cloned()
            .collect()
    }

    fn find(&self, call: &ToolCall) -> Option<(usize, &ToolCall)> {
        let mut seen = self.0.iter().enumerate();
        seen.find(|(_, seen)| seen.call_id == call.call_id)
    }
}

/// The calls that were merged into the last one, and it. Each came with the text of those
/// before in front of its own. None if that is not what happened: a call whose id changed on
/// the way has a text that is whole only at its end.
fn apart(gone: &[ToolCall], last: &ToolCall) -> Option<Vec<ToolCall>> {
    let mut before = "";
    let mut calls = Vec::new();
    for merged in gone.iter().chain([last]) {
        let all = merged.fn_arguments.as_str()?;
        let own = all.strip_prefix(before)?;
        let own = if own.trim().is_empty() {
            Map::new()
        } else {
            serde_json::from_str(own).ok()?
        };
        calls.push(ToolCall {
            fn_arguments: Value::Object(own),
            ..merged.clone()
        });
        before = all;
    }
    Some(calls)
}

/// genai fills a gap in the indices (a server that counts from 1) with copies of the call
/// that follows, as far as it had come: those must not run.
fn without_fillers(calls: Vec<ToolCall>) -> Vec<ToolCall> {
    let squeezed = |call: &ToolCall| -> String {
        arguments_text(&call.fn_arguments)
            .split_whitespace()
            .collect()
    };
    let fillers: Vec<bool> = calls
        .iter()
        .zip(calls.iter().skip(1))
        .map(|(call, next)| {
            call.call_id == next.call_id
                && call.fn_name == next.fn_name
                && squeezed(next).starts_with(&squeezed(call))
        })
        .chain([false])
        .collect();
    calls
        .into_iter()
        .zip(fillers)
        .filter_map(|(call, filler)| (!filler).then_some(call))
        .collect()
}

/// Arguments that are no JSON come as a string: that is the model's text, for the agent to judge.
pub(super) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

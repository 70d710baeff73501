//! Looking at what a turn told and what a model was asked.

use serde_json::Value;
use youyou_agent::{
    AgentError, AgentEvent, AgentEventKind, AssistantPart, ChatRequest, ErrorCode, ErrorOrigin,
    Message, SessionEvent, SessionEventKind, TurnStatus, UserOrigin,
};

/// A tool call as it was shown to have ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) call_id: String,
    pub(crate) output: String,
    pub(crate) success: bool,
    pub(crate) error: Option<ErrorCode>,
    pub(crate) duration_ms: u64,
}

/// The ends of tool calls, in order.
pub(crate) fn ends(events: &[AgentEvent]) -> Vec<End> {
    let end = |event: &AgentEvent| match &event.kind {
        AgentEventKind::ToolCallEnd {
            call_id,
            output,
            success,
            error,
            duration_ms,
            ..
        } => Some(End {
            call_id: call_id.to_string(),
            output: output.to_string(),
            success: *success,
            error: *error,
            duration_ms: *duration_ms,
        }),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// Id and arguments of the tool calls that were shown to start, in order.
pub(crate) fn starts(events: &[AgentEvent]) -> Vec<(String, Value)> {
    let start = |event: &AgentEvent| match &event.kind {
        AgentEventKind::ToolCallStart {
            call_id, arguments, ..
        } => Some((call_id.to_string(), Value::clone(arguments))),
        _ => None,
    };
    events.iter().filter_map(start).collect()
}

/// The warnings, with their source.
pub(crate) fn warnings(events: &[AgentEvent]) -> Vec<(ErrorOrigin, String)> {
    let warning = |event: &AgentEvent| match &event.kind {
        AgentEventKind::Warning { message, origin } => Some((*origin, message.clone())),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

/// The errors that were told on the way.
pub(crate) fn errors(events: &[AgentEvent]) -> Vec<AgentError> {
    let error = |event: &AgentEvent| match &event.kind {
        AgentEventKind::Error { error } => Some(error.clone()),
        _ => None,
    };
    events.iter().filter_map(error).collect()
}

/// Status, output and error of a turn that was not cancelled.
#[track_caller]
pub(crate) fn completion(events: &[AgentEvent]) -> (TurnStatus, String, Option<AgentError>) {
    match &events.last().expect("a turn has events").kind {
        AgentEventKind::TurnComplete {
            status,
            assistant_output,
            error,
            ..
        } => (
            *status,
            assistant_output.to_string(),
            error.as_deref().cloned(),
        ),
        other => panic!("the turn did not complete: {other:?}"),
    }
}

/// The turn completed with this output.
#[track_caller]
pub(crate) fn assert_completed(events: &[AgentEvent], output: &str) {
    let expected = (TurnStatus::Completed, output.to_owned(), None);
    assert_eq!(completion(events), expected, "{events:#?}");
}

/// The turn failed with this code, told by an `Error` right before the end, too.
#[track_caller]
pub(crate) fn assert_failed(events: &[AgentEvent], code: ErrorCode) -> AgentError {
    let (status, _, error) = completion(events);
    assert_eq!(status, TurnStatus::Failed, "{events:#?}");
    let error = error.expect("a failed turn has an error");
    assert_eq!(error.code, code, "{error:?}");
    assert_eq!(errors(events).last(), Some(&error));
    error
}

/// Id and arguments of the calls in a request, in order.
pub(crate) fn calls(request: &ChatRequest) -> Vec<(String, Value)> {
    let parts = request
        .messages
        .iter()
        .filter_map(|message| match &**message {
            Message::Assistant(assistant) => Some(&assistant.parts),
            _ => None,
        });
    let call = |part: &AssistantPart| match part {
        AssistantPart::ToolCall {
            call_id, arguments, ..
        } => Some((call_id.to_string(), Value::clone(arguments))),
        _ => None,
    };
    parts.flatten().filter_map(call).collect()
}

/// Id and content of the results in a request, in order.
pub(crate) fn results(request: &ChatRequest) -> Vec<(String, String)> {
    let result = |message: &Message| match message {
        Message::ToolResult(result) => {
            Some((result.call_id.to_string(), result.content.to_string()))
        }
        _ => None,
    };
    request
        .messages
        .iter()
        .filter_map(|message| result(message))
        .collect()
}

/// The content of one result in a request.
#[track_caller]
pub(crate) fn result(request: &ChatRequest, call_id: &str) -> String {
    let found = results(request).into_iter().find(|(id, _)| id == call_id);
    found.expect("the call has a result").1
}

/// Texts of the user-side messages of one origin, in order.
pub(crate) fn user_side(request: &ChatRequest, origin: UserOrigin) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(user) if user.origin == origin => Some(Message::User(user.clone()).text()),
        _ => None,
    };
    request
        .messages
        .iter()
        .filter_map(|message| text(message))
        .collect()
}

/// The system prompt, its blocks joined by blank lines.
pub(crate) fn system(request: &ChatRequest) -> String {
    let texts: Vec<&str> = request.system.iter().map(|block| &*block.text).collect();
    texts.join("\n\n")
}

/// Everything a request says, to look for what must not be in it.
pub(crate) fn everything(request: &ChatRequest) -> String {
    format!("{} {:?}", system(request), request.messages)
}

/// Id and output of the stored results, in order.
pub(crate) fn stored_results(events: &[SessionEvent]) -> Vec<(String, String)> {
    let result = |event: &SessionEvent| match &event.kind {
        SessionEventKind::ToolResult {
            call_id, output, ..
        } => Some((call_id.to_string(), output.to_string())),
        _ => None,
    };
    events.iter().filter_map(result).collect()
}

/// Id and arguments of the stored calls that were started, in order.
pub(crate) fn stored_calls(events: &[SessionEvent]) -> Vec<(String, Value)> {
    let call = |event: &SessionEvent| match &event.kind {
        SessionEventKind::ToolCall {
            call_id, arguments, ..
        } => Some((call_id.to_string(), Value::clone(arguments))),
        _ => None,
    };
    events.iter().filter_map(call).collect()
}

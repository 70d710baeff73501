use serde_json::{Value, json};
use youyou_agent::{
    AssistantPart, ChatRequest, ContentBlock, Message, PromptBlock, ProviderErrorKind,
    ReasoningEffort, ResponseFormat, ToolResultMessage, ToolSpec, UserMessage, UserOrigin,
};

use super::super::request;
use super::{call, claude, end, read_all, start, stop, text, thinking};
use crate::wire::Target;
use crate::wire::testing::{after, json, stored, target, user};

#[test]
fn thinking_stays_with_the_vendor_and_family_it_came_from_and_is_dropped_when_edited() {
    let mut frames = Vec::new();
    frames.extend(thinking(0, "a", "S1"));
    frames.extend(text(1, "b"));
    frames.extend(end("end_turn"));
    let (events, _) = read_all(&frames);
    let mut answer = stored(&events);
    let elsewhere = Target {
        family: "other".into(),
        ..target()
    };
    let only_text = json!([{ "type": "text", "text": "b" }]);
    let body = json(request(&after(answer.clone()), &elsewhere));
    assert_eq!(body["messages"][1]["content"], only_text);
    if let AssistantPart::Reasoning { text, .. } = &mut answer.parts[0] {
        *text = "edited".into();
    }
    let body = json(request(&after(answer), &target()));
    assert_eq!(body["messages"][1]["content"], only_text);
}

#[test]
fn the_request_has_everything_in_its_place() {
    let mut request_ = ChatRequest::new(
        "m",
        [
            Message::User(UserMessage {
                content: vec![
                    ContentBlock::text("look"),
                    ContentBlock::image("image/png", "QUJD"),
                    ContentBlock::file("a.txt", "alpha"),
                ],
                origin: UserOrigin::Input,
            }),
            Message::System("a note".into()),
        ],
    );
    request_.system = [
        PromptBlock {
            text: "You help.".into(),
            stable: true,
        },
        PromptBlock {
            text: "Rules.".into(),
            stable: true,
        },
        PromptBlock {
            text: "Today is Friday.".into(),
            stable: false,
        },
    ]
    .into();
    request_.tools = [
        ToolSpec {
            name: "now".into(),
            description: "Tells the time.".to_owned(),
            parameters: json!({}),
        },
        ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        },
    ]
    .into();
    request_.temperature = Some(0.7);
    request_.max_tokens = Some(1_000);
    let mut target = claude("claude-sonnet-4-5");
    target.quirks.cache_marks = true;
    let outgoing = request(&request_, &target).unwrap();
    assert_eq!(outgoing.path, "messages");
    assert_eq!(
        outgoing.headers,
        [("anthropic-version", "2023-06-01".to_owned())]
    );
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(
        serde_json::from_str::<Value>(&outgoing.body).unwrap(),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 1000,
            "stream": true,
            "temperature": 0.7,
            "tools": [
                { "name": "now", "description": "Tells the time.",
                  "input_schema": { "type": "object", "properties": {} } },
                { "name": "read",
                  "input_schema": { "type": "object", "properties": { "path": { "type": "string" } } } },
            ],
            "system": [
                { "type": "text", "text": "You help." },
                { "type": "text", "text": "Rules.", "cache_control": mark },
                { "type": "text", "text": "Today is Friday." },
            ],
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "look" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } },
                { "type": "text", "text": "File \"a.txt\":\n\nalpha" },
                { "type": "text", "text": "a note", "cache_control": mark },
            ] }],
        })
    );
}

#[test]
fn effort_and_shape_go_where_the_generation_takes_them() {
    let mut with = ChatRequest::new("m", [user("hi")]);
    with.reasoning_effort = Some(ReasoningEffort::High);
    with.temperature = Some(0.5);
    with.response_format = Some(ResponseFormat::json_schema(
        "answer",
        json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
    ));
    let outgoing = request(&with, &claude("claude-opus-5-5")).unwrap();
    assert_eq!(
        outgoing.headers[1],
        (
            "anthropic-beta",
            "thinking-binding-controls-2026-08-01".to_owned()
        )
    );
    let body: Value = serde_json::from_str(&outgoing.body).unwrap();
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body["thinking"]["type"], "adaptive");
    assert_eq!(
        body["output_config"],
        json!({ "effort": "high", "format": { "type": "json_schema", "schema": {
            "type": "object", "properties": { "a": { "type": "string" } },
            "additionalProperties": false,
        } } })
    );
    let refused = request(&with, &claude("claude-3-5-sonnet-latest")).unwrap_err();
    assert_eq!(refused.kind, ProviderErrorKind::UnsupportedContent);
}

#[test]
fn a_round_that_another_model_began_goes_on_without_a_budget() {
    let mut frames = call(0, "functions.read:0", &["{}"]);
    frames.extend(end("tool_use"));
    let (events, _) = read_all(&frames);
    let mut after = after(stored(&events));
    after.reasoning_effort = Some(ReasoningEffort::High);
    let elsewhere = Target {
        vendor: "elsewhere".into(),
        ..claude("claude-sonnet-4-5")
    };
    let body = json(request(&after, &elsewhere));
    assert_eq!(body.get("thinking"), None);
    // The id is one that this server takes, in the call as in its result.
    let id = &body["messages"][1]["content"][0]["id"];
    assert_eq!(id, &body["messages"][2]["content"][0]["tool_use_id"]);
    assert!(!id.as_str().unwrap().contains('.'));
    // To where it came from it goes back as it was.
    let body = json(request(&after, &claude("claude-sonnet-4-5")));
    assert_eq!(body["messages"][1]["content"][0]["id"], "functions.read:0");
    assert_eq!(
        body["messages"][2]["content"][0]["tool_use_id"],
        "functions.read:0"
    );
}

#[test]
fn results_come_first_and_errors_are_told() {
    let mut frames = call(0, "c1", &["{}"]);
    frames.extend(end("tool_use"));
    let (events, _) = read_all(&frames);
    let mut messages: Vec<Message> = vec![user("hi"), Message::Assistant(stored(&events))];
    messages.push(Message::System("a note".into()));
    messages.push(Message::ToolResult(ToolResultMessage {
        call_id: "c1".into(),
        tool_name: "read".into(),
        content: "no such file".into(),
        is_error: true,
    }));
    messages.push(user("and now?"));
    let body = json(request(&ChatRequest::new("m", messages), &target()));
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": true },
            { "type": "text", "text": "a note" },
            { "type": "text", "text": "and now?" },
        ])
    );
}

#[test]
fn thinking_without_a_signature_goes_back_to_those_only_who_sign_nothing() {
    let mut frames = vec![
        start(0, json!({ "type": "thinking", "thinking": "cut" })),
        stop(0),
    ];
    frames.extend(text(1, "a"));
    frames.extend(end("end_turn"));
    let (events, _) = read_all(&frames);
    let text = json!({ "type": "text", "text": "a" });
    let body = json(request(&after(stored(&events)), &target()));
    assert_eq!(
        body["messages"][1]["content"],
        json!([{ "type": "thinking", "thinking": "cut" }, text])
    );
    let body = json(request(&after(stored(&events)), &claude("claude-opus-4-1")));
    assert_eq!(body["messages"][1]["content"], json!([text]));
}

//! The request. Answers are tried over sockets, in `tests/sockets`.

use std::sync::Arc;

use serde_json::{Value, json};
use youyou_agent::{
    AssistantMessage, AssistantPart, ChatRequest, ContentBlock, Message, PromptBlock,
    ProviderErrorKind, ReasoningEffort, ResponseFormat, ToolResultMessage, ToolSpec, UserMessage,
    UserOrigin,
};

use super::request;
use crate::wire::testing::target;
use crate::wire::{CallIds, EffortField, Shape, Target};

fn user(content: Vec<ContentBlock>) -> Message {
    Message::User(UserMessage {
        content,
        origin: UserOrigin::Input,
    })
}

fn says(text: &str) -> Message {
    user(vec![ContentBlock::text(text)])
}

fn calls(id: &str) -> Message {
    Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::ToolCall {
            call_id: id.into(),
            tool_name: "go".into(),
            arguments: Arc::new(json!({ "a": 1 })),
            provider_data: None,
        }],
        provider_data: None,
    })
}

fn result(id: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        call_id: id.into(),
        tool_name: "go".into(),
        content: "done".into(),
        is_error: false,
    })
}

fn answer(text: &str) -> Message {
    Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::text(text)],
        provider_data: None,
    })
}

fn sent(request: &ChatRequest, target: &Target) -> Value {
    let outgoing = super::request(request, target).unwrap();
    assert_eq!(outgoing.path, "chat/completions");
    serde_json::from_str(&outgoing.body).unwrap()
}

fn asked(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    ChatRequest::new("m", messages)
}

#[test]
fn the_request_has_everything_in_its_place() {
    let mut asked = asked([
        user(vec![
            ContentBlock::text("Look"),
            ContentBlock::image("image/png", "AAAA"),
            ContentBlock::file("a.txt", "alpha"),
        ]),
        calls("c1"),
        result("c1"),
        Message::System("note".into()),
        says("And?"),
    ]);
    asked.system = [("Be kind.", true), (" ", false), ("Be brief.", false)]
        .map(|(text, stable)| PromptBlock {
            text: text.into(),
            stable,
        })
        .into();
    asked.tools = [ToolSpec {
        name: "go".into(),
        description: "Goes.".to_owned(),
        parameters: json!({}),
    }]
    .into();
    asked.temperature = Some(0.7);
    asked.max_tokens = Some(100);
    asked.reasoning_effort = Some(ReasoningEffort::Minimal);
    let expected = json!({
        "model": "test-1",
        "stream": true,
        "stream_options": { "include_usage": true },
        "temperature": 0.7,
        "max_tokens": 100,
        "reasoning_effort": "low",
        "tools": [{
            "type": "function",
            "function": {
                "name": "go",
                "description": "Goes.",
                "parameters": { "type": "object", "properties": {} },
            },
        }],
        "messages": [
            { "role": "system", "content": "Be kind.\n\nBe brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "Look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                { "type": "text", "text": "File \"a.txt\":\n\nalpha" },
            ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "go", "arguments": "{\"a\":1}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "done" },
            { "role": "user", "content": "note\n\nAnd?" },
        ],
    });
    assert_eq!(sent(&asked, &target()), expected);
}

#[test]
fn neighbours_of_one_side_are_one_message() {
    let body = sent(
        &asked([says("a"), says("b"), answer("c"), answer("d"), says("e")]),
        &target(),
    );
    let expected = json!([
        { "role": "user", "content": "a\n\nb" },
        { "role": "assistant", "content": "cd" },
        { "role": "user", "content": "e" },
    ]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn where_no_user_may_speak_behind_a_result_the_words_go_to_its_end() {
    let mut target = target();
    target.quirks.user_after_tool = false;
    let body = sent(
        &asked([
            says("a"),
            calls("c1"),
            result("c1"),
            Message::System("note".into()),
        ]),
        &target,
    );
    assert_eq!(body["messages"][2]["content"], "done\n\nnote");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn ids_of_another_vendor_are_made_fit_for_call_and_result_alike() {
    let mut target = target();
    for (rule, id, longest) in [
        (CallIds::Any, "functions.go:0", 64),
        (CallIds::UpTo40, "x".repeat(64).as_str(), 40),
        (CallIds::Exactly9, "toolu_01ABCDEF", 9),
        (CallIds::Exactly9, "abcDEF123", 9),
    ] {
        target.quirks.call_ids = rule;
        let body = sent(&asked([says("a"), calls(id), result(id)]), &target);
        let called = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
        assert_eq!(body["messages"][2]["tool_call_id"], called);
        assert!(called.len() <= longest, "{called}");
        assert_eq!(
            called == id,
            rule == CallIds::Any || id.len() == 9,
            "{called}"
        );
    }
}

#[test]
fn the_shape_of_an_answer_goes_as_the_server_has_it() {
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let mut asked = asked([says("a")]);
    asked.response_format = Some(ResponseFormat::json_schema("shape", schema.clone()));
    let mut target = target();
    let body = sent(&asked, &target);
    let format = &body["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["name"], "shape");
    assert_eq!(format["json_schema"]["strict"], true);
    assert_eq!(
        format["json_schema"]["schema"]["additionalProperties"],
        false
    );

    target.quirks.shape = Shape::Json;
    let body = sent(&asked, &target);
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("JSON") && system.contains(&schema.to_string()),
        "{system}"
    );

    target.quirks.shape = Shape::None;
    let error = request(&asked, &target).unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::UnsupportedContent);
}

#[test]
fn effort_is_asked_for_in_the_servers_own_field_and_only_of_models_that_reason() {
    let mut asked = asked([says("a")]);
    asked.reasoning_effort = Some(ReasoningEffort::High);
    let mut target = target();
    for (field, name, value) in [
        (
            EffortField::ReasoningEffort,
            "reasoning_effort",
            json!("high"),
        ),
        (
            EffortField::Reasoning,
            "reasoning",
            json!({ "effort": "high" }),
        ),
        (
            EffortField::Thinking,
            "thinking",
            json!({ "type": "enabled" }),
        ),
        (EffortField::EnableThinking, "enable_thinking", json!(true)),
        (EffortField::None, "reasoning_effort", Value::Null),
    ] {
        target.quirks.effort = field;
        assert_eq!(sent(&asked, &target)[name], value);
    }
    target.quirks.effort = EffortField::ReasoningEffort;
    target.reasoning = false;
    assert_eq!(sent(&asked, &target)["reasoning_effort"], Value::Null);
}

#[test]
fn caching_is_marked_for_claude_behind_a_gateway() {
    let mut asked = asked([says("a")]);
    asked.system = [("Stable.", true), ("Today.", false)]
        .map(|(text, stable)| PromptBlock {
            text: text.into(),
            stable,
        })
        .into();
    let mut target = target();
    target.quirks.cache_marks = true;
    assert_eq!(
        sent(&asked, &target)["messages"][0]["content"],
        "Stable.\n\nToday."
    );
    target.family = "claude".into();
    let mark = json!({ "type": "ephemeral" });
    let expected = json!([
        { "role": "system", "content": [
            { "type": "text", "text": "Stable.", "cache_control": mark },
            { "type": "text", "text": "Today." },
        ] },
        { "role": "user", "content": [{ "type": "text", "text": "a", "cache_control": mark }] },
    ]);
    assert_eq!(sent(&asked, &target)["messages"], expected);
}

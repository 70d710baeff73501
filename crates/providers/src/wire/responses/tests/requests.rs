use serde_json::{Value, json};
use youyou_agent::{
    ChatRequest, ContentBlock, Message, PromptBlock, ReasoningEffort, ResponseFormat, ToolSpec,
    UserMessage, UserOrigin,
};

use super::super::request;
use super::{completed, message, read_all, reasoning, whole_output};
use crate::wire::Target;
use crate::wire::testing::{after, json, stored, target};

#[test]
fn reasoning_that_nobody_could_read_or_that_nothing_follows_stays_here() {
    let bare = json!({ "id": "rs_1", "type": "reasoning",
        "summary": [{ "type": "summary_text", "text": "s" }] });
    let local = json!({ "id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "",
        "content": [{ "type": "reasoning_text", "text": "thought" }] });
    let (events, _) = read_all(&[completed(json!([
        bare,
        local,
        message("Hello"),
        reasoning()
    ]))]);
    let body = json(request(&after(stored(&events)), &target()));
    let input = body["input"].as_array().unwrap();
    assert_eq!(json!(input[1..3]), json!([local, message("Hello")]));
    assert_eq!(input.len(), 4);
}

#[test]
fn another_vendor_gets_what_is_visible() {
    let (events, _) = read_all(&[completed(whole_output())]);
    let elsewhere = Target {
        vendor: "elsewhere".into(),
        ..target()
    };
    let body = json(request(&after(stored(&events)), &elsewhere));
    assert_eq!(
        body["input"],
        json!([
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] },
            { "type": "message", "role": "assistant", "content": "Hello" },
            { "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call", "call_id": "call_2", "name": "read", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "done" },
            { "type": "function_call_output", "call_id": "call_2", "output": "done" },
        ])
    );
}

#[test]
fn the_request_has_everything_in_its_place() {
    let mut with = ChatRequest::new(
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
    let block = |text: &str| PromptBlock {
        text: text.into(),
        stable: true,
    };
    with.system = [block("You help."), block("Rules.")].into();
    with.tools = [ToolSpec {
        name: "now".into(),
        description: "Tells the time.".to_owned(),
        parameters: json!(null),
    }]
    .into();
    with.temperature = Some(0.7);
    with.max_tokens = Some(1_000);
    with.reasoning_effort = Some(ReasoningEffort::Low);
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    with.response_format = Some(ResponseFormat::json_schema("answer", schema.clone()));
    let mut target = target();
    target.quirks.strict_roles = false;
    let outgoing = request(&with, &target).unwrap();
    assert_eq!(outgoing.path, "responses");
    assert_eq!(
        serde_json::from_str::<Value>(&outgoing.body).unwrap(),
        json!({
            "model": "test-1",
            "stream": true,
            "store": false,
            "instructions": "You help.\n\nRules.",
            "tools": [{ "type": "function", "name": "now", "description": "Tells the time.",
                "parameters": { "type": "object", "properties": {} }, "strict": false }],
            "temperature": 0.7,
            "max_output_tokens": 1000,
            "reasoning": { "effort": "low" },
            "include": ["reasoning.encrypted_content"],
            "text": { "format": { "type": "json_schema", "name": "answer", "schema": schema,
                "strict": false } },
            "input": [
                { "type": "message", "role": "user", "content": [
                    { "type": "input_text", "text": "look" },
                    { "type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto" },
                    { "type": "input_text", "text": "File \"a.txt\":\n\nalpha" },
                ] },
                { "type": "message", "role": "developer", "content": "a note" },
            ],
        })
    );
    target.vendor = "openai".into();
    assert_eq!(json(request(&with, &target)).get("temperature"), None);
}

//! The transcript rules refuse what the strictest provider refuses, and nothing else.

use serde_json::json;
use youyou_agent::testing::{
    assistant, assistant_call, request, tool_result, user, validate_transcript,
};
use youyou_agent::{
    AssistantMessage, AssistantPart, ContentBlock, Message, PromptBlock, UserMessage, UserOrigin,
};

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| AssistantPart::ToolCall {
        call_id: (*id).into(),
        tool_name: "t".into(),
        arguments: json!({}).into(),
        provider_data: None,
    };
    Message::Assistant(AssistantMessage {
        parts: ids.iter().map(call).collect(),
        provider_data: None,
    })
}

fn result(id: &str) -> Message {
    tool_result(id, "t", "out")
}

fn note(text: &str) -> Message {
    Message::System(text.into())
}

fn violations(messages: Vec<Message>) -> Vec<String> {
    validate_transcript(&request("m1", messages))
        .err()
        .unwrap_or_default()
}

#[test]
fn whole_conversations_are_taken() {
    let reasoning_and_text = Message::Assistant(AssistantMessage {
        parts: vec![
            AssistantPart::Reasoning {
                text: "".into(),
                provider_data: None,
            },
            AssistantPart::text("\nyes"),
        ],
        provider_data: None,
    });
    let files = Message::User(UserMessage {
        content: vec![
            ContentBlock::file("empty.txt", ""),
            ContentBlock::image("image/png", "AA=="),
        ],
        origin: UserOrigin::Summary,
    });
    let valid = vec![
        vec![user("hi")],
        vec![files],
        vec![user("hi"), calls(&["a", "b"]), result("a"), result("b")],
        vec![
            user("hi"),
            calls(&["a"]),
            result("a"),
            note("cut"),
            calls(&["b"]),
            result("b"),
        ],
        vec![
            user("hi"),
            reasoning_and_text,
            note("cut"),
            user("go on"),
            assistant("ok"),
        ],
    ];
    for messages in valid {
        assert_eq!(violations(messages), Vec::<String>::new());
    }
}

// INV-1, INV-3, INV-4
#[test]
fn each_violation_is_refused_by_its_name() {
    let hi = || user("hi");
    let parts = |parts: Vec<AssistantPart>| {
        Message::Assistant(AssistantMessage {
            parts,
            provider_data: None,
        })
    };
    let thought = AssistantPart::Reasoning {
        text: "hm".into(),
        provider_data: None,
    };
    let blank = AssistantPart::text("\n\n");
    let word = AssistantPart::text("x");
    let nothing = Message::User(UserMessage {
        content: Vec::new(),
        origin: UserOrigin::Input,
    });
    let cases: Vec<(Vec<Message>, &str)> = vec![
        (vec![], "there is no message"),
        (
            vec![assistant("hi"), hi()],
            "first message is an assistant message",
        ),
        (vec![result("a"), hi()], "first message is a tool result"),
        (vec![note("cut"), hi()], "first message is a system note"),
        (
            vec![hi(), calls(&["a"])],
            "\"a\" has no result before the end",
        ),
        (
            vec![hi(), calls(&["a"]), hi()],
            "\"a\" has no result before a user message",
        ),
        (
            vec![hi(), calls(&["a"]), note("x"), result("a")],
            "\"a\" has no result before a system note",
        ),
        (
            vec![hi(), calls(&["a", "b"]), result("b"), result("a")],
            "\"b\" is not in call order",
        ),
        (
            vec![hi(), calls(&["a"]), result("a"), result("a")],
            "\"a\" answers no open call",
        ),
        (vec![hi(), result("z")], "\"z\" answers no open call"),
        (
            vec![hi(), calls(&["a", "a"]), result("a"), result("a")],
            "\"a\" is used twice",
        ),
        (
            vec![hi(), calls(&["a"]), result("a"), calls(&["a"]), result("a")],
            "\"a\" is used twice",
        ),
        (vec![hi(), calls(&[""]), result("")], "empty id"),
        (
            vec![hi(), assistant_call("a", "t", json!([1])), result("a")],
            "no JSON object",
        ),
        (
            vec![hi(), calls(&["a"]), tool_result("a", "t", " \n")],
            "result of \"a\" is blank",
        ),
        (vec![user("  \n")], "message 0: a text block is blank"),
        (vec![nothing], "message 0: the user message is empty"),
        (vec![hi(), note(" ")], "message 1: the note is blank"),
        (
            vec![hi(), parts(vec![blank.clone(), word])],
            "message 1: a text part is blank",
        ),
        (
            vec![hi(), parts(vec![blank])],
            "neither text nor tool calls",
        ),
        (
            vec![hi(), parts(vec![thought])],
            "neither text nor tool calls",
        ),
        (vec![hi(), parts(vec![])], "neither text nor tool calls"),
    ];
    for (messages, expected) in cases {
        let found = violations(messages.clone());
        assert!(
            found.iter().any(|violation| violation.contains(expected)),
            "expected {expected:?}, found {found:?} in {messages:?}"
        );
    }
}

#[test]
fn a_blank_block_of_the_system_prompt_is_refused() {
    let mut sent = request("m1", [user("hi")]);
    sent.system = [PromptBlock {
        text: " ".into(),
        stable: true,
    }]
    .into();
    let found = validate_transcript(&sent).unwrap_err();
    assert_eq!(found, ["block 0 of the system prompt is blank"]);
}

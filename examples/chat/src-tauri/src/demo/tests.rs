use std::sync::Arc;

use serde_json::json;
use youyou_agent::{PromptBlock, ToolResultMessage, ToolSpec};

use super::*;

fn user(text: &str, origin: UserOrigin) -> Message {
    Message::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        origin,
    })
}

fn request(messages: Vec<Message>) -> ChatRequest {
    let names = [
        "list_dir",
        "read_file",
        "run_command",
        "search_files",
        "write_file",
    ];
    let mut request = ChatRequest::new(DEMO, messages);
    request.tools = names
        .map(|name| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({}),
        })
        .into();
    request
}

/// What is said, without the pauses.
fn hear(request: &ChatRequest) -> Vec<ChatEvent> {
    let beats = answer(request, 1).unwrap();
    beats.into_iter().map(|(event, _)| event).collect()
}

fn say(text: &str) -> Vec<ChatEvent> {
    hear(&request(vec![user(text, UserOrigin::Input)]))
}

fn text_of(events: &[ChatEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn requests_are_understood_in_both_languages() {
    let call = |tool, arguments: &[Value]| Wish::Call {
        tool,
        arguments: arguments.to_vec(),
    };
    let path = |path: &str| json!({ "path": path });
    let cases = [
        ("list files", call("list_dir", &[json!({})])),
        (
            "List the files in the workspace.",
            call("list_dir", &[json!({})]),
        ),
        ("list files in src", call("list_dir", &[path("src")])),
        ("列出工作区中的文件。", call("list_dir", &[json!({})])),
        ("Read README.md", call("read_file", &[path("README.md")])),
        (
            "read a.txt and src/b.rs",
            call("read_file", &[path("a.txt"), path("src/b.rs")]),
        ),
        (
            "Read README.md and Cargo.toml and compare them.",
            call("read_file", &[path("README.md"), path("Cargo.toml")]),
        ),
        (
            "读取 README.md 和 Cargo.toml 并比较。",
            call("read_file", &[path("README.md"), path("Cargo.toml")]),
        ),
        (
            "search needle",
            call("search_files", &[json!({ "query": "needle" })]),
        ),
        (
            "Search the workspace for “error”.",
            call("search_files", &[json!({ "query": "error" })]),
        ),
        (
            "在工作区中搜索“error”。",
            call("search_files", &[json!({ "query": "error" })]),
        ),
        (
            "write notes.txt: hello: world",
            call(
                "write_file",
                &[json!({ "path": "notes.txt", "content": "hello: world" })],
            ),
        ),
        (
            "写入 笔记.txt：你好",
            call(
                "write_file",
                &[json!({ "path": "笔记.txt", "content": "你好" })],
            ),
        ),
        (
            "run ls -la",
            call("run_command", &[json!({ "command": "ls -la" })]),
        ),
        (
            "运行 echo 你好",
            call("run_command", &[json!({ "command": "echo 你好" })]),
        ),
        ("long answer", Wish::LongAnswer),
        (
            "Write a long answer with code, a table and a list.",
            Wish::LongAnswer,
        ),
        ("写一个包含代码、表格和列表的长回答。", Wish::LongAnswer),
        ("flood 5000", Wish::Flood(5_000)),
        ("Flood 100001", Wish::Flood(100_000)),
        ("flood everything", Wish::Other),
        ("cut", Wish::End(StopReason::Length)),
        ("截断", Wish::End(StopReason::Length)),
        ("filter", Wish::End(StopReason::ContentFilter)),
        ("拒绝。", Wish::End(StopReason::Refusal)),
        ("Go on.", Wish::GoOn),
        ("请继续。", Wish::GoOn),
        ("error", Wish::Error),
        ("报错", Wish::Error),
        ("overflow", Wish::Overflow),
        ("溢出", Wish::Overflow),
        ("Remember that I like tea", Wish::Remember),
        ("记住我喜欢喝茶", Wish::Remember),
        ("hello", Wish::Other),
        ("read this to me", Wish::Other),
        ("你好", Wish::Other),
        ("", Wish::Other),
    ];
    for (text, wish) in cases {
        assert_eq!(Wish::of(text), wish, "{text}");
    }
}

#[test]
fn two_files_are_read_in_one_response() {
    let events = say("read a.txt and b.txt");
    let calls: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, ChatEvent::ToolCall { .. }))
        .collect();
    assert_eq!(calls.len(), 2);
    assert!(matches!(
        events.last(),
        Some(ChatEvent::Done(completion)) if completion.usage.is_some()
    ));
}

#[test]
fn results_are_quoted_whatever_fences_they_hold() {
    let result = Message::ToolResult(ToolResultMessage {
        call_id: "c".into(),
        tool_name: "read_file".into(),
        content: "```\ncode\n```".into(),
        is_error: false,
    });
    let text = text_of(&hear(&request(vec![
        user("read a.md", UserOrigin::Input),
        result,
    ])));
    assert!(text.contains("````text\n```\ncode\n```\n````"), "{text}");
}

#[test]
fn a_file_that_was_read_is_quoted_in_its_own_language() {
    let read = |path: &str, content: &str, is_error| {
        let call = Message::Assistant(AssistantMessage {
            parts: vec![AssistantPart::ToolCall {
                call_id: "c".into(),
                tool_name: "read_file".into(),
                arguments: json!({ "path": path }).into(),
                provider_data: None,
            }],
            provider_data: None,
        });
        let result = Message::ToolResult(ToolResultMessage {
            call_id: "c".into(),
            tool_name: "read_file".into(),
            content: content.into(),
            is_error,
        });
        text_of(&hear(&request(vec![
            user("read it", UserOrigin::Input),
            call,
            result,
        ])))
    };
    let cases = [
        ("Cargo.toml", "```toml\nx\n```"),
        ("docs/README.MD", "```md\nx\n```"),
        ("src/main.rs", "```rs\nx\n```"),
        ("notes.txt", "```text\nx\n```"),
        ("LICENSE", "```text\nx\n```"),
        ("odd.a`b c", "```text\nx\n```"),
    ];
    for (path, quote) in cases {
        let text = read(path, "x", false);
        assert!(text.contains(quote), "{path}: {text}");
    }
    let failed = read("Cargo.toml", "no such file", true);
    assert!(failed.contains("```text\nno such file\n```"), "{failed}");
}

#[test]
fn a_long_answer_thinks_first_and_takes_several_seconds() {
    let beats = answer(&request(vec![user("long answer", UserOrigin::Input)]), 1).unwrap();
    let took: Duration = beats.iter().map(|(_, pause)| *pause).sum();
    let events: Vec<ChatEvent> = beats.into_iter().map(|(event, _)| event).collect();
    assert!(matches!(
        events.first(),
        Some(ChatEvent::ReasoningDelta { .. })
    ));
    let text = text_of(&events);
    assert!(text.contains("## ") && text.contains("```rust") && text.contains("| --- |"));
    assert!((5..20).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn a_flood_is_single_characters_without_a_pause() {
    let flood = request(vec![user("flood 2500", UserOrigin::Input)]);
    let beats = answer(&flood, 1).unwrap();
    assert!(beats.iter().all(|(_, pause)| pause.is_zero()));
    let events: Vec<ChatEvent> = beats.into_iter().map(|(event, _)| event).collect();
    assert_eq!(events.len(), 2_501);
    let text = text_of(&events);
    assert_eq!(text, "abcdefghi ".repeat(250));
}

#[test]
fn failures_can_be_asked_for() {
    let kind = |messages| {
        // A refusal comes before anything is said, so one poll is enough.
        let call = DemoProvider.chat(request(messages), CancellationToken::new());
        let refused = futures_util::FutureExt::now_or_never(call);
        refused.unwrap().err().map(|error| error.kind)
    };
    assert_eq!(
        kind(vec![user("error", UserOrigin::Input)]),
        Some(ProviderErrorKind::Other)
    );
    let overflow = || user("overflow", UserOrigin::Input);
    assert_eq!(
        kind(vec![overflow()]),
        Some(ProviderErrorKind::ContextLengthExceeded)
    );
    // Once the agent has compacted, it gets its answer.
    assert_eq!(
        kind(vec![user("before", UserOrigin::Summary), overflow()]),
        None
    );
    let too_long = "x".repeat(WINDOW as usize * 4 + 100);
    assert_eq!(
        kind(vec![user(&too_long, UserOrigin::Input)]),
        Some(ProviderErrorKind::ContextLengthExceeded)
    );
}

#[test]
fn it_never_pretends_to_be_an_ai() {
    assert!(text_of(&say("hello")).contains("not an AI"));
    assert!(text_of(&say("你好")).contains("并不是 AI"));
    assert!(
        DemoProvider
            .models()
            .iter()
            .all(|model| model.display_name.contains("not an AI"))
    );
}

#[test]
fn the_agents_own_requests_are_answered() {
    let transcript = "<transcript>\n\n[User]\nremember that I like tea\n\n[Assistant]\nNoted.\n\n[User]\n记住：我住在杭州\n</transcript>";
    let own = |system: &str| {
        let mut own = request(vec![user(transcript, UserOrigin::Input)]);
        own.tools = Arc::new([]);
        own.system = [PromptBlock {
            text: system.into(),
            stable: true,
        }]
        .into();
        own
    };
    let memories = text_of(&hear(&own("Answer with JSON only")));
    let memories: Value = serde_json::from_str(&memories).unwrap();
    assert_eq!(memories[0]["content"], "I like tea");
    assert_eq!(memories[1]["content"], "我住在杭州");
    let summary = text_of(&hear(&own("Write the hand-over")));
    assert!(
        summary.contains("- remember that I like tea") && summary.contains("not by an AI"),
        "{summary}"
    );
}

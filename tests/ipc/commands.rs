//! What holds for every command.

use serde_json::{Value, json};
use tauri::test::{MockRuntime, mock_builder, mock_context, noop_assets};
use tauri::{Context, WebviewWindowBuilder};
use youyou_agent::testing::{done, text};
use youyou_agent::{AgentExt as _, ipc_testing};

use crate::harness::{Harness, builder, on, scripted};

/// The largest whole number that JavaScript has exactly.
const LARGEST: u64 = (1 << 53) - 1;

/// Every command with all its arguments.
fn all(session: &str) -> Vec<(&'static str, Value)> {
    vec![
        (
            "create_session",
            json!({
                "config": {
                    "modelId": "m1", "title": "A title", "systemInstructions": ["Be brief."],
                    "personality": "kind", "environment": "here", "memoryNamespace": "n",
                    "replace": true,
                },
                "requestId": "r1",
            }),
        ),
        (
            "resume_session",
            json!({
                "sessionId": session,
                "options": { "modelId": "m1", "environment": "there", "replace": true },
            }),
        ),
        ("current_session", json!({})),
        (
            "send_message",
            json!({
                "sessionId": session,
                "content": [
                    { "type": "text", "text": "look" },
                    { "type": "file", "name": "a.txt", "text": "alpha" },
                ],
                "options": {
                    "modelId": "m1", "temperature": 0.5, "maxTokens": 100,
                    "reasoningEffort": "low",
                },
                "requestId": "r2",
                "onEvent": on(1),
            }),
        ),
        (
            "retry_turn",
            json!({ "sessionId": session, "requestId": "r3", "onEvent": on(2) }),
        ),
        ("wait_turn", json!({ "turnId": "t" })),
        ("cancel", json!({ "turnId": "t", "requestId": "r2" })),
        (
            "attach",
            json!({ "sessionId": session, "afterSequence": LARGEST, "onEvent": on(3) }),
        ),
        ("detach", json!({ "subscription": 1 })),
        ("ack", json!({ "subscription": 1, "sequence": LARGEST })),
        (
            "compact",
            json!({ "sessionId": session, "requestId": "r4" }),
        ),
        ("close_session", json!({ "sessionId": session })),
        (
            "session_history",
            json!({ "sessionId": session, "cursor": LARGEST, "limit": 10, "withImages": true }),
        ),
        ("list_sessions", json!({ "cursor": null, "limit": 10 })),
        ("find_sessions", json!({ "query": "hello" })),
        (
            "rename_session",
            json!({ "sessionId": session, "title": "Another" }),
        ),
        ("delete_session", json!({ "sessionId": session })),
        ("list_models", json!({})),
        ("list_tools", json!({})),
        ("list_skills", json!({})),
    ]
}

// F14, F12
#[test]
fn every_command_takes_its_arguments_in_camel_case_and_answers_errors_as_objects() {
    let harness = Harness::new();
    let page = harness.page("main");
    let calls = all("nowhere");
    let mut names: Vec<&str> = calls.iter().map(|(command, _)| *command).collect();
    for (command, arguments) in calls {
        if let Err(error) = page.invoke(command, arguments) {
            assert!(error["code"].is_string(), "{command}: {error}");
            assert!(error["message"].is_string(), "{command}: {error}");
            assert!(error["retryable"].is_boolean(), "{command}: {error}");
            assert!(error["source"].is_string(), "{command}: {error}");
        }
    }
    names.sort_unstable();
    let mut commands = ipc_testing::commands().to_vec();
    commands.sort_unstable();
    assert_eq!(names, commands);
}

// F14
#[test]
fn a_missing_argument_is_named() {
    let harness = Harness::new();
    let page = harness.page("main");
    for (command, arguments) in all("s") {
        let required: &[&str] = match command {
            "send_message" => &["sessionId", "content", "onEvent"],
            "retry_turn" | "attach" => &["sessionId", "onEvent"],
            "rename_session" => &["sessionId", "title"],
            "ack" => &["subscription", "sequence"],
            "detach" => &["subscription"],
            "wait_turn" => &["turnId"],
            "find_sessions" => &["query"],
            "resume_session" | "compact" | "close_session" | "session_history"
            | "delete_session" => &["sessionId"],
            _ => &[],
        };
        for name in required {
            let mut arguments = arguments.clone();
            arguments.as_object_mut().unwrap().remove(*name);
            let error = page.invoke(command, arguments).expect_err(command);
            let error = error
                .as_str()
                .unwrap_or_else(|| panic!("{command}: {error}"));
            assert!(error.contains(name), "{command} without {name}: {error}");
        }
    }
}

// F14
#[test]
fn a_wrong_content_block_is_told_by_what_it_lacks() {
    let harness = Harness::new();
    let page = harness.page("main");
    for (content, expected) in [
        (
            json!([{ "type": "image", "mediaType": "image/png" }]),
            "data",
        ),
        (json!([{ "type": "video" }]), "video"),
        (json!(7), "a text or a list of content blocks"),
    ] {
        let arguments = json!({ "sessionId": "s", "content": content, "onEvent": on(1) });
        let error = page.invoke("send_message", arguments).unwrap_err();
        assert!(error.as_str().unwrap().contains(expected), "{error}");
    }
}

// F9
#[test]
fn a_command_that_no_permission_covers_is_refused() {
    let provider = scripted();
    let context: Context<MockRuntime> = mock_context(noop_assets());
    let app = mock_builder()
        .plugin(youyou_agent::init(builder(&provider)))
        .build(context)
        .unwrap();
    let window = WebviewWindowBuilder::new(&app, "main", Default::default())
        .build()
        .unwrap();
    let request = tauri::webview::InvokeRequest {
        cmd: "plugin:youyou-agent|list_models".into(),
        callback: tauri::ipc::CallbackFn(0),
        error: tauri::ipc::CallbackFn(1),
        url: window.url().unwrap(),
        body: tauri::ipc::InvokeBody::Json(json!({})),
        headers: Default::default(),
        invoke_key: tauri::test::INVOKE_KEY.into(),
    };
    let error = tauri::test::get_ipc_response(&window, request).unwrap_err();
    assert!(error.as_str().unwrap().contains("not allowed"), "{error}");
}

// F18
#[test]
fn a_panic_in_a_command_is_an_internal_error_and_later_commands_work() {
    let harness = Harness::new();
    let page = harness.page("main");
    ipc_testing::panic_in_commands(&harness.app, true);
    for (command, arguments) in all("s") {
        let error = page.invoke(command, arguments).expect_err(command);
        assert_eq!(error["code"], "INTERNAL", "{command}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(command), "{message}");
    }
    ipc_testing::panic_in_commands(&harness.app, false);
    harness.provider.queue([text("fine"), done()]);
    let session = page.session();
    page.send(&session, "hello", 9);
    harness.whole_turn(9);
}

#[test]
fn stored_sessions_are_listed_found_read_renamed_and_deleted() {
    let harness = Harness::new();
    let page = harness.page("main");
    harness.provider.queue([text("hi"), done()]);
    let session = page.session();
    page.send(&session, "good morning", 1);
    harness.whole_turn(1);
    assert_eq!(
        page.refused("delete_session", json!({ "sessionId": session })),
        "SESSION_BUSY"
    );
    page.get("close_session", json!({ "sessionId": session }));
    assert_eq!(page.get("current_session", json!({})), Value::Null);

    let listed = page.get("list_sessions", json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    let found = page.get("find_sessions", json!({ "query": "morning" }));
    assert_eq!(found[0]["messageCount"], 2);
    page.get(
        "rename_session",
        json!({ "sessionId": session, "title": "Greeting" }),
    );
    let found = page.get("find_sessions", json!({ "query": "Greeting" }));
    assert_eq!(found[0]["sessionId"], session.as_str());

    let mut read = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let asked = json!({ "sessionId": session, "cursor": cursor, "limit": 1 });
        let history = page.get("session_history", asked);
        read.extend(history["events"].as_array().unwrap().clone());
        cursor = history["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let kinds: Vec<&str> = read
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    let messages: Vec<&str> = kinds
        .into_iter()
        .filter(|kind| kind.ends_with("Message"))
        .collect();
    assert_eq!(messages, ["userMessage", "assistantMessage"]);

    page.get("delete_session", json!({ "sessionId": session }));
    assert_eq!(
        page.refused("resume_session", json!({ "sessionId": session })),
        "SESSION_NOT_FOUND"
    );
}

#[test]
fn after_the_shutdown_every_list_says_so() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    tauri::async_runtime::block_on(harness.app.agent().shutdown());
    for (command, arguments) in [
        ("list_models", json!({})),
        ("list_tools", json!({})),
        ("list_skills", json!({})),
        ("list_sessions", json!({})),
        ("find_sessions", json!({ "query": "x" })),
        ("create_session", json!({})),
        ("close_session", json!({ "sessionId": session })),
        ("attach", json!({ "sessionId": session, "onEvent": on(1) })),
        (
            "send_message",
            json!({ "sessionId": session, "content": "hi", "onEvent": on(1) }),
        ),
    ] {
        assert_eq!(
            page.refused(command, arguments),
            "AGENT_SHUT_DOWN",
            "{command}"
        );
    }
}

#[test]
fn a_page_of_the_history_ends_after_4_mib_and_the_next_begins_where_it_ended() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let large = "x".repeat(1_500_000);
    for channel in 1..=4 {
        harness.provider.queue([text("ok"), done()]);
        page.send(&session, &large, channel);
        harness.whole_turn(channel);
    }
    let (mut cursor, mut indices, mut sizes) = (Value::Null, Vec::new(), Vec::new());
    loop {
        let asked = json!({ "sessionId": session, "cursor": cursor });
        let history = page.get("session_history", asked);
        assert_eq!(history["unreadable"], 0);
        let events = history["events"].as_array().unwrap();
        sizes.push(history.to_string().len());
        indices.extend(events.iter().filter_map(|event| event["index"].as_u64()));
        cursor = history["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        let next = indices.last().map(|index| index + 1);
        assert_eq!(cursor.as_u64(), next, "a cursor is where its page begins");
    }
    assert!(sizes.len() > 1, "one page of {sizes:?} bytes");
    assert!(sizes.iter().all(|size| *size < 6 << 20), "{sizes:?}");
    let all: Vec<u64> = (0..indices.len() as u64).collect();
    assert_eq!(indices, all);
}

/// The smallest PNG: one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn history_leaves_image_data_out_unless_it_is_asked_for() {
    let harness = Harness::new();
    let page = harness.page("main");
    harness.provider.queue([text("a pixel"), done()]);
    let session = page.session();
    let content = json!([{ "type": "image", "mediaType": "", "data": PIXEL }]);
    let arguments = json!({ "sessionId": session, "content": content, "onEvent": on(1) });
    page.get("send_message", arguments);
    harness.whole_turn(1);
    for (with_images, expected) in [(Value::Null, ""), (json!(true), PIXEL)] {
        let asked = json!({ "sessionId": session, "withImages": with_images });
        let history = page.get("session_history", asked);
        let events = history["events"].as_array().unwrap();
        let message = events
            .iter()
            .find(|event| event["type"] == "userMessage")
            .unwrap();
        let image = json!({ "type": "image", "mediaType": "image/png", "data": expected });
        assert_eq!(message["content"], json!([image]));
    }
}

#[test]
fn the_lists_say_what_is_registered() {
    use youyou_agent::SkillDefinition;
    use youyou_agent::testing::RecordingTool;

    let harness = Harness::with(
        |agent| {
            agent
                .tool(RecordingTool::mutating("write"))
                .skill(SkillDefinition::new("commit", "Write a commit message."))
        },
        |plugin| plugin,
    );
    let page = harness.page("main");
    let models = page.get("list_models", json!({}));
    assert_eq!(models[0]["id"], "m1");
    assert_eq!(models[0]["providerId"], "scripted");
    assert_eq!(models[0]["capabilities"]["vision"], true);
    let tools = page.get("list_tools", json!({}));
    assert_eq!(tools[0]["name"], "write");
    assert_eq!(tools[0]["mutating"], true);
    let skills = page.get("list_skills", json!({}));
    assert_eq!(skills[0]["name"], "commit");
}

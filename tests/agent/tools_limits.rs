//! Section 12: what a model, a hook and a tool send is bounded before it is worked on, and what
//! is stored can be read again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use youyou_agent::testing::{
    InMemorySessions, RecordingTool, ScriptedProvider, Step, call, done, text,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, AgentEventKind, ErrorCode, ErrorOrigin, HookOutcome, SessionEvent,
    SessionEventKind, ToolOutput,
};

use crate::look::{
    assert_completed, assert_failed, calls, ends, errors, result, results, starts, stored_calls,
    warnings,
};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};

/// One call of `t` with these arguments, with a text before it, then "ok".
fn asking(arguments: impl Into<String>) -> ScriptedProvider {
    provider()
        .reply([text("I ask."), call("c1", "t", arguments.into()), done()])
        .reply([text("ok"), done()])
}

/// This many arrays and objects within each other, the outermost an object.
fn nested(levels: usize) -> Value {
    let inner = (1..levels).fold(json!(1), |inner, _| json!([inner]));
    json!({ "a": inner })
}

/// Everything that was stored, as a storage that keeps JSON finds it later.
fn read_again(stored: &[SessionEvent]) -> Vec<SessionEvent> {
    let again = |event: &SessionEvent| {
        let json = serde_json::to_string(event).unwrap();
        serde_json::from_str(&json).expect("a record can be read again")
    };
    stored.iter().map(again).collect()
}

/// The session goes on from what a storage that keeps JSON finds of it, with the same words.
async fn survives(rig: Rig) {
    let stored = rig.stored();
    assert_eq!(read_again(&stored), stored);
    let storage = InMemorySessions::new();
    storage.preload(rig.session.id(), read_again(&stored));
    let before = said(&rig.request(2));
    let provider = provider().reply([text("on"), done()]);
    let id = rig.session.id().to_owned();
    let resumed = Rig::resumed(provider, config(), storage, &id, |builder| builder).await;
    resumed.send("go on").await;
    assert_eq!(said(&resumed.request(1))[..before.len()], before);
    rig.epilogue().await;
    resumed.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_nested_deeper_than_sixty_four_levels_are_an_error_result() {
    // X1
    for levels in [65, 124, 127, 5_000] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let raw = format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(ends(&events)[0].error, Some(ErrorCode::ToolExecutionError));
        assert!(log.inputs().is_empty());
        let told = result(&rig.request(2), "c1");
        let words = "TOOL_EXECUTION_ERROR: the arguments are nested deeper than 64 levels; ";
        assert!(told.starts_with(words), "{told}");
        assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), json!({}))]);
        assert_eq!(said(&rig.request(2))[1], "assistant: I ask. <c1 t>");
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_sixty_four_levels_run_and_can_be_read_again() {
    // X1, also as one JSON string
    for raw in [
        nested(64).to_string(),
        Value::String(nested(64).to_string()).to_string(),
    ] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
        assert_completed(&rig.send("go").await, "ok");
        assert_eq!(log.inputs()[0].arguments, nested(64));
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn depth_counts_in_a_json_string_too() {
    // X1
    let tool = RecordingTool::read_only("t");
    let log = tool.log().clone();
    let raw = Value::String(nested(65).to_string()).to_string();
    let rig = Rig::with(asking(raw), config(), |builder| builder.tool(tool)).await;
    assert_completed(&rig.send("go").await, "ok");
    assert!(log.inputs().is_empty());
    survives(rig).await;
}

fn changing_arguments(changed: Value) -> Probe {
    Probe::tapping("p", move |hooks| {
        let changed = changed.clone();
        hooks.before_tool_use("wrap", move |_| {
            let changed = changed.clone();
            async move { Ok(HookOutcome::ContinueWith(changed)) }
        });
    })
}

#[tokio::test(start_paused = true)]
async fn a_hooks_change_that_could_not_be_read_again_keeps_the_tool_from_running() {
    // X1
    let too_long = json!({ "a": "x".repeat(1_000) });
    for (changed, reason) in [
        (nested(65), "it is nested deeper than 64 levels"),
        (nested(124), "it is nested deeper than 64 levels"),
        (too_long, "its JSON is longer than 1000 bytes"),
    ] {
        let tool = RecordingTool::mutating("t");
        let log = tool.log().clone();
        let settings = AgentConfig {
            tool_arguments_limit_bytes: 1_000,
            ..config()
        };
        let rig = Rig::with(asking("{}"), settings, |builder| {
            builder.tool(tool).plugin(changing_arguments(changed))
        })
        .await;
        assert_completed(&rig.send("go").await, "ok");
        assert!(log.inputs().is_empty());
        let told = result(&rig.request(2), "c1");
        assert!(told.starts_with("HOOK_ABORTED: "), "{told}");
        assert!(told.contains(reason), "{told}");
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hooks_change_of_sixty_four_levels_is_used() {
    // X1
    let tool = RecordingTool::mutating("t");
    let log = tool.log().clone();
    let rig = Rig::with(asking("{}"), config(), |builder| {
        builder.tool(tool).plugin(changing_arguments(nested(64)))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    assert_eq!(log.inputs()[0].arguments, nested(64));
    assert_eq!(stored_calls(&rig.stored())[0].1, nested(64));
    survives(rig).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_that_could_not_be_read_again_is_left_out_with_a_warning() {
    // X1, X10
    let of_size = |bytes: usize| json!("x".repeat(bytes - 2));
    for (metadata, reason) in [
        (nested(64), None),
        (nested(65), Some("it is nested deeper than 64 levels")),
        (nested(124), Some("it is nested deeper than 64 levels")),
        (of_size(1_048_576), None),
        (
            of_size(1_048_577),
            Some("its JSON is longer than 1048576 bytes"),
        ),
    ] {
        let output = ToolOutput::text("out").with_metadata(metadata.clone());
        let tool = RecordingTool::read_only("t").answering(output);
        let rig = Rig::with(asking("{}"), config(), |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(result(&rig.request(2), "c1"), "out");
        let kept = reason.is_none().then_some(&metadata);
        let shown = events.iter().find_map(|event| match &event.kind {
            AgentEventKind::ToolCallEnd { metadata, .. } => metadata.clone(),
            _ => None,
        });
        assert_eq!(shown.as_deref(), kept);
        let stored = rig.stored().into_iter().find_map(|event| match event.kind {
            SessionEventKind::ToolResult { metadata, .. } => metadata,
            _ => None,
        });
        assert_eq!(stored.as_deref(), kept);
        let told = reason.map(|reason| {
            let told = format!("the metadata of a result of the tool \"t\" is left out: {reason}");
            (ErrorOrigin::Tool, told)
        });
        assert_eq!(warnings(&events), Vec::from_iter(told));
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_beyond_their_limit_are_an_error_result_that_says_so() {
    let limit = 40;
    for (bytes, runs) in [(40, true), (41, false), (5_000, false)] {
        let tool = RecordingTool::read_only("t");
        let log = tool.log().clone();
        let settings = AgentConfig {
            tool_arguments_limit_bytes: limit,
            ..config()
        };
        let raw = json!({ "a": "x".repeat(bytes - 8) }).to_string();
        assert_eq!(raw.len(), bytes);
        let rig = Rig::with(asking(raw), settings, |builder| builder.tool(tool)).await;
        let events = rig.send("go").await;
        assert_completed(&events, "ok");
        assert_eq!(log.inputs().len(), usize::from(runs));
        if !runs {
            assert_eq!(
                result(&rig.request(2), "c1"),
                format!(
                    "TOOL_EXECUTION_ERROR: the arguments have {bytes} bytes, the limit is {limit}; the tool was not run. Do it in several calls with less in each"
                )
            );
            assert_eq!(calls(&rig.request(2)), [("c1".to_owned(), json!({}))]);
        }
        survives(rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn eight_megabytes_of_arguments_are_refused_by_default() {
    // X6
    let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(4_000_000));
    let rig = Rig::with(asking(raw), config(), |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    let told = result(&rig.request(2), "c1");
    assert!(told.contains("the limit is 4194304"), "{told}");
    rig.epilogue().await;
}

fn takes_texts() -> RecordingTool {
    RecordingTool::read_only("t").parameters(json!({
        "type": "object",
        "properties": { "xs": { "type": "array", "items": { "type": "string" } } },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_million_violations_of_the_schema_are_told_by_the_first() {
    // X6
    let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(1_000_000));
    let rig = Rig::with(asking(raw), config(), |builder| builder.tool(takes_texts())).await;
    assert_completed(&rig.send("go").await, "ok");
    assert_eq!(
        result(&rig.request(2), "c1"),
        "TOOL_EXECUTION_ERROR: the arguments do not fit the schema of \"t\": /xs/0: 1 is not of type \"string\"; the tool was not run"
    );
    rig.epilogue().await;
}

#[test]
fn large_arguments_are_read_and_checked_beside_the_runtime() {
    // X6: on a runtime with one thread every other thread is one for work that blocks.
    for (numbers, beside) in [(100, false), (100_000, true)] {
        let threads = Arc::new(AtomicUsize::new(0));
        let started = Arc::clone(&threads);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_start(move || {
                started.fetch_add(1, Ordering::Relaxed);
            })
            .build()
            .unwrap();
        runtime.block_on(async {
            let raw = format!("{{\"xs\":[1{}]}}", ",1".repeat(numbers));
            let rig = Rig::with(asking(raw), config(), |builder| builder.tool(takes_texts()));
            let rig = rig.await;
            assert_completed(&rig.send("go").await, "ok");
            rig.epilogue().await;
        });
        assert_eq!(threads.load(Ordering::Relaxed) > 0, beside, "{numbers}");
    }
}

fn many_calls(count: usize) -> Vec<Step> {
    let calls = (1..=count).map(|n| call(format!("c{n}"), "t", "{}"));
    calls.chain([done()]).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_far_beyond_the_limit_are_dropped_while_they_stream() {
    // X5
    let tool = RecordingTool::read_only("t");
    let log = tool.log().clone();
    let settings = AgentConfig {
        max_tool_calls_per_turn: 3,
        ..config()
    };
    let provider = provider()
        .reply(many_calls(100_000))
        .reply([text("went on"), done()]);
    let rig = Rig::with(provider, settings, |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
    assert_eq!(errors(&events).len(), 1);
    assert_eq!(starts(&events).len(), 3);
    assert_eq!(log.inputs().len(), 3);

    assert_completed(&rig.send("go on").await, "went on");
    let told = results(&rig.request(2));
    let kept: Vec<String> = (1..=67).map(|n| format!("c{n}")).collect();
    let ids: Vec<&String> = told.iter().map(|(id, _)| id).collect();
    assert_eq!(ids, Vec::from_iter(&kept));
    let not_run = "MAX_TOOL_CALLS_EXCEEDED: [not executed] This call did not run. A turn has at most 3 tool calls.";
    for (id, content) in &told[3..66] {
        assert_eq!(content, not_run, "{id}");
    }
    assert_eq!(
        told[66].1,
        format!(
            "{not_run} 99933 more calls came after this one; they did not run either and are not kept."
        )
    );
    survives(rig).await;
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_earlier_answers_count_for_what_is_dropped() {
    // X5
    let settings = AgentConfig {
        max_tool_calls_per_turn: 3,
        ..config()
    };
    let provider = provider().reply(many_calls(2)).reply(many_calls(100));
    let rig = Rig::with(provider, settings, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_failed(&rig.send("go").await, ErrorCode::MaxToolCallsExceeded);
    let stored = stored_lines(&rig.stored());
    let results = stored.iter().filter(|line| line.starts_with("result"));
    assert_eq!(results.count(), 2 + 1 + 64);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_end_are_cut_with_their_answer() {
    // X5: calls that hold nothing at all have a size, too.
    let settings = AgentConfig {
        max_tool_calls_per_turn: 2,
        response_limit_bytes: 1_000,
        ..config()
    };
    let endless = (0..5_000).map(|_| call("", "", ""));
    let provider = provider().reply(endless);
    let rig = Rig::with(provider, settings, |builder| builder).await;
    let events = rig.send("go").await;
    assert_failed(&events, ErrorCode::MaxToolCallsExceeded);
    let cut = (
        ErrorOrigin::Provider,
        "the answer of \"m1\" was cut at 1000 bytes".to_owned(),
    );
    assert_eq!(warnings(&events), [cut]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn many_calls_with_one_id_all_get_their_own() {
    // X5
    let settings = AgentConfig {
        max_tool_calls_per_turn: 2_000,
        ..config()
    };
    let same = (0..2_000).map(|_| call("same", "t", "{}"));
    let provider = provider()
        .reply(same.chain([done()]))
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, settings, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    let mut ids: Vec<String> = calls(&rig.request(2))
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!((ids.len(), ids[0].as_str()), (2_000, "same"));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2_000);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_name_and_a_long_id_are_not_kept() {
    // X9
    let provider = provider()
        .reply([
            call("i".repeat(20_000_000), "t", "{}"),
            call("c2", "读".repeat(3_000_000), "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    let events = rig.send("go").await;
    assert_completed(&events, "ok");
    let sent = calls(&rig.request(2));
    assert!(sent[0].0.starts_with("call_") && sent[0].0.len() < 64);
    let told = result(&rig.request(2), "c2");
    let words = format!("TOOL_NOT_FOUND: there is no tool \"{}…\"", "读".repeat(200));
    assert!(told.starts_with(&words), "{told}");
    let stored = serde_json::to_string(&rig.stored()).unwrap();
    assert!(stored.len() < 20_000, "{}", stored.len());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_name_that_a_provider_would_refuse_fails_the_build() {
    let build = async |name: &str| {
        let builder = AgentBuilder::new(config()).provider(provider());
        builder.tool(RecordingTool::read_only(name)).build().await
    };
    let longest = "n".repeat(64);
    for name in ["t", "read_file", "read-file", "9", "_", "-", "T0", &longest] {
        assert_eq!(build(name).await.unwrap().tools()[0].name, name);
    }
    let long = "n".repeat(65);
    for name in [
        "",
        " ",
        "read file",
        "读文件",
        "ns.tool",
        "a/b",
        "a:b",
        "é",
        "t\n",
        &long,
    ] {
        let error = build(name).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert_eq!(
            error.message,
            format!(
                "tool: the name \"{name}\" is not allowed; a name has 1 to 64 characters, each one of A-Z, a-z, 0-9, \"_\" and \"-\""
            )
        );
    }
    let endless = "n".repeat(20_000_000);
    assert!(build(&endless).await.unwrap_err().message.len() < 500);
}

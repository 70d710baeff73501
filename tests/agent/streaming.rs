//! Chapters 3.1 and 5.1: what a stream may do, and what is made of it.

use serde_json::json;
use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, Step, call, call_with, collect, done, done_with,
    done_with_data, error, reasoning, reasoning_with, text, text_model,
};
use youyou_agent::{
    AgentEventKind, AssistantPart, ChatRequest, ErrorOrigin, Message, MessageStatus, ProviderData,
    ProviderErrorKind, SendOptions, SessionEventKind, StopReason, Usage,
};

use crate::look::assert_failed;
use crate::rig::{Rig, config, provider, provider_with_window};
use crate::said::{said, stored_lines};
use crate::told::told;

const NOTE: &str = "note: [此消息因错误而中断]";

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_done_after_text_fails_and_keeps_the_text() {
    // E5
    let mut rig = Rig::new(provider().reply([text("ha"), text("lf")])).await;
    let events = rig.send("hi").await;
    assert_eq!(
        told(&events),
        [
            "started",
            "text 0: ha",
            "text 0: lf",
            "error PROVIDER_ERROR",
            "failed PROVIDER_ERROR"
        ]
    );
    let failure = assert_failed(&events, youyou_agent::ErrorCode::ProviderError);
    assert!(failure.retryable);
    assert_eq!(failure.origin, ErrorOrigin::Provider);
    assert_eq!(failure.details, Some(json!({"kind": {"type": "network"}})));
    let stored = rig.stored();
    assert_eq!(
        stored_lines(&stored),
        ["created: hi", "user: hi", "assistant: half (Failed)"]
    );
    let SessionEventKind::AssistantMessage { status, .. } = &stored[2].kind else {
        panic!("{stored:?}");
    };
    assert_eq!(*status, MessageStatus::Incomplete);
    let expected = ["user: hi", "assistant: half", NOTE, "user: next"];
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(said(&rig.request(2)), expected);
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("more").await;
    assert_eq!(said(&rig.request(3))[..4], expected);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_stream_broke_off_never_runs_and_says_so() {
    // E5: nothing was shown, so it is tried again first; only the last attempt stays.
    let tool = RecordingTool::mutating("mu_write");
    let log = tool.log().clone();
    let attempt = |id: &str| [call(id, "mu_write", r#"{"a":1}"#)];
    let provider = provider()
        .reply(attempt("c1"))
        .reply(attempt("c2"))
        .reply(attempt("c3"));
    let mut rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("hi").await;
    let told = told(&events);
    assert!(told[1].starts_with("retry 2 in "), "{told:?}");
    assert!(told[2].starts_with("retry 3 in "), "{told:?}");
    assert_eq!(told[3..], ["error PROVIDER_ERROR", "failed PROVIDER_ERROR"]);
    assert!(log.inputs().is_empty());
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        [
            "assistant: <c3 mu_write> (Failed)",
            "result c3: [not executed] This call did not run.",
        ]
    );
    let expected = [
        "user: hi",
        "assistant: <c3 mu_write>",
        "error c3: [not executed] This call did not run.",
        NOTE,
    ];
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(said(&rig.request(4))[..4], expected);
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("more").await;
    assert_eq!(said(&rig.request(5))[..4], expected);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_at_once_is_tried_again_without_a_trace() {
    // E5
    let rig = Rig::new(provider().reply([]).reply([text("ok"), done()])).await;
    let events = rig.send("hi").await;
    let told = told(&events);
    assert!(told[1].starts_with("retry 2 in "), "{told:?}");
    assert_eq!(told[2..], ["text 0: ok", "completed: ok"]);
    assert_eq!(said(&rig.request(1)), said(&rig.request(2)));
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "assistant: ok"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_always_empty_fails_and_the_message_stays() {
    // E5
    let rig = Rig::new(provider().reply([]).reply([]).reply([])).await;
    let events = rig.send("hi").await;
    assert_failed(&events, youyou_agent::ErrorCode::ProviderError);
    assert_eq!(rig.provider.request_count(), 3);
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "interrupted: Failed"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_after_visible_text_is_never_tried_again() {
    // E7
    let shown = [
        (
            vec![text("AB"), call("c1", "mu_write", "{}")],
            "AB <c1 mu_write>",
        ),
        (vec![reasoning("AB")], "<thinks AB>"),
        (vec![text("\n")], ""),
    ];
    let kinds = [
        ProviderErrorKind::Overloaded,
        ProviderErrorKind::Network,
        ProviderErrorKind::Timeout,
        ProviderErrorKind::RateLimited {
            retry_after_ms: Some(1),
        },
        ProviderErrorKind::ContextLengthExceeded,
        ProviderErrorKind::Other,
    ];
    for kind in kinds {
        for (script, kept) in &shown {
            let tool = RecordingTool::mutating("mu_write");
            let log = tool.log().clone();
            let script = script
                .iter()
                .map(again)
                .chain([error(kind.clone(), "broke")]);
            let provider = provider().reply(script).reply([text("CD"), done()]);
            let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
            let events = rig.send("hi").await;
            assert_failed(&events, youyou_agent::ErrorCode::ProviderError);
            assert_eq!(rig.provider.request_count(), 1, "{kind:?}");
            assert!(log.inputs().is_empty());
            let lines = stored_lines(&rig.stored());
            let expected = if kept.is_empty() {
                "interrupted: Failed".to_owned()
            } else {
                format!("assistant: {kept} (Failed)")
            };
            assert_eq!(lines[2], expected, "{kind:?}");
            rig.epilogue().await;
        }
    }
}

/// The same step once more.
fn again(step: &Step) -> Step {
    match step {
        Step::Emit(event) => Step::Emit(event.clone()),
        other => panic!("{other:?} cannot be repeated"),
    }
}

#[tokio::test(start_paused = true)]
async fn reasoning_goes_back_in_place_with_its_data_byte_for_byte() {
    // E8
    let data = r#"{ "sig" : "ab", "n": 1.0 }"#;
    let provider = provider().reply([
        reasoning("th"),
        reasoning_with("ink", data),
        reasoning_with("", "cd"),
        reasoning_with("more", "ef"),
        text("Look."),
        call_with("c1", "ro_echo", r#"{"b":1,"a":2}"#, "thought"),
        done_with_data("whole"),
    ]);
    let other = ScriptedProvider::new("other").model(text_model("o1"));
    let mut rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo"))
            .provider(other.clone())
    })
    .await;
    rig.provider.queue([text("done"), done()]);
    rig.send("hi").await;

    let expected = vec![
        thought("think", Some(data)),
        thought("", Some("cd")),
        thought("more", Some("ef")),
        AssistantPart::text("Look."),
        AssistantPart::ToolCall {
            call_id: "c1".into(),
            tool_name: "ro_echo".into(),
            arguments: json!({"b": 1, "a": 2}).into(),
            provider_data: Some(ProviderData("thought".into())),
        },
    ];
    let whole = Some(ProviderData("whole".into()));
    assert_eq!(answer(&rig.request(2)), (expected.clone(), whole.clone()));

    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(answer(&rig.request(3)), (expected.clone(), whole.clone()));

    // Another provider gets the words, and nothing that is not its own.
    other.queue([text("ok"), done()]);
    let options = SendOptions {
        model_id: Some("o1".to_owned()),
        ..SendOptions::default()
    };
    collect(rig.session.send_with("over", options).unwrap()).await;
    let (parts, data) = answer(&other.last_request().unwrap());
    assert_eq!(data, None);
    assert_eq!(parts[..2], [thought("think", None), thought("more", None)]);
    assert!(parts.iter().all(|part| match part {
        AssistantPart::ToolCall { provider_data, .. }
        | AssistantPart::Reasoning { provider_data, .. } => provider_data.is_none(),
        AssistantPart::Text { provider_data, .. } => provider_data.is_none(),
        _ => false,
    }));

    // Back with the first one its data is there again.
    rig.provider.queue([text("ok"), done()]);
    let options = SendOptions {
        model_id: Some(crate::rig::MODEL.to_owned()),
        ..SendOptions::default()
    };
    collect(rig.session.send_with("back", options).unwrap()).await;
    assert_eq!(answer(&rig.request(4)), (expected, whole));
    assert_eq!(other.violations(), Vec::<String>::new());
    rig.epilogue().await;
}

fn thought(text: &str, data: Option<&str>) -> AssistantPart {
    AssistantPart::Reasoning {
        text: text.into(),
        provider_data: data.map(|data| ProviderData(data.into())),
    }
}

/// The first answer in a request.
fn answer(request: &ChatRequest) -> (Vec<AssistantPart>, Option<ProviderData>) {
    let answers = request
        .messages
        .iter()
        .find_map(|message| match &**message {
            Message::Assistant(answer) => {
                Some((answer.parts.clone(), answer.provider_data.clone()))
            }
            _ => None,
        });
    answers.expect("the request has an answer")
}

#[tokio::test(start_paused = true)]
async fn missing_or_zero_usage_does_not_keep_compaction_away() {
    // E9
    let zero = Usage {
        input_tokens: Some(0),
        output_tokens: Some(0),
        cached_input_tokens: Some(0),
        reasoning_tokens: Some(0),
    };
    for usage in [None, Some(zero)] {
        let provider = provider_with_window(4_000)
            .always(move |_| [text("x".repeat(400)), done_with(usage, StopReason::EndTurn)]);
        let rig = Rig::new(provider).await;
        let mut compactions = 0;
        for turn in 0..50 {
            let events = rig.send(format!("{turn}{}", "y".repeat(200))).await;
            compactions += told(&events)
                .iter()
                .filter(|line| *line == "compacted")
                .count();
            let AgentEventKind::TurnComplete { usage: told, .. } = events.last().unwrap().kind
            else {
                panic!("{events:?}");
            };
            assert_eq!(
                told,
                usage.unwrap_or_default(),
                "nothing is passed on as nothing"
            );
        }
        assert!(compactions > 0, "{usage:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn empty_deltas_are_no_events_and_no_output() {
    // E11
    let rig = Rig::new(
        provider()
            .reply([
                text(""),
                reasoning(""),
                text("a"),
                text(""),
                text(""),
                done(),
            ])
            // An empty delta counts as nothing shown: this one is tried again.
            .reply([
                text(""),
                reasoning(""),
                error(ProviderErrorKind::Overloaded, "busy"),
            ])
            .reply([text("b"), done()]),
    )
    .await;
    let events = rig.send("hi").await;
    assert_eq!(told(&events), ["started", "text 0: a", "completed: a"]);
    let events = rig.send("again").await;
    let told = told(&events);
    assert!(told[1].starts_with("retry 2"), "{told:?}");
    assert_eq!(told[2..], ["text 0: b", "completed: b"]);
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: hi",
            "user: hi",
            "assistant: a",
            "user: again",
            "assistant: b"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn one_response_is_one_message_its_parts_in_order_of_arrival() {
    // 3.1
    let provider = provider()
        .reply([
            text("A"),
            reasoning("r"),
            text("B"),
            text("C"),
            call("c1", "ro_echo", "{}"),
            text("D"),
            call("c2", "ro_echo", "{}"),
            done(),
        ])
        .reply([done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    rig.send("hi").await;
    assert_eq!(
        said(&rig.request(2))[1],
        "assistant: A <thinks r> BC <c1 ro_echo> D <c2 ro_echo>"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_answers_nothing_completes_with_nothing() {
    // Section 12: only Done.
    let rig = Rig::new(provider().reply([done()]).reply([text("b"), done()])).await;
    let events = rig.send("hi").await;
    assert_eq!(told(&events), ["started", "completed: "]);
    assert_eq!(rig.provider.request_count(), 1, "no hidden second prompt");
    rig.send("next").await;
    let silence = "note: [The model gave no answer to this message.]";
    assert_eq!(said(&rig.request(2)), ["user: hi", silence, "user: next"]);
    assert!(
        !stored_lines(&rig.stored())
            .iter()
            .any(|line| line.trim_end() == "assistant:")
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_with_calls_has_one_note_right_after_a_resume_too() {
    // E5, D4
    let script = [text("A"), call("c1", "no_such_tool", "{}")];
    let mut rig = Rig::new(provider().reply(script)).await;
    rig.send("hi").await;
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(2)),
        [
            "user: hi",
            "assistant: A <c1 no_such_tool>",
            "error c1: [not executed] This call did not run.",
            NOTE,
            "user: next"
        ]
    );
    rig.epilogue().await;
}

//! Chapter 5.2: the invariants of every request, whatever the stored events say.

use serde_json::json;
use youyou_agent::testing::{
    assistant_message, call_part, cut_message, done, metadata, text, text_part, tool_call_stored,
    tool_result_stored, user_message,
};
use youyou_agent::{
    AssistantPart, Interruption, MessageStatus, ResumeOptions, SessionEvent, SessionEventKind,
    SessionMetadata,
};

use crate::histories::{STORED, storage_with};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::said;

async fn first_request_after(history: Vec<SessionEvent>) -> (Rig, Vec<String>) {
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(
        provider,
        config(),
        storage_with(history),
        STORED,
        |builder| builder,
    )
    .await;
    rig.send("next").await;
    let lines = said(&rig.request(1));
    (rig, lines)
}

pub(crate) fn raw(kind: SessionEventKind) -> SessionEvent {
    SessionEvent {
        kind,
        ..user_message(0, "")
    }
}

const UNKNOWN: &str = "[outcome unknown] The program ended while this call was running. It may or may not have taken effect; check before you repeat it.";

const NOT_RUN: &str = "[not executed] This call did not run.";

const ENDED: &str = "note: [此消息因程序中断而未完成]";

#[tokio::test(start_paused = true)]
async fn every_stored_history_becomes_a_valid_request() {
    let two_calls = || {
        assistant_message(
            0,
            [
                text_part("let me see"),
                call_part("c1", "ro_echo", json!({})),
                call_part("c2", "mu_write", json!({})),
            ],
        )
    };
    let asked = || user_message(0, "q");
    let cases: Vec<(&str, Vec<SessionEvent>, Vec<String>)> = vec![
        (
            "D3: a crash between a call and its result",
            vec![
                asked(),
                two_calls(),
                tool_call_stored(0, "c1", "ro_echo", json!({})),
                tool_result_stored(0, "c1", "ro_echo", "one"),
                tool_call_stored(0, "c2", "mu_write", json!({})),
            ],
            vec![
                "user: q".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: one".into(),
                format!("error c2: {UNKNOWN}"),
                ENDED.into(),
                "user: next".into(),
            ],
        ),
        (
            "a crash before the second call began",
            vec![
                asked(),
                two_calls(),
                tool_call_stored(0, "c1", "ro_echo", json!({})),
                tool_result_stored(0, "c1", "ro_echo", "one"),
            ],
            vec![
                "user: q".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: one".into(),
                format!("error c2: {NOT_RUN}"),
                ENDED.into(),
                "user: next".into(),
            ],
        ),
        (
            "results in the order they finished",
            vec![
                asked(),
                two_calls(),
                tool_result_stored(0, "c2", "mu_write", "two"),
                tool_result_stored(0, "c1", "ro_echo", " \n "),
                assistant_message(0, [text_part("done")]),
            ],
            vec![
                "user: q".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: (no output)".into(),
                "result c2: two".into(),
                "assistant: done".into(),
                "user: next".into(),
            ],
        ),
        (
            "D3: results without a call, late and double ones",
            vec![
                asked(),
                tool_result_stored(0, "ghost", "ro_echo", "boo"),
                two_calls(),
                tool_result_stored(0, "c1", "ro_echo", "one"),
                tool_result_stored(0, "c1", "ro_echo", "one again"),
                tool_result_stored(0, "c3", "ro_echo", "three"),
                tool_result_stored(0, "c2", "mu_write", "two"),
                tool_result_stored(0, "c2", "mu_write", "two again"),
                assistant_message(0, [text_part("done")]),
            ],
            vec![
                "user: q".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: one".into(),
                "result c2: two".into(),
                "assistant: done".into(),
                "user: next".into(),
            ],
        ),
        (
            "ids that are empty or used twice",
            vec![
                asked(),
                assistant_message(
                    0,
                    [
                        call_part("", "ro_echo", json!({})),
                        call_part("", "ro_echo", json!({})),
                        call_part("c1", "ro_echo", json!({})),
                    ],
                ),
                tool_result_stored(0, "", "ro_echo", "a"),
                tool_result_stored(0, "", "ro_echo", "b"),
                tool_result_stored(0, "c1", "ro_echo", "c"),
                assistant_message(0, [call_part("c1", "ro_echo", json!({}))]),
                tool_result_stored(0, "c1", "ro_echo", "d"),
                assistant_message(0, [text_part("done")]),
            ],
            vec![
                "user: q".into(),
                "assistant: <call_2 ro_echo> <call_3 ro_echo> <c1 ro_echo>".into(),
                "result call_2: a".into(),
                "result call_3: b".into(),
                "result c1: c".into(),
                "assistant: <c1_2 ro_echo>".into(),
                "result c1_2: d".into(),
                "assistant: done".into(),
                "user: next".into(),
            ],
        ),
        (
            "blank messages, reasoning without an answer",
            vec![
                user_message(0, " \n"),
                asked(),
                assistant_message(0, [text_part("\n\n")]),
                assistant_message(
                    0,
                    [AssistantPart::Reasoning {
                        text: "hm".into(),
                        provider_data: None,
                    }],
                ),
                assistant_message(0, [text_part(" "), text_part("a"), text_part("")]),
                assistant_message(0, []),
            ],
            vec![
                "user: q".into(),
                "note: [The model gave no answer to this message.]".into(),
                "assistant: a".into(),
                "user: next".into(),
            ],
        ),
        (
            "a history that does not start with the user",
            vec![
                two_calls(),
                tool_result_stored(0, "c1", "ro_echo", "one"),
                tool_result_stored(0, "c2", "mu_write", "two"),
                assistant_message(0, [text_part("done")]),
            ],
            vec![
                "summary: [Earlier messages are not available.]".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: one".into(),
                "result c2: two".into(),
                "assistant: done".into(),
                "user: next".into(),
            ],
        ),
        (
            "stored notes, also blank ones, also in the middle of a round",
            vec![
                asked(),
                two_calls(),
                tool_result_stored(0, "c1", "ro_echo", "one"),
                raw(SessionEventKind::SystemMessage {
                    text: "mind the gap".into(),
                }),
                raw(SessionEventKind::SystemMessage { text: " ".into() }),
                assistant_message(0, [text_part("done")]),
            ],
            vec![
                "user: q".into(),
                "assistant: let me see <c1 ro_echo> <c2 mu_write>".into(),
                "result c1: one".into(),
                format!("error c2: {NOT_RUN}"),
                "note: mind the gap".into(),
                "assistant: done".into(),
                "user: next".into(),
            ],
        ),
        (
            "D4: a cut message with calls has its note after their results",
            vec![
                asked(),
                raw(SessionEventKind::AssistantMessage {
                    parts: vec![text_part("I will"), call_part("c1", "ro_echo", json!({}))],
                    status: MessageStatus::Incomplete,
                    interruption: None,
                    stop_reason: None,
                    provider_id: "scripted".into(),
                    model_id: MODEL.into(),
                    provider_data: None,
                    usage: None,
                }),
            ],
            vec![
                "user: q".into(),
                "assistant: I will <c1 ro_echo>".into(),
                format!("error c1: {NOT_RUN}"),
                "note: [此消息因用户取消而中断]".into(),
                "user: next".into(),
            ],
        ),
        (
            "an unanswered message is not left beside the next one",
            vec![asked()],
            vec!["user: q".into(), ENDED.into(), "user: next".into()],
        ),
        (
            "a cut blank message leaves its note",
            vec![asked(), cut_message(0, " \n", Interruption::Failed)],
            vec![
                "user: q".into(),
                "note: [此消息因错误而中断]".into(),
                "user: next".into(),
            ],
        ),
    ];
    for (name, history, expected) in cases {
        let (rig, lines) = first_request_after(history).await;
        assert_eq!(lines, expected, "{name}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn facts_about_the_session_are_no_messages() {
    let history = vec![
        user_message(0, "q"),
        metadata(0, SessionMetadata::TurnEndedSilently { stop_reason: None }),
        metadata(
            0,
            SessionMetadata::ModelChanged {
                model_id: MODEL.into(),
            },
        ),
        metadata(
            0,
            SessionMetadata::MemoryCheckpoint {
                through: 0,
                usage: None,
            },
        ),
    ];
    let (rig, lines) = first_request_after(history).await;
    let silence = "note: [The model gave no answer to this message.]";
    assert_eq!(lines, ["user: q", silence, "user: next"]);
    let info = rig.session.info();
    assert_eq!(info.message_count, 3);
    let resumed = rig
        .agent
        .resume_session(STORED, ResumeOptions::default())
        .await;
    assert!(resumed.is_err(), "it is open already");
    rig.epilogue().await;
}

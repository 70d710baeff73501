//! Chapter 5.2: messages and results that are too large, and compactions that free nothing.

use youyou_agent::testing::{RecordingTool, call, done, error, kinds, text};
use youyou_agent::{
    AgentConfig, AgentEvent, AgentEventKind, ErrorCode, ProviderErrorKind, SkillDefinition,
};

use crate::compaction::compacted;
use crate::histories::{
    STORED, compacting, compactions, marked_turns, storage_with, summaries_asked, tool_rounds,
    turns_asked, well_summarised,
};
use crate::rig::{Rig, provider_with_window};
use crate::said::{all_said, said};

/// The error of the turn that failed.
fn failure(events: &[AgentEvent]) -> youyou_agent::AgentError {
    match &events.last().unwrap().kind {
        AgentEventKind::TurnComplete {
            error: Some(error), ..
        } => (**error).clone(),
        other => panic!("the turn did not fail: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_larger_than_the_window_is_sent_once_and_then_the_turn_fails() {
    // C4
    for (history, message) in [
        (vec![], "x".repeat(40_000)),
        (vec![], "频".repeat(12_000)),
        (marked_turns(2, 50), "x".repeat(40_000)),
    ] {
        let provider = well_summarised(provider_with_window(1_000))
            .always(|_| [error(ProviderErrorKind::ContextLengthExceeded, "too long")]);
        let storage = storage_with(history);
        let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
        let events = rig.send(message.as_str()).await;
        let failure = failure(&events);
        assert_eq!(failure.code, ErrorCode::CompactError);
        assert!(!failure.retryable);
        assert!(
            rig.provider.request_count() <= 3,
            "{}",
            rig.provider.request_count()
        );
        let asked = turns_asked(&rig.provider);
        assert_eq!(*said(&asked[0]).last().unwrap(), format!("user: {message}"));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_result_larger_than_the_window_does_not_stop_a_turn() {
    // C4
    for rounds in [1, 3] {
        let provider =
            well_summarised(provider_with_window(1_000)).always(|_| [text("ok"), done()]);
        let storage = storage_with(tool_rounds(rounds, &"o".repeat(40_000)));
        let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
        let events = rig.send("next").await;
        assert_eq!(
            kinds(&events),
            [
                "turnStarted",
                "contextCompacted",
                "textDelta",
                "turnComplete"
            ]
        );
        assert!(rig.provider.request_count() <= 3);
        for request in rig.provider.requests() {
            assert!(
                all_said(&request).len() < 4_000,
                "a request fits the window"
            );
        }
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_of_the_running_turn_larger_than_the_window_is_shortened() {
    // C4
    let provider = well_summarised(provider_with_window(1_000))
        .reply([call("c1", "big", "{}"), done()])
        .reply([text("seen"), done()]);
    let rig = Rig::with(provider, compacting(), |builder| {
        builder.tool(RecordingTool::read_only("big").answering("头".repeat(20_000)))
    })
    .await;
    let events = rig.send("look").await;
    assert_eq!(compacted(&events).len(), 1);
    assert_eq!(
        rig.provider.request_count(),
        2,
        "nothing is gone, so no summary is asked for"
    );
    let lines = said(&rig.request(2));
    assert_eq!(lines[..2], ["user: look", "assistant: <c1 big>"]);
    assert!(lines[2].contains("of 60000 bytes left out"), "{}", lines[2]);
    assert!(lines[2].chars().count() < 1_000);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_frees_nothing_is_silent_and_free() {
    // C6
    let config = || AgentConfig {
        compact_threshold: 0.5,
        ..compacting()
    };
    let big = "x".repeat(2_400);
    for messages in [
        vec![big.as_str(), "hi"],
        vec!["hi", big.as_str()],
        vec!["hi", "ho", big.as_str()],
    ] {
        let provider =
            well_summarised(provider_with_window(1_000)).always(|_| [text("ok"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder).await;
        let mut tried = 0;
        for (n, message) in messages.iter().enumerate() {
            let events = rig.send(*message).await;
            for (_, before, after, gone) in compacted(&events) {
                assert!(after < before);
                assert!(gone > 0);
                tried += 1;
            }
            let newest = turns_asked(&rig.provider);
            assert_eq!(newest.len(), n + 1, "every turn runs");
            assert_eq!(
                *said(newest.last().unwrap()).last().unwrap(),
                format!("user: {message}")
            );
        }
        assert_eq!(
            summaries_asked(&rig.provider),
            tried,
            "no summary is paid for nothing"
        );
        assert_eq!(compactions(&rig.stored()), tried);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fills_most_of_the_window_leaves_results_and_answers_their_half() {
    // 3,200 of 4,000 tokens cannot go: the threshold is passed whatever a compaction does.
    let provider = well_summarised(provider_with_window(4_000));
    for round in 0..6 {
        provider.queue([call(format!("c{round}"), "read", "{}"), done()]);
    }
    provider.queue([text("seen"), done()]);
    let rig = Rig::with(provider, compacting(), |builder| {
        builder.tool(RecordingTool::read_only("read").answering("x".repeat(500)))
    })
    .await;
    let events = rig.send("x".repeat(12_800).as_str()).await;
    let made = compacted(&events).len();
    assert!(
        made <= 2,
        "a compaction frees room for more than one step: {made}"
    );
    let asked = turns_asked(&rig.provider);
    assert_eq!(asked.len(), 7, "no request is sent twice");
    for request in asked {
        let lines = said(&request);
        assert!(
            lines.iter().all(|line| !line.contains("bytes left out")),
            "a short result stays whole: {lines:?}"
        );
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_by_hand_frees_half_of_what_can_go_however_large_the_rest_is() {
    for described in [0, 8_000] {
        let provider = well_summarised(provider_with_window(100_000));
        let storage = storage_with(marked_turns(10, 200));
        let tool = RecordingTool::read_only("read").parameters(serde_json::json!({
            "type": "object", "description": "x".repeat(described * 4)
        }));
        let config = AgentConfig {
            tool_definitions_in_prompt: false,
            ..compacting()
        };
        let rig = Rig::resumed(provider, config, storage, STORED, |b| b.tool(tool)).await;
        let outcome = rig.session.compact().await.unwrap();
        assert!(
            (8..=16).contains(&outcome.messages_removed),
            "{described}: {outcome:?}"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_fills_most_of_the_window_does_not_compact_at_every_step() {
    let provider = well_summarised(provider_with_window(8_000));
    for round in 0..12 {
        provider.queue([call(format!("c{round}"), "read", "{}"), done()]);
    }
    provider.queue([text("seen"), done()]);
    let skill = SkillDefinition {
        name: "big".to_owned(),
        display_name: "Big".to_owned(),
        description: "Is long.".to_owned(),
        prompt: "x".repeat(6_200 * 4),
        required_tools: Vec::new(),
        allow_implicit_invocation: false,
    };
    let rig = Rig::with(provider, compacting(), |builder| {
        builder
            .skill(skill)
            .tool(RecordingTool::read_only("read").answering("x".repeat(100)))
    })
    .await;
    let events = rig.send("/big go").await;
    let made = compacted(&events).len();
    assert!(made <= 2, "{made} compactions");
    rig.epilogue().await;
}

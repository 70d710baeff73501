//! Requirements 5.1: why a model stopped is never swallowed; responses have a limit.

use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, call, collect, done, done_with, error, reasoning, text,
    vision_model,
};
use youyou_agent::{
    AgentConfig, AgentEvent, AgentEventKind, ContentBlock, ErrorCode, MessageStatus,
    ProviderErrorKind, SessionEventKind, StopReason, TurnStatus,
};

use crate::compaction_limits::picture;
use crate::look::warnings;
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};

fn stop_reason(events: &[AgentEvent]) -> (TurnStatus, Option<StopReason>) {
    match &events.last().unwrap().kind {
        AgentEventKind::TurnComplete {
            status,
            stop_reason,
            ..
        } => (*status, *stop_reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_filtered_or_refused_is_never_taken_for_a_whole_one() {
    // P4
    for reason in [
        StopReason::Length,
        StopReason::ContentFilter,
        StopReason::Refusal,
    ] {
        let provider = provider()
            .reply([text("half"), done_with(None, reason)])
            .reply([text("rest"), done()]);
        let rig = Rig::new(provider).await;
        let turn = rig.session.send("q").unwrap();
        let outcome = turn.outcome().await;
        assert_eq!(
            (
                outcome.status,
                outcome.stop_reason,
                &*outcome.assistant_output
            ),
            (TurnStatus::Completed, Some(reason), "half")
        );
        let stored = rig.stored();
        let SessionEventKind::AssistantMessage {
            status,
            interruption,
            stop_reason,
            ..
        } = &stored[2].kind
        else {
            panic!("{stored:?}");
        };
        assert_eq!(
            (*status, *interruption, *stop_reason),
            (MessageStatus::Incomplete, None, Some(reason))
        );
        let refused = rig.session.retry_turn().unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidInput, "it was answered");
        // A model goes on from a cut text by itself: no note follows it.
        rig.send("go on").await;
        assert_eq!(
            said(&rig.request(2)),
            ["user: q", "assistant: half", "user: go on"]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whole_answers_and_unknown_reasons_stay_complete() {
    for reason in [None, Some(StopReason::EndTurn), Some(StopReason::Other)] {
        let rig = Rig::new(provider().reply([text("all"), done_with(None, reason)])).await;
        let events = rig.send("q").await;
        assert_eq!(stop_reason(&events), (TurnStatus::Completed, reason));
        assert_eq!(stored_lines(&rig.stored())[2], "assistant: all");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_nothing_a_request_could_hold_leaves_a_note() {
    let silence = "note: [The model gave no answer to this message.]";
    for answer in [
        vec![done()],
        vec![done_with(None, StopReason::ContentFilter)],
        vec![reasoning("hm"), done_with(None, StopReason::Length)],
        vec![text(" \n"), done()],
    ] {
        let provider = provider().reply(answer).reply([text("b"), done()]);
        let mut rig = Rig::new(provider).await;
        rig.send("a").await;
        rig.send("b").await;
        assert_eq!(said(&rig.request(2)), ["user: a", silence, "user: b"]);
        rig.reopen().await;
        rig.provider.queue([text("c"), done()]);
        rig.send("c").await;
        assert_eq!(
            said(&rig.request(3)),
            ["user: a", silence, "user: b", "assistant: b", "user: c"]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_longer_than_the_limit_is_cut_kept_and_told() {
    // X4
    let config = || AgentConfig {
        response_limit_bytes: 10,
        ..config()
    };
    for (script, kept) in [
        (
            vec![text("0123456789abc"), text("d"), done()],
            "assistant: 0123456789",
        ),
        (
            vec![text("12345"), text("67890"), text("x"), done()],
            "assistant: 1234567890",
        ),
        // Whole characters only.
        (vec![text("频道频道"), done()], "assistant: 频道频"),
        (
            vec![reasoning("12345678"), text("90x"), done()],
            "assistant: <thinks 12345678> 90",
        ),
    ] {
        let provider = provider().reply(script).reply([text("fine"), done()]);
        let rig = Rig::with(provider, config(), |builder| builder).await;
        let events = rig.send("q").await;
        assert_eq!(
            stop_reason(&events),
            (TurnStatus::Completed, Some(StopReason::Length))
        );
        assert_eq!(warnings(&events).len(), 1);
        assert_eq!(stored_lines(&rig.stored())[2], format!("{kept} (Length)"));
        assert_eq!(rig.provider.streams_open(), 0, "the rest is not read");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_passes_the_limit_is_left_out_whole_and_those_before_it_run() {
    let config = AgentConfig {
        response_limit_bytes: 40,
        ..config()
    };
    let provider = provider()
        .reply([
            call("c1", "ro_echo", r#"{"a":1}"#),
            call("c2", "ro_echo", format!(r#"{{"a":"{}"}}"#, "x".repeat(60))),
            done(),
        ])
        .reply([text("fine"), done()]);
    let tool = RecordingTool::read_only("ro_echo").echo();
    let log = tool.log().clone();
    let rig = Rig::with(provider, config, |builder| builder.tool(tool)).await;
    rig.send("q").await;
    assert_eq!(log.inputs().len(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_older_images_is_asked_once_more_without_them() {
    for kind in [
        ProviderErrorKind::InvalidRequest,
        ProviderErrorKind::UnsupportedContent,
        ProviderErrorKind::Other,
    ] {
        let provider = provider()
            .reply([text("a picture"), done()])
            .reply([error(kind, "no images")])
            .reply([text("ok"), done()])
            .reply([text("ok"), done()]);
        let rig = Rig::new(provider).await;
        rig.send(vec![ContentBlock::text("look"), picture()]).await;
        let events = rig.send("and now?").await;
        assert_eq!(stop_reason(&events).0, TurnStatus::Completed);
        let without = "user: look [An image is left out here: the model refused it.]";
        assert_eq!(said(&rig.request(2))[0], "user: look <image/png>");
        assert_eq!(said(&rig.request(3))[0], without);
        // They stay so for this model in this session.
        rig.send("again").await;
        assert_eq!(said(&rig.request(4))[0], without);
        // And come back for another model, here after a resume.
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_without_images_too_fails_and_the_images_stay() {
    let provider = provider()
        .reply([text("a picture"), done()])
        .reply([error(ProviderErrorKind::InvalidRequest, "broken")])
        .reply([error(ProviderErrorKind::InvalidRequest, "broken still")])
        .reply([text("ok"), done()]);
    let rig = Rig::new(provider).await;
    rig.send(vec![ContentBlock::text("look"), picture()]).await;
    let events = rig.send("and now?").await;
    assert_eq!(stop_reason(&events).0, TurnStatus::Failed);
    rig.send("again").await;
    assert_eq!(said(&rig.request(4))[0], "user: look <image/png>");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_or_no_credit_is_not_blamed_on_older_images() {
    for kind in [ProviderErrorKind::Auth, ProviderErrorKind::Quota] {
        let provider = provider()
            .reply([text("a picture"), done()])
            .reply([error(kind, "no")]);
        let rig = Rig::new(provider).await;
        rig.send(vec![ContentBlock::text("look"), picture()]).await;
        let events = rig.send("and now?").await;
        assert_eq!(stop_reason(&events).0, TurnStatus::Failed);
        assert_eq!(rig.provider.request_count(), 2);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_warning_of_the_provider_is_told_and_changes_nothing() {
    let provider = ScriptedProvider::new("scripted").model(vision_model("m1"));
    let hand = provider.manual();
    let rig = Rig::new(provider).await;
    let turn = rig.session.send("q").unwrap();
    hand.started().await.unwrap();
    hand.push(youyou_agent::ChatEvent::Warning {
        message: "an unknown finish reason".into(),
    });
    hand.text("a");
    hand.done();
    let events = collect(turn).await;
    assert_eq!(warnings(&events)[0].1, "an unknown finish reason");
    assert_eq!(stored_lines(&rig.stored())[2], "assistant: a");
    rig.epilogue().await;
}

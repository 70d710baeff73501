//! Chapter 5.2: when the context is compacted, by whom, and what stops it.

use std::sync::Arc;

use youyou_agent::testing::{
    RecordingTool, call, done, error, kinds, shape, text, user_message, vision_model,
};
use youyou_agent::{
    AgentConfig, AgentEventKind, ChatRequest, CompactionMethod, ContentBlock, ErrorCode,
    ErrorOrigin, ModelInfo, ProviderErrorKind,
};

use crate::histories::{
    STORED, asks_for_summary, compacting, compactions, marked_turns, storage_with, summaries_asked,
    summarised_by, tool_rounds, turns_asked, well_summarised,
};
use crate::rig::{MODEL, Rig, config, provider, provider_with_window};
use crate::said::{all_said, said};

/// A PNG by its first bytes, of about three megabytes.
pub(crate) fn picture() -> ContentBlock {
    ContentBlock::image(
        "image/png",
        format!("iVBORw0KGgoA{}", "A".repeat(4_000_000)),
    )
}

fn overflow() -> youyou_agent::testing::Step {
    error(ProviderErrorKind::ContextLengthExceeded, "提示词过长")
}

/// Han characters of a whole request.
fn han_characters(request: &ChatRequest) -> usize {
    let system: String = request.system.iter().map(|block| &*block.text).collect();
    let is_han = |c: &char| ('\u{4e00}'..='\u{9fff}').contains(c);
    format!("{system}{}", all_said(request))
        .chars()
        .filter(is_han)
        .count()
}

#[tokio::test(start_paused = true)]
async fn chinese_text_is_compacted_before_the_provider_has_to_refuse_it() {
    // C13
    let provider = provider_with_window(8_000).always(|request| {
        if han_characters(request) > 8_000 {
            [overflow(), done()]
        } else {
            [text("好的"), done()]
        }
    });
    let rig = Rig::with(provider, config(), |builder| builder).await;
    let mut compacted = 0;
    for _ in 0..30 {
        let events = rig.send("频".repeat(400)).await;
        assert!(!kinds(&events).contains(&"error"), "{:?}", kinds(&events));
        compacted += kinds(&events)
            .iter()
            .filter(|kind| **kind == "contextCompacted")
            .count();
    }
    let largest = rig
        .provider
        .requests()
        .iter()
        .map(|request| han_characters(request))
        .max();
    assert!(largest.unwrap() <= 8_000, "{largest:?}");
    assert!(largest.unwrap() > 5_000, "the window is used: {largest:?}");
    assert!((1..=6).contains(&compacted), "{compacted} compactions");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_message_with_a_picture_reaches_the_model_as_it_is() {
    // C14
    let rig = Rig::new(provider().reply([text("a cat"), done()])).await;
    let events = rig
        .send(vec![ContentBlock::text("what is it?"), picture()])
        .await;
    assert_eq!(kinds(&events), ["turnStarted", "textDelta", "turnComplete"]);
    let request = rig.request(1);
    let youyou_agent::Message::User(user) = &**request.messages.iter().next().unwrap() else {
        panic!("{request:?}");
    };
    assert_eq!(user.content, [ContentBlock::text("what is it?"), picture()]);
    let tokens = rig.session.info().context_tokens;
    assert!(
        (1_600..1_700).contains(&tokens),
        "a fixed cost, not that of the bytes: {tokens}"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_typed_kind_counts_as_an_overflow() {
    // C16
    for (kind, message) in [
        (ProviderErrorKind::Other, "invalid token context"),
        (
            ProviderErrorKind::InvalidRequest,
            "maximum context length is 8192 tokens",
        ),
        (ProviderErrorKind::Auth, "context_length_exceeded"),
        (
            ProviderErrorKind::Quota,
            "too many tokens, prompt is too long",
        ),
    ] {
        let provider = well_summarised(provider()).reply([error(kind.clone(), message)]);
        let storage = storage_with(marked_turns(5, 50));
        let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
        let events = rig.send("next").await;
        assert_eq!(kinds(&events), ["turnStarted", "error", "turnComplete"]);
        let AgentEventKind::Error { error } = &events[1].kind else {
            panic!("{events:?}");
        };
        assert_eq!(error.code, ErrorCode::ProviderError);
        assert_eq!(error.origin, ErrorOrigin::Provider);
        assert!(
            error.message.contains(message),
            "as it came: {}",
            error.message
        );
        assert_eq!(rig.provider.request_count(), 1);
        assert_eq!(compactions(&rig.stored()), 0);
        rig.epilogue().await;
    }
    let provider = well_summarised(provider())
        .reply([overflow()])
        .reply([text("ok"), done()]);
    let storage = storage_with(marked_turns(5, 50));
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
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_overflows_is_compacted_and_tried_once() {
    // C17
    let provider = well_summarised(provider()).always(|_| [overflow()]);
    let storage = storage_with(marked_turns(20, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
    for turn in 1..=3 {
        let events = rig.send("next").await;
        assert_eq!(
            kinds(&events),
            ["turnStarted", "contextCompacted", "error", "turnComplete"]
        );
        let AgentEventKind::Error { error } = &events[2].kind else {
            panic!("{events:?}");
        };
        assert_eq!(error.code, ErrorCode::CompactError);
        assert!(!error.retryable);
        assert!(error.message.contains("提示词过长"), "{}", error.message);
        assert_eq!(
            rig.provider.request_count(),
            turn * 3,
            "request, summary, one retry"
        );
        assert_eq!(summaries_asked(&rig.provider), turn);
        assert!(asks_for_summary(&rig.request(turn * 3 - 1)));
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn each_request_of_a_turn_has_its_own_recovery() {
    // C17
    let next = |id: &str| [call(id, "ro_echo", "{}"), done()];
    let provider = well_summarised(provider())
        .reply([overflow()])
        .reply(next("c1"))
        .reply(next("c2"))
        .reply(next("c3"))
        .reply([overflow()])
        .reply([text("done"), done()]);
    let storage = storage_with(marked_turns(20, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| {
        builder.tool(RecordingTool::read_only("ro_echo").big(4_000))
    })
    .await;
    let events = rig.send("go").await;
    let round = ["toolCallStart", "toolCallEnd"];
    let mut expected = vec!["turnStarted", "contextCompacted"];
    expected.extend([round, round, round].concat());
    expected.extend(["contextCompacted", "textDelta", "turnComplete"]);
    assert_eq!(shape(&events), expected);
    assert_eq!(summaries_asked(&rig.provider), 2);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn truncation_takes_any_number_of_units() {
    // C19
    let mut starts_with_a_round = tool_rounds(4, "out");
    starts_with_a_round.remove(0);
    let histories = [
        vec![],
        vec![user_message(0, "alone")],
        marked_turns(6, 30),
        starts_with_a_round,
        tool_rounds(6, &"o".repeat(200)),
    ];
    for history in histories {
        for keep in [0, 1, 2, 7, 1_000, u32::MAX] {
            let config = AgentConfig {
                compact_keep_recent: keep,
                ..compacting()
            };
            let provider = summarised_by(provider(), || vec![done()])
                .reply([overflow()])
                .always(|_| [text("ok"), done()]);
            let storage = storage_with(history.clone());
            let rig = Rig::resumed(provider, config, storage, STORED, |builder| builder).await;
            rig.send("newest").await;
            let asked = turns_asked(&rig.provider);
            for request in &asked {
                let lines = said(request);
                assert_eq!(*lines.last().unwrap(), "user: newest");
            }
            if asked.len() > 1 {
                let units = |request: &ChatRequest| {
                    let lines = said(request);
                    lines
                        .iter()
                        .filter(|line| line.starts_with(['u', 'a']))
                        .count()
                };
                assert!(units(&asked[1]) <= units(&asked[0]));
                assert!(units(&asked[1]) <= (keep as usize).max(1) + 1);
            }
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_and_tools_larger_than_the_window_fail_before_any_call() {
    let settings = AgentConfig {
        system_instructions: vec!["规则。".repeat(500)],
        ..config()
    };
    let rig = Rig::with(provider_with_window(1_000), settings, |builder| builder).await;
    let events = rig.send("hi").await;
    assert_eq!(kinds(&events), ["turnStarted", "error", "turnComplete"]);
    let AgentEventKind::Error { error } = &events[1].kind else {
        panic!("{events:?}");
    };
    assert_eq!(error.code, ErrorCode::CompactError);
    assert!(!error.retryable);
    assert!(error.message.contains("system prompt"), "{}", error.message);
    assert_eq!(rig.provider.request_count(), 0);
    // The same session goes on with a model that has room.
    rig.provider.add_model(vision_model("large"));
    rig.provider.queue([text("ok"), done()]);
    let options = youyou_agent::SendOptions {
        model_id: Some("large".to_owned()),
        ..Default::default()
    };
    let turn = rig.session.send_with("again", options).unwrap();
    assert_eq!(*turn.outcome().await.assistant_output, *"ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_compaction_reports_is_less_than_before_whatever_the_provider_counted() {
    let counted = youyou_agent::Usage {
        input_tokens: Some(3),
        ..Default::default()
    };
    let provider = well_summarised(provider())
        .always(move |_| [text("ok"), youyou_agent::testing::done_with(counted, None)]);
    let storage = storage_with(marked_turns(10, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
    rig.send("next").await;
    let outcome = rig.session.compact().await.unwrap();
    assert_eq!(outcome.method, Some(CompactionMethod::Summarized));
    assert!(outcome.tokens_after < outcome.tokens_before, "{outcome:?}");
    assert!(outcome.messages_removed > 0);
    let again = rig.session.compact().await.unwrap();
    assert!(again.tokens_after <= again.tokens_before, "{again:?}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_window_as_small_as_it_may_be_ends_in_an_error_not_in_a_loop() {
    for window in [1, 2, 16, 100] {
        let small = ModelInfo {
            context_window: window,
            ..vision_model("small")
        };
        let provider = well_summarised(provider())
            .model(small)
            .always(|_| [overflow()]);
        let rig = Rig::with(
            Arc::new(provider).as_ref().clone(),
            compacting(),
            |builder| builder,
        )
        .await;
        let options = youyou_agent::SendOptions {
            model_id: Some("small".to_owned()),
            ..Default::default()
        };
        for _ in 0..3 {
            let turn = rig
                .session
                .send_with("hello there", options.clone())
                .unwrap();
            let outcome = turn.outcome().await;
            assert_eq!(outcome.error.unwrap().code, ErrorCode::CompactError);
        }
        assert!(rig.provider.request_count() <= 9);
        let back = youyou_agent::SendOptions {
            model_id: Some(MODEL.to_owned()),
            ..Default::default()
        };
        rig.provider.fall_back(|_| [text("ok"), done()]);
        let turn = rig.session.send_with("back", back).unwrap();
        assert_eq!(*turn.outcome().await.assistant_output, *"ok");
        rig.epilogue().await;
    }
}

//! Requirements 5.2: the compaction comes at the threshold, and its caps hold.

use youyou_agent::testing::{done, done_with, text};
use youyou_agent::{
    AgentConfig, AgentEventKind, ErrorCode, SessionEventKind, SessionMetadata, StopReason, Usage,
    UserOrigin,
};

use crate::compaction::compacted;
use crate::histories::{compacting, summarised_by};
use crate::look::user_side;
use crate::rig::{Rig, provider_with_window};

#[tokio::test(start_paused = true)]
async fn the_first_compaction_comes_at_the_threshold_each() {
    // C25
    for tenths in 1..=9_u64 {
        let config = AgentConfig {
            compact_threshold: tenths as f64 / 10.0,
            ..compacting()
        };
        let provider = summarised_by(provider_with_window(10_000), || {
            vec![text("SUMMARY"), done()]
        })
        .always(|_| [text(&*"answer ".repeat(20)), done()]);
        let rig = Rig::with(provider, config, |builder| builder).await;
        let limit = tenths * 1_000;
        let mut first = None;
        for _ in 0..200 {
            let before = rig.session.info().context_tokens;
            let events = rig.send("word ".repeat(40)).await;
            if let Some((_, tokens_before, ..)) = compacted(&events).first() {
                first = Some((before, *tokens_before));
                break;
            }
        }
        let (before, at) = first.expect("a compaction comes");
        // A turn is about 50 tokens of the user and 35 of the model.
        assert!(at > limit && at <= limit + 100, "{tenths}: at {at}");
        assert!(
            before <= limit + 40,
            "{tenths}: {before} before the message"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_that_is_far_too_low_does_not_keep_the_compaction_away() {
    // P24
    let provider = summarised_by(provider_with_window(4_000), || {
        vec![text("SUMMARY"), done()]
    })
    .always(|_| [text("ok"), done_with(Usage::new(12, 1), None)]);
    let rig = Rig::with(provider, compacting(), |builder| builder).await;
    let mut came = false;
    for _ in 0..12 {
        let events = rig.send("word ".repeat(400)).await;
        came |= !compacted(&events).is_empty();
    }
    assert!(came, "12 messages of 500 tokens do not fit 4,000");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_takes_a_quarter_of_the_window_at_most_and_says_where_it_was_cut() {
    // C26
    for unit in ["summary ", "总结"] {
        let long = unit.repeat(40_000 / unit.chars().count());
        let provider = summarised_by(provider_with_window(4_000), move || {
            vec![text(long.as_str()), done()]
        })
        .always(|_| [text("ok"), done()]);
        let rig = Rig::with(provider, compacting(), |builder| builder).await;
        let mut summary = None;
        for _ in 0..20 {
            rig.send("word ".repeat(200)).await;
            summary = rig.stored().iter().find_map(|event| match &event.kind {
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::Compacted(record),
                } => record.summary.clone(),
                _ => None,
            });
            if summary.is_some() {
                break;
            }
        }
        let summary = summary.expect("a summary was written");
        let wide = |c: char| u32::from(c) >= 0x2e80;
        let quarters: usize = summary.chars().map(|c| if wide(c) { 4 } else { 1 }).sum();
        assert!(quarters <= 4_000, "{quarters} quarters of a token");
        assert!(quarters > 3_800, "{quarters} quarters of a token");
        assert!(summary.ends_with("[The summary was cut here: it was too long.]"));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_larger_than_the_window_are_an_error_by_hand_too() {
    // C27
    let config = AgentConfig {
        system_instructions: vec!["word ".repeat(8_400)],
        ..compacting()
    };
    let rig = Rig::with(provider_with_window(8_000), config, |builder| builder).await;
    let error = rig.session.compact().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::CompactError);
    assert!(error.message.contains("system prompt"), "{}", error.message);
    assert_eq!(rig.provider.request_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_truncation_after_a_summary_says_what_is_missing_since() {
    let writes = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&writes);
    let provider = summarised_by(provider_with_window(2_000), move || {
        match counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => vec![text("SUMMARY"), done()],
            _ => vec![done()],
        }
    })
    .always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, compacting(), |builder| builder).await;
    let note = "[More messages after this summary were removed because the context was full.]";
    for _ in 0..40 {
        rig.send("word ".repeat(100)).await;
    }
    assert!(writes.load(std::sync::atomic::Ordering::SeqCst) > 2);
    let request = rig.provider.last_request().unwrap();
    let standing = user_side(&request, UserOrigin::Summary).concat();
    assert!(standing.contains("SUMMARY"), "{standing}");
    assert_eq!(standing.matches(note).count(), 1, "{standing}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_by_hand_is_told_to_who_watches() {
    let provider = summarised_by(provider_with_window(4_000), || {
        vec![text("SUMMARY"), done()]
    })
    .always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, compacting(), |builder| builder).await;
    for _ in 0..5 {
        rig.send("word ".repeat(100)).await;
    }
    let mut session = rig.session.subscribe(None);
    let mut agent = rig.agent.subscribe();
    let outcome = rig.session.compact().await.unwrap();
    assert!(outcome.messages_removed > 0);
    for watcher in [&mut session, &mut agent] {
        let told: Vec<_> = std::iter::from_fn(|| watcher.try_next()).collect();
        let [only] = told.as_slice() else {
            panic!("{told:?}");
        };
        assert!(matches!(
            &only.kind,
            AgentEventKind::ContextCompacted { messages_removed, .. }
                if *messages_removed == outcome.messages_removed
        ));
        assert_eq!((&*only.session_id, &*only.turn_id), (rig.session.id(), ""));
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_compaction_costs_is_in_the_sessions_usage_also_after_a_resume() {
    let provider = summarised_by(provider_with_window(4_000), || {
        vec![text("SUMMARY"), done_with(Usage::new(1_000, 50), None)]
    })
    .always(|_| [text("ok"), done_with(None, StopReason::EndTurn)]);
    let mut rig = Rig::with(provider, compacting(), |builder| builder).await;
    for _ in 0..5 {
        rig.send("word ".repeat(100)).await;
    }
    rig.session.compact().await.unwrap();
    rig.reopen().await;
    let events = rig.send("and now?").await;
    let AgentEventKind::TurnComplete { session_usage, .. } = &events.last().unwrap().kind else {
        panic!("{events:?}");
    };
    assert_eq!(*session_usage, Usage::new(1_000, 50));
    rig.epilogue().await;
}

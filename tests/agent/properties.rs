//! What holds whatever happens: random stored histories, and random lives of a session with
//! scripts, cancels, compactions, crashes and a storage that fails.
//!
//! The cases are the same in every run. `AGENT_PROPERTIES=20000 cargo test ... properties`
//! looks at so many others; what it finds is shrunk and becomes a test with a name.

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::json;
use youyou_agent::testing::{
    assistant_message, at, call_part, cut_message, done, kinds, metadata, text, text_part,
    tool_call_stored, tool_result_stored, user_message,
};
use youyou_agent::{
    AssistantPart, CompactionMethod, CompactionRecord, ContentBlock, Interruption, SessionEvent,
    SessionEventKind, SessionMetadata, ShortenedResult,
};

use crate::compaction_limits::picture;
use crate::histories::{STORED, compacting, storage_with, well_summarised};
use crate::lives::{self, Life};
use crate::rig::{Rig, provider, provider_with_window};
use crate::said::said;

/// Runs a property: few cases and always the same, or as many others as the variable says.
fn holds<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let more = std::env::var("AGENT_PROPERTIES").ok();
    let config = ProptestConfig {
        cases: more
            .as_ref()
            .map_or(cases, |more| more.parse().expect("a number of cases")),
        rng_seed: match more {
            Some(_) => RngSeed::Random,
            None => RngSeed::Fixed(20_260_101),
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        property(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// A runtime on paused time, as a process of its own.
pub(crate) fn process() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        Just("hello".to_owned()),
        Just("频道🎉".repeat(20)),
        Just("x".repeat(500)),
        Just("y".repeat(9_000)),
    ]
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "c1", "c2", "c3", "c1_2", "call_2"])
}

fn interruption() -> impl Strategy<Value = Interruption> {
    prop::sample::select(vec![
        Interruption::Cancelled,
        Interruption::Failed,
        Interruption::ProcessEnded,
    ])
}

fn part() -> impl Strategy<Value = AssistantPart> {
    prop_oneof![
        words().prop_map(|text| text_part(&text)),
        id().prop_map(|id| call_part(id, "ro_echo", json!({ "n": 1 }))),
        words().prop_map(|text| AssistantPart::Reasoning {
            text: text.into(),
            provider_data: None,
        }),
    ]
}

fn compaction() -> impl Strategy<Value = CompactionRecord> {
    let shortened = prop::collection::vec((id(), 0..2_000_u64), 0..3);
    let summary = prop::option::of(Just("[Summary] so far".to_owned()));
    (summary, 0..40_u64, prop::option::of(0..40_u64), shortened).prop_map(
        |(summary, boundary, pinned, shortened)| CompactionRecord {
            method: CompactionMethod::Summarized,
            summary,
            boundary,
            pinned,
            shortened: shortened
                .into_iter()
                .map(|(call_id, max_bytes)| ShortenedResult {
                    call_id: call_id.into(),
                    max_bytes,
                })
                .collect(),
            tokens_before: 0,
            tokens_after: 0,
            usage: None,
        },
    )
}

fn fact() -> impl Strategy<Value = SessionMetadata> {
    prop_oneof![
        interruption().prop_map(|interruption| SessionMetadata::TurnInterrupted { interruption }),
        Just(SessionMetadata::TurnEndedSilently { stop_reason: None }),
        Just(SessionMetadata::MemoryCheckpoint {
            through: 0,
            usage: None
        }),
        compaction().prop_map(SessionMetadata::Compacted),
        prop::collection::vec(0..40_u64, 0..4)
            .prop_map(|indices| SessionMetadata::ImagesRefused { indices }),
    ]
}

fn stored_event() -> impl Strategy<Value = SessionEvent> {
    prop_oneof![
        4 => words().prop_map(|text| user_message(0, &text)),
        1 => Just(SessionEvent {
            kind: SessionEventKind::UserMessage {
                content: vec![picture(), ContentBlock::text(" "), ContentBlock::file("f", "")],
                skill: Some("gone".into()),
                steering: false,
            },
            ..user_message(0, "")
        }),
        4 => prop::collection::vec(part(), 0..5).prop_map(|parts| assistant_message(0, parts)),
        2 => (words(), interruption()).prop_map(|(text, why)| cut_message(0, &text, why)),
        3 => id().prop_map(|id| tool_call_stored(0, id, "ro_echo", json!({}))),
        5 => (id(), words()).prop_map(|(id, output)| tool_result_stored(0, id, "ro_echo", &output)),
        1 => words().prop_map(|text| SessionEvent {
            kind: SessionEventKind::SystemMessage { text: text.into() },
            ..user_message(0, "")
        }),
        3 => fact().prop_map(|fact| metadata(0, fact)),
    ]
}

#[test]
fn any_stored_history_resumes_into_valid_requests() {
    // INV-1, INV-3, INV-4, INV-7
    let histories = prop::collection::vec(stored_event(), 0..40);
    holds(150, (histories, any::<bool>()), |(history, small)| {
        process().block_on(async {
            let provider = if small {
                provider_with_window(2_000)
            } else {
                provider()
            };
            let provider = well_summarised(provider).always(|_| [text("ok"), done()]);
            let storage = storage_with(history.into_iter().map(|event| at(1, event)));
            let before = storage.events(STORED);
            let mut rig =
                Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
            rig.send("newest").await;
            let request = rig.provider.last_request().expect("a request");
            let live = said(&request);
            assert_eq!(live.last().map(String::as_str), Some("user: newest"));
            assert_eq!(
                rig.stored()[..before.len()],
                before,
                "what was stored stays"
            );
            rig.reopen().await;
            let events = rig.send("resumed").await;
            let resumed = said(&rig.provider.last_request().expect("a request"));
            if !kinds(&events).contains(&"contextCompacted") {
                assert_eq!(resumed[..live.len()], live, "the same after a resume");
            }
            rig.epilogue().await;
        });
    });
}

#[test]
fn any_life_of_a_session_keeps_its_promises() {
    // INV-1 to INV-7
    holds(120, lives::several(), |lives: Vec<Life>| {
        lives::live(&lives)
    });
}

//! Requirements 3.5: the hook before a compaction, which may add to what the summary is told, or
//! stop it.

use youyou_agent::testing::{call, done, error, kinds, text};
use youyou_agent::{
    AgentConfig, BeforeCompact, ErrorCode, ErrorOrigin, HookOutcome, HookRegistry,
    ProviderErrorKind,
};

use crate::look::{assert_completed, assert_failed, everything, warnings};
use crate::probe::{Kept, Lines, Probe};
use crate::rig::{Rig, config, provider, provider_with_window};

/// A rig whose history is long enough that the next turn compacts it, on its own estimate.
async fn about_to_compact(tap: impl Fn(&mut HookRegistry) + Send + Sync + 'static) -> Rig {
    let provider = provider_with_window(2_000).always(|_| [text("answer"), done()]);
    let config = AgentConfig {
        compact_keep_recent: 1,
        ..config()
    };
    let probe = Probe::tapping("keeper", tap);
    let rig = Rig::with(provider, config, |builder| builder.plugin(probe)).await;
    for _ in 0..4 {
        rig.send("x".repeat(1_400)).await;
    }
    rig
}

#[tokio::test(start_paused = true)]
async fn before_compact_adds_instructions_for_the_summary() {
    let kept = Kept::<BeforeCompact>::new();
    let seen = kept.clone();
    let rig = about_to_compact(move |hooks| {
        let seen = seen.clone();
        hooks.before_compact("one", |_| async {
            Ok(HookOutcome::ContinueWith("Keep the ORDER NUMBERS.".into()))
        });
        hooks.before_compact("two", move |payload: BeforeCompact| {
            seen.keep(payload.clone());
            async move {
                Ok(HookOutcome::ContinueWith(format!(
                    "{} And names.",
                    payload.instructions
                )))
            }
        });
    })
    .await;
    let asked = rig.provider.request_count();
    let events = rig.send("y".repeat(1_400)).await;
    assert!(
        kinds(&events).contains(&"contextCompacted"),
        "{:?}",
        kinds(&events)
    );
    let [given] = &kept.all()[..] else {
        panic!("once: {}", kept.all().len())
    };
    assert_eq!(&*given.instructions, "Keep the ORDER NUMBERS.");
    assert_eq!(&*given.session_id, rig.session.id());
    assert!(given.estimated_tokens > 1_600, "{}", given.estimated_tokens);
    assert!(given.message_count >= 8, "{}", given.message_count);
    let summary_request = everything(&rig.request(asked + 1));
    assert!(summary_request.contains("Keep the ORDER NUMBERS. And names."));
    let next = everything(&rig.request(asked + 2));
    assert!(!next.contains("ORDER NUMBERS"));
    assert_completed(&events, "answer");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_aborted_compaction_by_estimate_is_left_out_for_the_rest_of_the_turn() {
    let lines = Lines::default();
    let seen = lines.clone();
    let rig = about_to_compact(move |hooks| {
        let seen = seen.clone();
        hooks.before_compact("refuse", move |_| {
            seen.add("asked");
            async { Ok(HookOutcome::Abort("keep everything".into())) }
        });
    })
    .await;
    lines.clear();
    rig.provider.queue([call("c1", "nope", "{}"), done()]);
    let events = rig.send("y".repeat(1_400)).await;
    assert_eq!(lines.all(), ["asked"]);
    assert!(!kinds(&events).contains(&"contextCompacted"));
    let [(ErrorOrigin::Plugin, warning)] = &warnings(&events)[..] else {
        panic!("{events:?}")
    };
    assert!(
        warning.contains("\"keeper\"") && warning.contains("keep everything"),
        "{warning}"
    );
    assert_completed(&events, "answer");
    // The next turn asks again.
    rig.send("z").await;
    assert_eq!(lines.all(), ["asked", "asked"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_aborted_compaction_after_an_overflow_fails_the_turn_with_the_reason() {
    let rig = {
        let provider = provider().always(|_| [text("answer"), done()]);
        let probe = Probe::tapping("keeper", |hooks| {
            hooks.before_compact("refuse", |_| async {
                Ok(HookOutcome::Abort("keep everything".into()))
            });
        });
        Rig::with(provider, config(), |builder| builder.plugin(probe)).await
    };
    for _ in 0..4 {
        rig.send("x".repeat(400)).await;
    }
    let kind = ProviderErrorKind::ContextLengthExceeded;
    rig.provider.queue([error(kind, "too long")]);
    let events = rig.send("y").await;
    let failure = assert_failed(&events, ErrorCode::CompactError);
    assert!(failure.message.contains("\"keeper\"") && failure.message.contains("keep everything"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_aborted_compaction_by_command_says_who_refused() {
    let rig = about_to_compact(|hooks| {
        hooks.before_compact("refuse", |_| async {
            Ok(HookOutcome::Abort("keep everything".into()))
        });
    })
    .await;
    let error = rig.session.compact().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::HookAborted);
    assert!(error.message.contains("\"keeper\"") && error.message.contains("keep everything"));
    rig.epilogue().await;
}

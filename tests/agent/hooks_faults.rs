//! Requirements 3.5: handlers that fail, panic or hang. All three are one thing, a fault.

use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{RecordingTool, ScriptedProvider, call, done, kinds, text};
use youyou_agent::{
    AgentConfig, ErrorCode, ErrorOrigin, HookError, HookOutcome, HookRegistry, HookResult, OnFault,
    SessionConfig, Tap,
};

use crate::look::{assert_completed, assert_failed, ends, result, warnings};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider, provider_with_window};

/// What a faulty handler does.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Fails,
    Panics,
    PanicsAtOnce,
    Hangs,
}

const FAULTS: [Fault; 4] = [
    Fault::Fails,
    Fault::Panics,
    Fault::PanicsAtOnce,
    Fault::Hangs,
];
const HOOKS: [&str; 7] = [
    "SessionStart",
    "TurnStart",
    "BeforeToolUse",
    "AfterToolUse",
    "BeforeCompact",
    "TurnEnd",
    "SessionEnd",
];

impl Fault {
    fn begin(self) -> Self {
        assert!(!matches!(self, Self::PanicsAtOnce), "broken at once");
        self
    }

    async fn happen<C>(self) -> HookResult<C> {
        match self {
            Self::Fails => Err(HookError::new("out of order")),
            Self::Panics | Self::PanicsAtOnce => panic!("broken"),
            Self::Hangs => std::future::pending().await,
        }
    }
}

/// Taps one hook with a faulty handler, and with one behind it that writes a line.
fn tap(hooks: &mut HookRegistry, hook: &str, tap: Tap, fault: Fault, later: &Lines) {
    let later = later.clone();
    macro_rules! tap {
        ($method:ident) => {{
            hooks.$method(tap, move |_| {
                let fault = fault.begin();
                async move { fault.happen().await }
            });
            hooks.$method("later", move |_| {
                later.add(stringify!($method));
                async { Ok(HookOutcome::Continue) }
            });
        }};
    }
    match hook {
        "SessionStart" => tap!(session_start),
        "TurnStart" => tap!(turn_start),
        "BeforeToolUse" => tap!(before_tool_use),
        "AfterToolUse" => tap!(after_tool_use),
        "BeforeCompact" => tap!(before_compact),
        "TurnEnd" => tap!(turn_end),
        "SessionEnd" => tap!(session_end),
        other => panic!("{other}"),
    }
}

pub(crate) fn impatient() -> AgentConfig {
    AgentConfig {
        hook_timeout_ms: 200,
        ..config()
    }
}

/// One turn with one tool call; its second answer is "ok".
pub(crate) fn one_call() -> ScriptedProvider {
    provider()
        .reply([call("c1", "t", "{}"), done()])
        .reply([text("ok"), done()])
}

async fn faulty(hook: &'static str, fault: Fault, on_fault: OnFault, later: &Lines) -> Rig {
    let later = later.clone();
    let probe = Probe::tapping("shaky", move |hooks| {
        tap(
            hooks,
            hook,
            Tap::named("wobble").on_fault(on_fault),
            fault,
            &later,
        );
    });
    Rig::with(one_call(), impatient(), |builder| {
        builder.tool(RecordingTool::read_only("t")).plugin(probe)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_a_warning_and_the_turn_goes_on_unchanged() {
    // G1, G3
    for hook in ["TurnStart", "AfterToolUse", "TurnEnd"] {
        for fault in FAULTS {
            let later = Lines::default();
            let rig = faulty(hook, fault, OnFault::Allow, &later).await;
            let began = Instant::now();
            let events = rig.send("go").await;
            let took = if matches!(fault, Fault::Hangs) {
                200
            } else {
                0
            };
            assert_eq!(
                began.elapsed(),
                Duration::from_millis(took),
                "{hook} {fault:?}"
            );
            let [(ErrorOrigin::Plugin, warning)] = &warnings(&events)[..] else {
                panic!("{hook} {fault:?}: {events:?}")
            };
            for named in ["\"shaky\"", "\"wobble\"", hook] {
                assert!(warning.contains(named), "{warning}");
            }
            assert_eq!(later.all().len(), 1, "later handlers still run");
            assert_eq!(result(&rig.request(2), "c1"), "ok");
            assert_completed(&events, "ok");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_before_a_tool_fails_closed() {
    // G1, G3
    for on_fault in [OnFault::Allow, OnFault::Deny] {
        for fault in FAULTS {
            let later = Lines::default();
            let rig = faulty("BeforeToolUse", fault, on_fault, &later).await;
            let events = rig.send("go").await;
            let told = result(&rig.request(2), "c1");
            assert!(told.starts_with("HOOK_ABORTED: "), "{told}");
            assert!(
                told.contains("\"shaky\"") && told.contains("not run"),
                "{told}"
            );
            let [end] = &ends(&events)[..] else {
                panic!("{events:?}")
            };
            assert_eq!(
                (end.success, end.error),
                (false, Some(ErrorCode::HookAborted))
            );
            assert_eq!(later.all(), Vec::<String>::new());
            assert_completed(&events, "ok");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_at_the_ends_of_a_session_lets_it_open_and_close() {
    // G1, G3
    for hook in ["SessionStart", "SessionEnd"] {
        for fault in FAULTS {
            for on_fault in [OnFault::Allow, OnFault::Deny] {
                let later = Lines::default();
                let rig = faulty(hook, fault, on_fault, &later).await;
                rig.session.close().await.unwrap();
                assert_eq!(later.all().len(), 1, "{hook} {fault:?}");
                let again = rig.agent.create_session(SessionConfig::default()).await;
                assert_eq!(
                    again.unwrap().send("hi").unwrap().outcome().await.error,
                    None
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_before_compaction_lets_it_happen() {
    // G1, G3
    for fault in FAULTS {
        let later = Lines::default();
        let seen = later.clone();
        let probe = Probe::tapping("shaky", move |hooks| {
            let tap_named = Tap::named("wobble").on_fault(OnFault::Deny);
            tap(hooks, "BeforeCompact", tap_named, fault, &seen);
        });
        let config = AgentConfig {
            compact_keep_recent: 1,
            ..impatient()
        };
        let provider = provider_with_window(2_000).always(|_| [text("ok"), done()]);
        let rig = Rig::with(provider, config, |builder| builder.plugin(probe)).await;
        for _ in 0..4 {
            rig.send("x".repeat(1_400)).await;
        }
        later.clear();
        let events = rig.send("y".repeat(1_400)).await;
        assert!(
            kinds(&events).contains(&"contextCompacted"),
            "{fault:?} {events:?}"
        );
        assert_eq!(later.all(), ["before_compact"]);
        let [(ErrorOrigin::Plugin, warning)] = &warnings(&events)[..] else {
            panic!("{fault:?}: {events:?}")
        };
        assert!(
            warning.contains("\"shaky\"") && warning.contains("BeforeCompact"),
            "{warning}"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tap_that_denies_on_fault_withholds_the_output() {
    for fault in FAULTS {
        let later = Lines::default();
        let rig = faulty("AfterToolUse", fault, OnFault::Deny, &later).await;
        let events = rig.send("go").await;
        let told = result(&rig.request(2), "c1");
        assert!(
            told.starts_with("HOOK_ABORTED: ") && told.contains("\"shaky\""),
            "{told}"
        );
        assert!(told.contains("withheld"), "{told}");
        assert_eq!(ends(&events)[0].error, Some(ErrorCode::HookAborted));
        assert_eq!(later.all(), Vec::<String>::new());
        assert_completed(&events, "ok");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tap_that_denies_on_fault_fails_the_turn() {
    for fault in FAULTS {
        let later = Lines::default();
        let rig = faulty("TurnStart", fault, OnFault::Deny, &later).await;
        let events = rig.send("go").await;
        let error = assert_failed(&events, ErrorCode::HookAborted);
        assert!(error.message.contains("\"shaky\""), "{}", error.message);
        assert_eq!((rig.provider.request_count(), rig.stored().len()), (0, 0));
        assert_eq!(later.all(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_in_every_hook_at_once_leaves_the_session_usable() {
    // G3
    for fault in FAULTS {
        let later = Lines::default();
        let seen = later.clone();
        let probe = Probe::tapping("shaky", move |hooks| {
            for hook in HOOKS {
                tap(hooks, hook, Tap::named(hook), fault, &seen);
            }
        });
        let rig = Rig::with(one_call(), impatient(), |builder| {
            builder.tool(RecordingTool::read_only("t")).plugin(probe)
        })
        .await;
        assert_completed(&rig.send("go").await, "ok");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_session_end_does_not_stop_a_shutdown() {
    // G3
    for fault in FAULTS {
        let lines = Lines::default();
        let later = lines.clone();
        let probe = Probe::tapping("shaky", move |hooks| {
            tap(hooks, "SessionEnd", "wobble".into(), fault, &later);
        })
        .logged_in(&lines);
        let rig = Rig::with(one_call(), impatient(), |builder| builder.plugin(probe)).await;
        lines.clear();
        let report = rig.agent.shutdown().await;
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(lines.all(), ["session_end", "shaky shutdown"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_use_the_agent_it_belongs_to() {
    // A handler that asks its own agent for something cannot stop it for good.
    let shared: std::sync::Arc<std::sync::Mutex<Option<youyou_agent::Agent>>> =
        std::sync::Arc::default();
    let agent = std::sync::Arc::clone(&shared);
    let probe = Probe::tapping("curious", move |hooks| {
        let agent = std::sync::Arc::clone(&agent);
        hooks.turn_end("close", move |_| {
            let agent = agent.lock().unwrap().clone();
            async move {
                if let Some(session) = agent.and_then(|agent| agent.current_session()) {
                    // Waits for the turn, which waits for this.
                    let _ = session.close().await;
                }
                Ok(HookOutcome::Continue)
            }
        });
    });
    let rig = Rig::with(one_call(), impatient(), |b| {
        b.tool(RecordingTool::read_only("t")).plugin(probe)
    })
    .await;
    *shared.lock().unwrap() = Some(rig.agent.clone());
    let began = Instant::now();
    assert_completed(&rig.send("go").await, "ok");
    rig.session.close().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(200));
    *shared.lock().unwrap() = None;
}

//! Requirements 3.5: how long a handler may take, also where somebody cancels or closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{Gate, RecordingTool, collect, kinds};
use youyou_agent::{HookOutcome, Tap};

use crate::hooks_faults::{impatient, one_call};
use crate::look::{assert_completed, warnings};
use crate::probe::Probe;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn a_tap_has_its_own_limit() {
    let probe = |tap: Tap, ms| {
        Probe::tapping("slow", move |hooks| {
            hooks.turn_start(tap.clone(), move |_| async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(HookOutcome::Continue)
            });
        })
    };
    let own = |ms| Tap::named("t").limit(Duration::from_millis(ms));
    for (tap, ms, took, faults) in [
        (Tap::named("t"), 300, 200, 1),
        (own(1_000), 900, 900, 0),
        (own(50), 100, 50, 1),
        (Tap::named("t").no_limit(), 86_400_000, 86_400_000, 0),
    ] {
        let rig = Rig::with(one_call(), impatient(), |b| b.plugin(probe(tap, ms))).await;
        let began = Instant::now();
        let events = rig.send("go").await;
        assert_eq!(began.elapsed(), Duration::from_millis(took));
        assert_eq!(warnings(&events).len(), faults);
        rig.epilogue().await;
    }
}

/// A rig whose plugin hangs in this hook until the gate is opened.
async fn hanging_in(hook: &'static str, tap_named: Tap) -> (Rig, Gate) {
    let gate = Gate::closed();
    let door = gate.clone();
    let probe = Probe::tapping("slow", move |hooks| {
        macro_rules! hang {
            ($method:ident) => {{
                let door = door.clone();
                hooks.$method(tap_named.clone(), move |_| {
                    let door = door.clone();
                    async move {
                        door.pass().await;
                        Ok(HookOutcome::Continue)
                    }
                });
            }};
        }
        match hook {
            "TurnStart" => hang!(turn_start),
            "BeforeToolUse" => hang!(before_tool_use),
            "AfterToolUse" => hang!(after_tool_use),
            "TurnEnd" => hang!(turn_end),
            "SessionEnd" => hang!(session_end),
            other => panic!("{other}"),
        }
    });
    let rig = Rig::with(one_call(), impatient(), |builder| {
        builder.tool(RecordingTool::mutating("t")).plugin(probe)
    })
    .await;
    (rig, gate)
}

/// Sends, cancels when the handler hangs, and returns the events and how long the cancel took.
async fn cancelled_in(hook: &'static str, tap_named: Tap) -> (Rig, Vec<&'static str>, Duration) {
    let (rig, gate) = hanging_in(hook, tap_named).await;
    let turn = rig.session.send("go").unwrap();
    gate.arrived(1).await;
    let began = Instant::now();
    assert!(turn.cancel());
    let events = collect(turn).await;
    let took = began.elapsed();
    gate.open();
    (rig, kinds(&events), took)
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_for_a_hook_for_at_most_its_limit() {
    // G1
    for hook in ["TurnStart", "BeforeToolUse", "AfterToolUse"] {
        let (rig, kinds, took) = cancelled_in(hook, "slow".into()).await;
        assert_eq!(*kinds.last().unwrap(), "turnCancelled", "{hook}");
        assert_eq!(took, Duration::from_millis(200), "{hook}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_gives_a_hook_without_a_limit_the_usual_one() {
    // G1: a dialog nobody answers does not keep a turn alive that the user cancelled.
    for hook in ["TurnStart", "BeforeToolUse", "AfterToolUse"] {
        let (rig, kinds, took) = cancelled_in(hook, Tap::named("ask").no_limit()).await;
        assert_eq!(*kinds.last().unwrap(), "turnCancelled", "{hook}");
        assert_eq!(took, Duration::from_millis(200), "{hook}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_too_late_still_gives_the_last_hook_its_limit() {
    // G1: the outcome stands, and the session is not dead.
    for closes in [false, true] {
        let (mut rig, gate) = hanging_in("TurnEnd", Tap::named("ask").no_limit()).await;
        let turn = rig.session.send("go").unwrap();
        gate.arrived(1).await;
        let began = Instant::now();
        if closes {
            rig.session.close().await.unwrap();
        } else {
            assert!(!turn.cancel(), "it is too late");
        }
        let events = collect(turn).await;
        assert_eq!(began.elapsed(), Duration::from_millis(200));
        assert_completed(&events, "ok");
        let warned = warnings(&events);
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert!(warned[0].1.contains("\"slow\""), "{warned:?}");
        gate.open();
        if closes {
            rig.reopen().await;
        }
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_gives_a_hook_without_a_limit_the_usual_one() {
    // G1: a question nobody answers does not keep the one session open.
    let (mut rig, gate) = hanging_in("SessionEnd", Tap::named("ask").no_limit()).await;
    assert_completed(&rig.send("go").await, "ok");
    let began = Instant::now();
    rig.session.close().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(200));
    assert!(rig.agent.current_session().is_none());
    gate.open();
    rig.reopen().await;
    rig.epilogue().await;
}

/// Panics when it is dropped before its time.
struct DropBomb;

impl Drop for DropBomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped while it hung");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_leaves_the_session_usable() {
    // G3: in the hooks that run where a turn and a session end, too.
    for tap in [Tap::named("t"), Tap::named("t").no_limit()] {
        let armed = Arc::new(AtomicBool::new(true));
        let fuse = Arc::clone(&armed);
        let probe = Probe::tapping("shaky", move |hooks| {
            macro_rules! hang {
                ($($method:ident),*) => {$(
                    let burning = Arc::clone(&fuse);
                    hooks.$method(tap.clone(), move |_| {
                        let burns = burning.load(Ordering::Relaxed);
                        async move {
                            if burns {
                                let _bomb = DropBomb;
                                std::future::pending::<()>().await;
                            }
                            Ok(HookOutcome::Continue)
                        }
                    });
                )*};
            }
            hang!(turn_end, session_end);
        });
        let mut rig = Rig::with(one_call(), impatient(), |builder| {
            builder.tool(RecordingTool::read_only("t")).plugin(probe)
        })
        .await;
        let turn = rig.session.send("go").unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!turn.cancel(), "it hangs at its end");
        assert_completed(&collect(turn).await, "ok");
        rig.reopen().await;
        armed.store(false, Ordering::Relaxed);
        rig.epilogue().await;
    }
}

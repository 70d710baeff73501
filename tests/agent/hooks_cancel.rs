//! Requirements 3.5: a handler is told that the user cancels or closes.

use youyou_agent::testing::{Gate, RecordingTool, collect, kinds};
use youyou_agent::{ErrorCode, HookOutcome, Tap};

use crate::hooks_payloads::one_call_then_fine;
use crate::look::{assert_completed, warnings};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config};

/// A plugin whose handler of this hook waits for the cancel it is told of, once and without a
/// limit.
fn waiting_in(hook: &'static str, gate: &Gate, lines: &Lines) -> Probe {
    let (gate, lines) = (gate.clone(), lines.clone());
    Probe::tapping("patient", move |hooks| {
        macro_rules! wait {
            ($method:ident) => {{
                let (gate, lines) = (gate.clone(), lines.clone());
                hooks.$method(Tap::named("wait").no_limit(), move |payload| {
                    let (gate, lines) = (gate.clone(), lines.clone());
                    async move {
                        if lines.all().is_empty() {
                            gate.pass().await;
                            payload.cancel_requested().cancelled().await;
                            lines.add(concat!(stringify!($method), " was told"));
                        }
                        Ok(HookOutcome::Continue)
                    }
                });
            }};
        }
        match hook {
            "TurnStart" => wait!(turn_start),
            "BeforeToolUse" => wait!(before_tool_use),
            "AfterToolUse" => wait!(after_tool_use),
            "TurnEnd" => wait!(turn_end),
            "BeforeCompact" => wait!(before_compact),
            "SessionEnd" => wait!(session_end),
            other => panic!("{other}"),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_that_the_user_cancels_or_closes_and_is_waited_for() {
    for (hook, line) in [
        ("TurnStart", "turn_start was told"),
        ("BeforeToolUse", "before_tool_use was told"),
        ("AfterToolUse", "after_tool_use was told"),
        ("TurnEnd", "turn_end was told"),
    ] {
        for closes in [false, true] {
            let (gate, lines) = (Gate::opened(), Lines::default());
            let mut rig = Rig::with(one_call_then_fine(), config(), |builder| {
                builder
                    .plugin(waiting_in(hook, &gate, &lines))
                    .tool(RecordingTool::read_only("ro_echo"))
            })
            .await;
            let turn = rig.session.send("hi").unwrap();
            gate.arrived(1).await;
            assert_eq!(lines.all(), Vec::<String>::new());
            let began = tokio::time::Instant::now();
            match closes {
                true => rig.session.close().await.unwrap(),
                // At the end of a turn it comes too late to change how it ends.
                false => assert_eq!(turn.cancel(), hook != "TurnEnd"),
            }
            let last = *kinds(&collect(turn).await).last().unwrap();
            let expected = match hook {
                "TurnEnd" => "turnComplete",
                _ => "turnCancelled",
            };
            assert_eq!(last, expected, "{hook}");
            // At once: on paused time a wait for a limit would have moved the clock.
            assert_eq!(began.elapsed(), std::time::Duration::ZERO, "{hook}");
            assert_eq!(lines.all(), [line], "{hook}");
            if closes {
                rig = rig.anew().await;
            }
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_and_a_compaction_by_command_tell_of_the_cancel_too() {
    let (gate, lines) = (Gate::opened(), Lines::default());
    let rig = Rig::with(one_call_then_fine(), config(), |builder| {
        builder.plugin(waiting_in("SessionEnd", &gate, &lines))
    })
    .await;
    rig.session.close().await.unwrap();
    assert_eq!(lines.all(), ["session_end was told"]);

    let (gate, lines) = (Gate::opened(), Lines::default());
    let rig = Rig::with(one_call_then_fine(), config(), |builder| {
        builder
            .plugin(waiting_in("BeforeCompact", &gate, &lines))
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    for _ in 0..12 {
        rig.send("word ".repeat(50)).await;
    }
    let session = rig.session.clone();
    let compacting = tokio::spawn(async move { session.compact().await });
    gate.arrived(1).await;
    assert!(rig.session.cancel(None));
    let error = compacting.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::RequestCancelled);
    assert_eq!(lines.all(), ["before_compact was told"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fires_the_token_it_is_given_cancels_nothing() {
    let probe = Probe::tapping("eager", |hooks| {
        macro_rules! fire {
            ($($method:ident),*) => {$(
                hooks.$method("fire", |payload| async move {
                    let token = payload.cancel_requested();
                    token.cancel();
                    assert!(!payload.cancel_requested().is_cancelled());
                    Ok(HookOutcome::Continue)
                });
            )*};
        }
        fire!(
            session_start,
            turn_start,
            before_tool_use,
            after_tool_use,
            turn_end
        );
    });
    let rig = Rig::with(one_call_then_fine(), config(), |builder| {
        builder
            .plugin(probe)
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let events = rig.send("hi").await;
    assert_completed(&events, "fine");
    assert_eq!(warnings(&events), []);
    rig.epilogue().await;
}

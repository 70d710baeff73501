//! Chapter 6.2: a cancel while tools and hooks run.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use youyou_agent::testing::{
    CallLog, Gate, RecordingTool, assert_event_invariants, call, collect, done, text,
};
use youyou_agent::{
    AfterToolUse, BeforeToolUse, ErrorCode, HookOutcome, SessionState, Tap, TurnEnd, TurnStart,
    TurnStatus,
};

use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::{read_until, told};

const NOTE: &str = "note: [此消息因用户取消而中断]";

#[tokio::test(start_paused = true)]
async fn a_running_tool_is_awaited_and_its_real_output_kept() {
    // A1
    for mutating in [false, true] {
        let door = Gate::closed();
        let tool = if mutating {
            RecordingTool::mutating("tool")
        } else {
            RecordingTool::read_only("tool")
        };
        let tool = tool.gated(&door).answering("real");
        let provider = provider().reply([call("c1", "tool", "{}"), done()]);
        let mut rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
        let turn = rig.session.send("hi").unwrap();
        door.arrived(1).await;
        assert!(turn.cancel());
        assert_eq!(rig.session.info().state, SessionState::Cancelling);
        door.open();
        let events = collect(turn).await;
        assert_event_invariants(&events);
        assert_eq!(
            told(&events),
            ["started", "start c1 tool", "end c1: real", "cancelled"]
        );
        assert_eq!(
            rig.provider.request_count(),
            1,
            "the model is not asked again"
        );

        rig.provider.queue([text("ok"), done()]);
        rig.send("next").await;
        let expected = [
            "user: hi",
            "assistant: <c1 tool>",
            "result c1: real",
            NOTE,
            "user: next",
        ];
        assert_eq!(said(&rig.request(2)), expected);
        rig.reopen().await;
        rig.provider.queue([text("ok"), done()]);
        rig.send("more").await;
        assert_eq!(said(&rig.request(3))[..5], expected);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_never_started_are_told_as_not_executed_in_call_order() {
    // A2
    let door = Gate::closed();
    let log = CallLog::new();
    let provider = provider().reply([
        call("c1", "mu_gate", "{}"),
        call("c2", "mu_write", "{}"),
        call("c3", "ro_echo", "{}"),
        call("c4", "no_such_tool", "{}"),
        call("c5", "ro_echo", "{broken"),
        done(),
    ]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(
                RecordingTool::mutating("mu_gate")
                    .gated(&door)
                    .answering("real")
                    .logged_in(&log),
            )
            .tool(RecordingTool::mutating("mu_write").logged_in(&log))
            .tool(RecordingTool::read_only("ro_echo").logged_in(&log))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    assert!(turn.cancel());
    door.open();
    let events = collect(turn).await;
    assert_event_invariants(&events);
    assert_eq!(
        told(&events),
        ["started", "start c1 mu_gate", "end c1: real", "cancelled"]
    );
    assert_eq!(log.order(), ["c1 started", "c1 ended"]);
    assert_eq!(
        stored_lines(&rig.stored())[3..],
        [
            "call c1",
            "result c1: real",
            "result c2: [已取消] not executed",
            "result c3: [已取消] not executed",
            "result c4: [已取消] not executed",
            "result c5: [已取消] not executed",
            "interrupted: Cancelled",
        ]
    );
    let expected = [
        "user: hi",
        "assistant: <c1 mu_gate> <c2 mu_write> <c3 ro_echo> <c4 no_such_tool> <c5 ro_echo>",
        "result c1: real",
        "error c2: [已取消] not executed",
        "error c3: [已取消] not executed",
        "error c4: [已取消] not executed",
        "error c5: [已取消] not executed",
        NOTE,
        "user: next",
    ];
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(said(&rig.request(2)), expected);
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("more").await;
    assert_eq!(said(&rig.request(3))[..expected.len()], expected);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_concurrent_batch_every_running_call_is_awaited() {
    // A1
    let (first, second) = (Gate::closed(), Gate::closed());
    let provider = provider().reply([call("c1", "one", "{}"), call("c2", "two", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(RecordingTool::read_only("one").gated(&first).answering("1"))
            .tool(
                RecordingTool::read_only("two")
                    .gated(&second)
                    .answering("2"),
            )
    })
    .await;
    let mut turn = rig.session.send("hi").unwrap();
    first.arrived(1).await;
    second.arrived(1).await;
    assert!(turn.cancel());
    second.open();
    let mut events = read_until(&mut turn, "end c2: 2").await;
    assert_eq!(rig.session.info().state, SessionState::Cancelling);
    first.open();
    events.extend(collect(turn).await);
    assert_event_invariants(&events);
    assert_eq!(
        told(&events),
        [
            "started",
            "start c1 one",
            "start c2 two",
            "end c2: 2",
            "end c1: 1",
            "cancelled"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn cancel_pressed_many_times_is_one_cancel() {
    // A11
    let door = Gate::closed();
    let tool = RecordingTool::mutating("mu_gate").gated(&door);
    let provider = provider().reply([call("c1", "mu_gate", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    let other_window = rig.agent.turn(turn.id()).unwrap();
    for _ in 0..5 {
        assert!(turn.cancel());
        assert!(other_window.cancel());
        assert!(rig.session.cancel(None));
    }
    door.open();
    let events = collect(turn).await;
    assert_event_invariants(&events);
    assert_eq!(
        told(&events),
        ["started", "start c1 mu_gate", "end c1: ok", "cancelled"]
    );
    assert_eq!(told(&collect(other_window).await), told(&events));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_ends_is_awaited_for_its_timeout_only() {
    // A12
    let config = youyou_agent::AgentConfig {
        tool_timeout_ms: 300,
        ..config()
    };
    for tool in [
        RecordingTool::mutating("hang").hanging(),
        RecordingTool::read_only("hang").hanging(),
        RecordingTool::mutating("hang")
            .until_timed_out()
            .taking(Duration::from_secs(10)),
    ] {
        let log = tool.log().clone();
        let provider = provider().reply([
            call("c1", "hang", "{}"),
            call("c2", "mu_write", "{}"),
            done(),
        ]);
        let rig = Rig::with(provider, config.clone(), |builder| {
            builder.tool(tool).tool(RecordingTool::mutating("mu_write"))
        })
        .await;
        let began = Instant::now();
        let turn = rig.session.send("hi").unwrap();
        log.started(1).await;
        tokio::time::advance(Duration::from_millis(50)).await;
        let before = Instant::now();
        assert!(turn.cancel());
        assert_eq!(
            before.elapsed(),
            Duration::ZERO,
            "cancel itself returns at once"
        );
        assert_eq!(rig.session.info().state, SessionState::Cancelling);
        let refused = rig.session.send("too early").unwrap_err();
        assert_eq!(refused.code, ErrorCode::SessionBusy);
        let events = collect(turn).await;
        let waited = began.elapsed();
        assert!(
            (Duration::from_millis(300)..Duration::from_millis(350)).contains(&waited),
            "{waited:?}"
        );
        assert_event_invariants(&events);
        assert_eq!(events.len(), 4, "{events:#?}");
        let told = told(&events);
        assert!(
            told[2].starts_with("failed c1 TOOL_TIMEOUT: TOOL_TIMEOUT"),
            "{told:?}"
        );
        assert_eq!(told[3], "cancelled");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_hook_is_awaited_and_later_hooks_still_run() {
    // 6.2: hooks still run.
    let door = Gate::closed();
    let lines = Lines::default();
    let plugin = {
        let (door, lines) = (door.clone(), lines.clone());
        Probe::tapping("p", move |hooks| {
            let (door, turn_lines, end_lines) = (door.clone(), lines.clone(), lines.clone());
            hooks.turn_start("start", move |_: TurnStart| {
                let (door, lines) = (door.clone(), turn_lines.clone());
                async move {
                    door.pass().await;
                    lines.add("TurnStart");
                    Ok(HookOutcome::Continue)
                }
            });
            hooks.turn_end("end", move |end: TurnEnd| {
                let lines = end_lines.clone();
                async move {
                    lines.add(format!("TurnEnd {:?}", end.assistant_output));
                    Ok(HookOutcome::Continue)
                }
            });
        })
    };
    let rig = Rig::with(provider(), config(), |builder| builder.plugin(plugin)).await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    assert!(turn.cancel());
    assert_eq!(rig.session.info().state, SessionState::Cancelling);
    door.open();
    assert_eq!(told(&collect(turn).await), ["started", "cancelled"]);
    assert_eq!(lines.all(), ["TurnStart", r#"TurnEnd """#]);
    assert_eq!(rig.provider.request_count(), 0);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_delays_the_cancel_by_its_limit_at_most() {
    // G1
    let plugin = Probe::tapping("p", |hooks| {
        let tap = Tap::named("slow").limit(Duration::from_millis(200));
        hooks.turn_start(tap, |_: TurnStart| std::future::pending());
    });
    let rig = Rig::with(provider(), config(), |builder| builder.plugin(plugin)).await;
    let began = Instant::now();
    let turn = rig.session.send("hi").unwrap();
    tokio::task::yield_now().await;
    assert!(turn.cancel());
    let outcome = turn.outcome().await;
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert!(began.elapsed() <= Duration::from_millis(250));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_a_tool_is_being_allowed_keeps_it_from_running() {
    // A2: the call waits in its BeforeToolUse hook, so it has not started.
    let door = Gate::closed();
    let plugin = {
        let door = door.clone();
        Probe::tapping("p", move |hooks| {
            let door = door.clone();
            hooks.before_tool_use("ask", move |_: BeforeToolUse| {
                let door = door.clone();
                async move {
                    door.pass().await;
                    Ok(HookOutcome::Continue)
                }
            });
        })
    };
    let tool = RecordingTool::mutating("mu_write");
    let log = tool.log().clone();
    let provider = provider().reply([call("c1", "mu_write", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin(plugin).tool(tool)
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    assert!(turn.cancel());
    door.open();
    assert_eq!(told(&collect(turn).await), ["started", "cancelled"]);
    assert!(log.inputs().is_empty());
    assert_eq!(
        stored_lines(&rig.stored())[3..],
        ["result c1: [已取消] not executed", "interrupted: Cancelled"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_the_output_of_a_running_tool_still_passes_its_hooks() {
    // A1, 6.2
    let door = Gate::closed();
    let plugin = Probe::tapping("p", |hooks| {
        hooks.after_tool_use("redact", |after: AfterToolUse| async move {
            Ok(HookOutcome::ContinueWith(
                after.output.replace("secret", "***"),
            ))
        });
    });
    let tool = RecordingTool::read_only("ro_gate")
        .gated(&door)
        .computing(|input| {
            Ok(youyou_agent::ToolOutput::text(format!(
                "secret {}",
                input.arguments
            )))
        });
    let arguments = json!({"a": 1}).to_string();
    let provider = provider().reply([call("c1", "ro_gate", arguments), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin(plugin).tool(tool)
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    door.arrived(1).await;
    assert!(turn.cancel());
    door.open();
    assert_eq!(
        told(&collect(turn).await),
        [
            "started",
            "start c1 ro_gate",
            r#"end c1: *** {"a":1}"#,
            "cancelled"
        ]
    );
    rig.epilogue().await;
}

//! Area B: what ends a call that does not end well, its panic or its time (chapters 3.2 and
//! 5.4).

use std::sync::mpsc;
use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{
    Gate, RecordingTool, ScriptedProvider, call, collect, done, kinds, text,
};
use youyou_agent::{AgentConfig, ErrorCode, HookOutcome, tool};

use crate::look::{assert_completed, ends, result, results, stored_results};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

pub(crate) fn timing_out_after(ms: u64) -> AgentConfig {
    AgentConfig {
        tool_timeout_ms: ms,
        ..config()
    }
}

/// One call of this tool, then "ok".
pub(crate) fn one_call(name: &str) -> ScriptedProvider {
    provider()
        .reply([call("c1", name, "{}"), done()])
        .reply([text("ok"), done()])
}

/// Counts what the hooks around tools see: `before c`, `after true`.
fn watching(lines: &Lines) -> Probe {
    let lines = lines.clone();
    Probe::tapping("watch", move |hooks| {
        let (before, after) = (lines.clone(), lines.clone());
        hooks.before_tool_use("before", move |call| {
            before.add(format!("before {}", call.tool_name));
            async { Ok(HookOutcome::Continue) }
        });
        hooks.after_tool_use("after", move |call| {
            after.add(format!("after {} {}", call.tool_name, call.success));
            async { Ok(HookOutcome::Continue) }
        });
    })
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_tool_is_one_error_result() {
    // B10
    let kinds_of_panic: [fn(RecordingTool) -> RecordingTool; 3] = [
        |tool| tool.panicking("boom"),
        |tool| tool.panicking_at_once("boom"),
        RecordingTool::panicking_without_text,
    ];
    for panicking in kinds_of_panic {
        for bare in [
            RecordingTool::read_only("boom"),
            RecordingTool::mutating("boom"),
        ] {
            let lines = Lines::default();
            let provider = provider()
                .reply([call("c1", "boom", "{}"), call("c2", "fine", "{}"), done()])
                .reply([text("ok"), done()]);
            let rig = Rig::with(provider, config(), |builder| {
                builder
                    .tool(panicking(bare))
                    .tool(RecordingTool::read_only("fine"))
                    .plugin(watching(&lines))
            })
            .await;
            let events = rig.send("go").await;
            let told = result(&rig.request(2), "c1");
            assert!(told.starts_with("TOOL_EXECUTION_ERROR: "), "{told}");
            assert!(
                told.contains("\"boom\"") && told.contains("panicked"),
                "{told}"
            );
            assert_eq!(result(&rig.request(2), "c2"), "ok");
            assert_eq!(ends(&events).len(), 2);
            let after: Vec<String> = lines
                .all()
                .into_iter()
                .filter(|line| line.starts_with("after boom"))
                .collect();
            assert_eq!(after, ["after boom false"]);
            assert_completed(&events, "ok");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_returns_times_out() {
    // B12
    for tool in [
        RecordingTool::read_only("hang"),
        RecordingTool::mutating("hang"),
    ] {
        let lines = Lines::default();
        let tool = tool.hanging();
        let log = tool.log().clone();
        let rig = Rig::with(one_call("hang"), timing_out_after(200), |builder| {
            builder.tool(tool).plugin(watching(&lines))
        })
        .await;
        let began = Instant::now();
        let events = rig.send("go").await;
        assert_eq!(began.elapsed(), Duration::from_millis(200));
        let [end] = &ends(&events)[..] else {
            panic!("{events:?}")
        };
        assert_eq!(
            (end.success, end.error),
            (false, Some(ErrorCode::ToolTimeout))
        );
        assert_eq!(end.duration_ms, 200);
        let told = result(&rig.request(2), "c1");
        assert!(
            told.starts_with("TOOL_TIMEOUT: ") && told.contains("200 ms"),
            "{told}"
        );
        assert_eq!(lines.all(), ["before hang", "after hang false"]);
        assert_completed(&events, "ok");
        // The future is dropped after the grace.
        log.stopped(1).await;
        assert_eq!(began.elapsed(), Duration::from_millis(2_200));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cleans_up_delays_nothing_and_a_late_answer_is_thrown_away() {
    // B13
    let cleans_up = RecordingTool::mutating("t")
        .until_timed_out()
        .taking(Duration::from_secs(10));
    let late = RecordingTool::mutating("t")
        .taking(Duration::from_millis(300))
        .saying("too late")
        .answering("late");
    let fast_but_late = RecordingTool::mutating("t")
        .until_timed_out()
        .answering("late");
    for tool in [cleans_up, late, fast_but_late] {
        let lines = Lines::default();
        let rig = Rig::with(one_call("t"), timing_out_after(200), |builder| {
            builder.tool(tool).plugin(watching(&lines))
        })
        .await;
        let began = Instant::now();
        let events = rig.send("go").await;
        assert_eq!(began.elapsed(), Duration::from_millis(200));
        assert_eq!(
            kinds(&events),
            [
                "turnStarted",
                "toolCallStart",
                "toolCallEnd",
                "textDelta",
                "turnComplete"
            ]
        );
        assert_eq!(ends(&events)[0].error, Some(ErrorCode::ToolTimeout));
        assert_eq!(lines.all(), ["before t", "after t false"]);
        assert_eq!(stored_results(&rig.stored()).len(), 1);
        let sent = results(&rig.request(2));
        rig.send("and then?").await;
        assert_eq!(results(&rig.request(3)), sent);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_call_fires_on_timeout_only() {
    // Chapter 3.2: a user's cancel never interrupts a tool.
    let (tell, told) = mpsc::channel();
    let gate = Gate::closed();
    let passed = gate.clone();
    let waits = tool::typed("waits", "Waits.", move |_: serde_json::Value, context| {
        let (tell, gate) = (tell.clone(), passed.clone());
        async move {
            gate.pass().await;
            tell.send(context.timed_out.is_cancelled()).unwrap();
            Ok("waited")
        }
    });
    let rig = Rig::with(one_call("waits"), config(), |builder| builder.tool(waits)).await;
    let turn = rig.session.send("go").unwrap();
    gate.arrived(1).await;
    assert!(turn.cancel());
    gate.open();
    let events = collect(turn).await;
    assert!(!told.recv().unwrap());
    assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");
    assert!(ends(&events)[0].success);
    rig.epilogue().await;
}

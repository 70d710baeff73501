//! Area B, third part: how calls run, side by side or one after another, and what ends them
//! (chapters 3.2, 5.1 and 5.4).

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use youyou_agent::testing::{
    CallLog, Gate, RecordingTool, ScriptedProvider, Step, call, collect, done, kinds, text,
};
use youyou_agent::{
    AgentConfig, ErrorCode, HookOutcome, ResumeOptions, SessionEventKind, ToolOutput, tool,
};

use crate::look::{assert_completed, ends, result, results, stored_results, warnings};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

fn timing_out_after(ms: u64) -> AgentConfig {
    AgentConfig {
        tool_timeout_ms: ms,
        ..config()
    }
}

fn one_call(name: &str) -> ScriptedProvider {
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

#[tokio::test(start_paused = true)]
async fn results_are_in_call_order_whatever_finishes_first() {
    // B17
    let taking = |name: &str, ms| {
        RecordingTool::read_only(name)
            .taking(Duration::from_millis(ms))
            .answering(format!("out of {name}"))
    };
    let provider = provider()
        .reply([
            call("c1", "slow", "{}"),
            call("c2", "slower", "{}"),
            call("c3", "fast", "{}"),
            done(),
        ])
        .reply([text("ok"), done()])
        .reply([text("again"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(taking("slow", 20))
            .tool(taking("slower", 30))
            .tool(taking("fast", 10))
    })
    .await;
    let events = rig.send("go").await;
    let ended: Vec<String> = ends(&events).into_iter().map(|end| end.call_id).collect();
    assert_eq!(ended, ["c3", "c1", "c2"]);
    let in_order: Vec<(String, String)> = [("c1", "slow"), ("c2", "slower"), ("c3", "fast")]
        .map(|(id, name)| (id.to_owned(), format!("out of {name}")))
        .into();
    assert_eq!(results(&rig.request(2)), in_order);
    // Stored as they finish.
    let stored: Vec<String> = stored_results(&rig.stored())
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(stored, ["c3", "c1", "c2"]);

    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();
    rig.session = rig
        .agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap();
    rig.send("and now").await;
    let before: Vec<_> = rig.request(2).messages.iter().cloned().collect();
    let after: Vec<_> = rig.request(3).messages.iter().cloned().collect();
    assert_eq!(after[..before.len()], before[..]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_read_only_calls_takes_as_long_as_its_longest() {
    let log = CallLog::new();
    let tool = |name: &str, ms| {
        RecordingTool::read_only(name)
            .logged_in(&log)
            .taking(Duration::from_millis(ms))
    };
    let provider = provider()
        .reply([
            call("c1", "a", "{}"),
            call("c2", "b", "{}"),
            call("c3", "c", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(tool("a", 100))
            .tool(tool("b", 300))
            .tool(tool("c", 200))
    })
    .await;
    let began = Instant::now();
    rig.send("go").await;
    assert_eq!(began.elapsed(), Duration::from_millis(300));
    assert_eq!(
        log.order(),
        [
            "c1 started",
            "c2 started",
            "c3 started",
            "c1 ended",
            "c3 ended",
            "c2 ended"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_with_one_mutating_call_is_serial_hooks_included() {
    // B18
    let log = CallLog::new();
    let lines = Lines::default();
    let seen = lines.clone();
    let guard = Probe::tapping("guard", move |hooks| {
        let (before, after) = (seen.clone(), seen.clone());
        hooks.before_tool_use("forbid", move |call| {
            let lines = before.clone();
            async move {
                let n = call.arguments["n"].clone();
                lines.add(format!("before {n}"));
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(if n == 2 {
                    HookOutcome::Abort("not this file".into())
                } else {
                    HookOutcome::Continue
                })
            }
        });
        hooks.after_tool_use("note", move |call| {
            let lines = after.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                lines.add(format!("after {}", call.output));
                Ok(HookOutcome::Continue)
            }
        });
    });
    let tool = |tool: RecordingTool, ms| {
        tool.logged_in(&log)
            .taking(Duration::from_millis(ms))
            .computing(|input| Ok(ToolOutput::text(input.call_id.to_string())))
    };
    let args = |n: u32| json!({ "n": n }).to_string();
    let provider = provider()
        .reply([
            call("c1", "ro_slow", args(1)),
            call("c2", "mu_write", args(2)),
            call("c3", "ro_echo", args(3)),
            call("c4", "mu_write", args(4)),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(tool(RecordingTool::read_only("ro_slow"), 100))
            .tool(tool(RecordingTool::mutating("mu_write"), 10))
            .tool(tool(RecordingTool::read_only("ro_echo"), 1))
            .plugin(guard)
    })
    .await;
    let events = rig.send("go").await;
    assert_eq!(
        log.order(),
        [
            "c1 started",
            "c1 ended",
            "c3 started",
            "c3 ended",
            "c4 started",
            "c4 ended"
        ]
    );
    assert_eq!(
        lines.all(),
        [
            "before 1", "after c1", "before 2", "before 3", "after c3", "before 4", "after c4"
        ]
    );
    let ended: Vec<String> = ends(&events).into_iter().map(|end| end.call_id).collect();
    assert_eq!(ended, ["c1", "c2", "c3", "c4"]);
    let refused = result(&rig.request(2), "c2");
    assert!(refused.starts_with("HOOK_ABORTED: "), "{refused}");
    assert!(
        refused.contains("not this file") && refused.contains("not run"),
        "{refused}"
    );
    assert_completed(&events, "ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn each_call_is_stored_before_its_tool_starts_and_its_result_before_it_is_shown() {
    let gate = Gate::closed();
    let tool = RecordingTool::mutating("t").gated(&gate);
    let rig = Rig::with(one_call("t"), config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("go").unwrap();
    gate.arrived(1).await;
    let last = rig.stored().pop().unwrap();
    assert!(
        matches!(last.kind, SessionEventKind::ToolCall { .. }),
        "{last:?}"
    );
    gate.open();
    let events = collect(turn).await;
    assert_completed(&events, "ok");
    rig.epilogue().await;
}

/// On a runtime with several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tool_that_blocks_its_thread_delays_no_sibling() {
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    // Blocks its thread until its sibling, asked for after it, has run.
    let blocks = RecordingTool::read_only("blocks").computing(move |_| {
        receiver.lock().unwrap().recv().unwrap();
        Ok(ToolOutput::text("released"))
    });
    let releases = RecordingTool::read_only("releases").computing(move |_| {
        sender.send(()).unwrap();
        Ok(ToolOutput::text("released it"))
    });
    let provider = provider()
        .reply([
            call("c1", "blocks", "{}"),
            call("c2", "releases", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |b| b.tool(blocks).tool(releases)).await;
    assert_completed(&rig.send("go").await, "ok");
    rig.epilogue().await;
}

/// On a runtime with several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tool_that_blocks_its_thread_times_out_all_the_same() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let blocks = RecordingTool::mutating("blocks").computing(move |_| {
        // Ends when the test drops its end.
        let _ = blocked.lock().unwrap().recv();
        Ok(ToolOutput::text("late"))
    });
    let rig = Rig::with(one_call("blocks"), timing_out_after(30), |b| b.tool(blocks)).await;
    let events = rig.send("go").await;
    assert_eq!(ends(&events)[0].error, Some(ErrorCode::ToolTimeout));
    assert_completed(&events, "ok");
    drop(release);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_all_get_their_result() {
    let tool = RecordingTool::read_only("t")
        .computing(|input| Ok(ToolOutput::text(input.call_id.to_string())));
    let steps: Vec<Step> = (0..50).map(|n| call(format!("c{n}"), "t", "{}")).collect();
    let provider = provider()
        .reply(steps.into_iter().chain([done()]))
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    let results = results(&rig.request(2));
    assert_eq!(results.len(), 50);
    assert!(results.iter().all(|(id, content)| id == content));
    assert_eq!(warnings(&events), []);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_definition_of_a_tool_is_read_once() {
    // A tool whose answer changes cannot change the agent under way.
    struct Shifty(Arc<Mutex<u32>>);

    #[async_trait::async_trait]
    impl youyou_agent::ToolHandler for Shifty {
        fn definition(&self) -> youyou_agent::ToolDefinition {
            let mut asked = self.0.lock().unwrap();
            *asked += 1;
            RecordingTool::read_only(format!("t{asked}")).definition()
        }

        async fn call(
            &self,
            _: youyou_agent::ToolInput,
            _: youyou_agent::ToolContext,
        ) -> Result<ToolOutput, youyou_agent::ToolError> {
            Ok(ToolOutput::text("ran"))
        }
    }

    let asked = Arc::new(Mutex::new(0));
    let rig = Rig::with(one_call("t1"), config(), |b| {
        b.tool(Shifty(Arc::clone(&asked)))
    })
    .await;
    assert_completed(&rig.send("go").await, "ok");
    assert_eq!(result(&rig.request(2), "c1"), "ran");
    assert_eq!(*asked.lock().unwrap(), 1);
    rig.epilogue().await;
}

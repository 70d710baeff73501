//! Area B, third part: how calls run, side by side or one after another (chapters 5.1 and 5.4).

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use youyou_agent::testing::{CallLog, Gate, RecordingTool, Step, call, collect, done, text};
use youyou_agent::{ErrorCode, HookOutcome, ResumeOptions, SessionEventKind, ToolOutput};

use crate::look::{assert_completed, ends, result, results, stored_results, warnings};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::tools_timeouts::{one_call, timing_out_after};

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

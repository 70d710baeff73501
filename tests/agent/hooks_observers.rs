//! Requirements 3.5: an observer sees every call of a handler and changes nothing.

use std::time::Duration;

use serde_json::json;
use youyou_agent::testing::{Gate, RecordingTool, ScriptedProvider, call, done, text};
use youyou_agent::{
    AgentBuilder, ContentBlock, ErrorCode, HookCall, HookError, HookOutcome, HookRegistry,
    HookReport, OnFault, SessionConfig, Tap, TurnStartChange,
};

use crate::look::{assert_completed, result};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::told::told;

fn line(call: &HookCall<'_>) -> String {
    let report = match call.report {
        HookReport::Continued => "continued".to_owned(),
        HookReport::Changed => "changed".to_owned(),
        HookReport::Aborted(reason) => format!("aborted: {reason}"),
        HookReport::Faulted(fault) => format!("fault: {fault}"),
        other => panic!("{other:?}"),
    };
    let took = call.duration.as_millis();
    format!(
        "{} {}/{} {took} ms {report}",
        call.hook, call.plugin_id, call.tap
    )
}

/// A plugin that notes every call it sees.
fn watcher(lines: &Lines) -> Probe {
    let lines = lines.clone();
    Probe::tapping("watcher", move |hooks| {
        let lines = lines.clone();
        hooks.observe(move |call| lines.add(line(call)));
    })
}

fn one_call() -> ScriptedProvider {
    provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .reply([text("ok"), done()])
}

/// A handler of each kind of outcome.
fn work(hooks: &mut HookRegistry) {
    hooks.turn_start("slow", |_| async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        Ok(HookOutcome::Continue)
    });
    hooks.turn_start("section", |_| async {
        let prompt_sections = vec!["more".into()];
        Ok(HookOutcome::ContinueWith(TurnStartChange {
            prompt_sections,
            ..TurnStartChange::default()
        }))
    });
    hooks.turn_start("blank", |_| async {
        Ok(HookOutcome::ContinueWith(TurnStartChange {
            user_input: Some(vec![ContentBlock::text(" ")]),
            ..TurnStartChange::default()
        }))
    });
    hooks.before_tool_use("list", |_| async {
        Ok(HookOutcome::ContinueWith(json!([1])))
    });
    hooks.turn_end("fails", |_| async { Err(HookError::new("out of order")) });
    hooks.turn_end("panics", |_| async { panic!("broken") });
    let hasty = Tap::named("hangs").limit(Duration::from_millis(7));
    hooks.turn_end(hasty, |_| std::future::pending());
    hooks.turn_end("aborts", |_| async {
        Ok(HookOutcome::Abort("enough".into()))
    });
    hooks.turn_end("unreached", |_| async { Ok(HookOutcome::Continue) });
}

/// What `work` looks like to an observer.
const WORK: [&str; 8] = [
    "TurnStart worker/slow 30 ms continued",
    "TurnStart worker/section 0 ms changed",
    "TurnStart worker/blank 0 ms fault: its change was refused: the message is empty; write something or add an image or a file",
    "BeforeToolUse worker/list 0 ms fault: its change was refused: the arguments must be a JSON object",
    "TurnEnd worker/fails 0 ms fault: out of order",
    "TurnEnd worker/panics 0 ms fault: it panicked: broken",
    "TurnEnd worker/hangs 7 ms fault: it did not answer within 7 ms",
    "TurnEnd worker/aborts 0 ms aborted: enough",
];

#[tokio::test(start_paused = true)]
async fn an_observer_sees_every_call_of_every_plugin_with_its_outcome() {
    for first in [true, false] {
        let lines = Lines::default();
        let rig = Rig::with(one_call(), config(), |builder| {
            let builder = builder.tool(RecordingTool::read_only("ro_echo"));
            let (watcher, worker) = (watcher(&lines), Probe::tapping("worker", work));
            match first {
                true => builder.plugin(watcher).plugin(worker),
                false => builder.plugin(worker).plugin(watcher),
            }
        })
        .await;
        assert_completed(&rig.send("hi").await, "ok");
        assert_eq!(lines.all(), WORK);
        rig.epilogue().await;
    }
}

/// The events of a turn, and what the model was told of its call.
async fn turn_with(observers: impl Fn(&mut HookRegistry) + Send + Sync + 'static) -> Vec<String> {
    let rig = Rig::with(one_call(), config(), |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo"))
            .plugin(Probe::tapping("worker", work))
            .plugin(Probe::tapping("watcher", observers))
    })
    .await;
    let mut lines = told(&rig.send("hi").await);
    lines.push(result(&rig.request(2), "c1"));
    rig.epilogue().await;
    lines
}

#[tokio::test(start_paused = true)]
async fn an_observer_changes_nothing_even_if_it_panics() {
    let unwatched = turn_with(|_| {}).await;
    assert_eq!(unwatched, turn_with(|hooks| hooks.observe(|_| {})).await);
    let lines = Lines::default();
    let seen = lines.clone();
    let watched = turn_with(move |hooks| {
        let seen = seen.clone();
        hooks.observe(|call| panic!("cannot see {}", call.tap));
        hooks.observe(move |call| seen.add(line(call)));
    })
    .await;
    assert_eq!(unwatched, watched);
    assert_eq!(
        lines.all()[..WORK.len()],
        WORK,
        "the next observer still sees"
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_the_fault_that_stops_a_hook() {
    let lines = Lines::default();
    let rig = Rig::with(one_call(), config(), |builder| {
        builder
            .tool(RecordingTool::read_only("ro_echo"))
            .plugin(Probe::tapping("strict", |hooks| {
                let strict = Tap::named("check").on_fault(OnFault::Deny);
                hooks.after_tool_use(strict, |_| async { Err(HookError::new("unsure")) });
                hooks.after_tool_use("unreached", |_| async { Ok(HookOutcome::Continue) });
            }))
            .plugin(watcher(&lines))
    })
    .await;
    assert_completed(&rig.send("hi").await, "ok");
    assert_eq!(
        lines.all(),
        ["AfterToolUse strict/check 0 ms fault: unsure"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn no_observer_is_called_once_the_plugins_are_shut_down() {
    // A handler that is still at work then ends with a fault, and those behind it are not called.
    let gate = Gate::closed();
    let door = gate.clone();
    let lines = Lines::default();
    let slow = Probe::tapping("slow", move |hooks| {
        let door = door.clone();
        hooks.session_start("first", |_| async { Ok(HookOutcome::Continue) });
        hooks.session_start(Tap::named("hangs").no_limit(), move |_| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok(HookOutcome::Continue)
            }
        });
        hooks.session_start("unreached", |_| async { Ok(HookOutcome::Continue) });
    });
    let agent = AgentBuilder::new(config())
        .provider(provider())
        .plugin(watcher(&lines).logged_in(&lines))
        .plugin(slow)
        .build()
        .await
        .unwrap();
    lines.clear();
    let creating = agent.clone();
    let creating =
        tokio::spawn(async move { creating.create_session(SessionConfig::default()).await });
    gate.arrived(1).await;
    agent.shutdown().await;
    let refused = creating.await.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::AgentShutDown);
    assert_eq!(
        lines.all(),
        ["SessionStart slow/first 0 ms continued", "watcher shutdown"]
    );
}

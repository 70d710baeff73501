//! Requirements 3.4 and 6.3: the end of plugins, at a shutdown at any time.

use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{Gate, RecordingTool, call, collect, done, kinds};
use youyou_agent::{Agent, ErrorCode, HookOutcome, SessionConfig};

use crate::plugins::build;
use crate::probe::{Lines, Probe, Step};
use crate::rig::{Rig, config, provider};

#[tokio::test(start_paused = true)]
async fn one_that_hangs_or_panics_does_not_keep_the_rest_from_shutting_down() {
    // G11
    let lines = Lines::default();
    let plugin = |id| Probe::new(id).logged_in(&lines);
    let plugins = [
        plugin("a"),
        plugin("b").shutting_down(Step::Panics),
        plugin("c").shutting_down(Step::Hangs),
        plugin("d").shutting_down(Step::Fails),
    ];
    let agent = build(config(), plugins).await.unwrap();
    lines.clear();
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        lines.all(),
        ["d shutdown", "c shutdown", "b shutdown", "a shutdown"]
    );
    let [d, c, b] = &report.problems[..] else {
        panic!("{report:?}")
    };
    assert!(
        d.contains("\"d\"") && d.contains("d is out of order"),
        "{d}"
    );
    assert!(c.contains("\"c\"") && c.contains("did not answer"), "{c}");
    assert!(b.contains("\"b\"") && b.contains("panicked"), "{b}");
}

#[tokio::test(start_paused = true)]
async fn all_hanging_plugins_together_stay_within_the_limit_of_the_shutdown() {
    // G11
    let lines = Lines::default();
    let hanging = (0..20).map(|n| {
        Probe::new(&format!("p{n}"))
            .logged_in(&lines)
            .shutting_down(Step::Hangs)
    });
    let agent = build(config(), hanging).await.unwrap();
    lines.clear();
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_millis(5_010),
        "{:?}",
        began.elapsed()
    );
    assert_eq!((lines.all().len(), report.problems.len()), (20, 20));
}

/// Writes a line whenever a handler of any session or turn hook is called.
fn watching(lines: &Lines) -> Probe {
    let taps = lines.clone();
    Probe::tapping("watch", move |hooks| {
        macro_rules! watch {
            ($($method:ident),*) => {$({
                let lines = taps.clone();
                hooks.$method("watch", move |_| {
                    lines.add(stringify!($method));
                    async { Ok(HookOutcome::Continue) }
                });
            })*};
        }
        watch!(
            session_start,
            session_end,
            turn_start,
            turn_end,
            before_tool_use,
            after_tool_use
        );
    })
    .logged_in(lines)
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_a_turn_ends_it_its_session_and_then_the_plugins() {
    // G12
    let lines = Lines::default();
    let gate = Gate::closed();
    let tool = RecordingTool::mutating("t").gated(&gate);
    let provider = provider().reply([call("c1", "t", "{}"), done()]);
    let rig = Rig::with(provider, config(), |b| {
        b.tool(tool).plugin(watching(&lines))
    })
    .await;
    let turn = rig.session.send("go").unwrap();
    gate.arrived(1).await;
    lines.clear();
    let (first, second) = (rig.agent.clone(), rig.agent.clone());
    let first = tokio::spawn(async move { first.shutdown().await });
    let second = tokio::spawn(async move { second.shutdown().await });
    tokio::task::yield_now().await;
    gate.open();
    let events = collect(turn).await;
    assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    let expected = [
        "after_tool_use",
        "turn_end",
        "session_end",
        "watch shutdown",
    ];
    assert_eq!(lines.all(), expected);
    assert_eq!(rig.agent.shutdown().await.problems, Vec::<String>::new());
    assert_eq!(lines.all(), expected);
    after_shutdown(&rig.agent).await;
    assert_eq!(
        rig.session.send("hi").unwrap_err().code,
        ErrorCode::AgentShutDown
    );
    drop(rig);
    assert_eq!(lines.all(), expected);
}

async fn after_shutdown(agent: &Agent) {
    let codes = [
        agent
            .create_session(SessionConfig::default())
            .await
            .unwrap_err()
            .code,
        agent
            .resume_session("x", Default::default())
            .await
            .unwrap_err()
            .code,
        agent
            .list_sessions(None, NonZeroUsize::new(10))
            .await
            .unwrap_err()
            .code,
        agent.find_sessions("x").await.unwrap_err().code,
        agent.rename_session("x", "y").await.unwrap_err().code,
        agent.delete_session("x").await.unwrap_err().code,
        agent
            .session_history("x", None, NonZeroUsize::new(10))
            .await
            .unwrap_err()
            .code,
    ];
    assert_eq!(codes, [ErrorCode::AgentShutDown; 7]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_a_creation_calls_no_handler_after_the_plugins_ended() {
    // G12
    let lines = Lines::default();
    let gate = Gate::closed();
    let door = gate.clone();
    let slow = Probe::tapping("slow", move |hooks| {
        let door = door.clone();
        hooks.session_start("wait", move |_| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok(HookOutcome::Continue)
            }
        });
    })
    .logged_in(&lines);
    let agent = build(config(), [slow, watching(&lines)]).await.unwrap();
    lines.clear();
    let creating = tokio::spawn({
        let agent = agent.clone();
        async move { agent.create_session(SessionConfig::default()).await }
    });
    gate.arrived(1).await;
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(began.elapsed() <= Duration::from_secs(5));
    assert_eq!(report.problems.len(), 1, "{report:?}");
    gate.open();
    let error = creating.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::AgentShutDown);
    assert_eq!(lines.all(), ["watch shutdown", "slow shutdown"]);
    assert!(agent.current_session().is_none());
    after_shutdown(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_under_way_calls_no_handler_after_the_plugins_ended() {
    // G12: the close has the time of its hooks, the shutdown has less.
    let lines = Lines::default();
    let gate = Gate::closed();
    let door = gate.clone();
    let slow = Probe::tapping("slow", move |hooks| {
        let door = door.clone();
        hooks.session_end("wait", move |_| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok(HookOutcome::Continue)
            }
        });
    })
    .logged_in(&lines);
    let agent = build(config(), [slow, watching(&lines)]).await.unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    lines.clear();
    let closing = tokio::spawn(async move { session.close().await });
    gate.arrived(1).await;
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(began.elapsed() <= Duration::from_secs(5));
    assert_eq!(report.problems.len(), 1, "{report:?}");
    gate.open();
    // It says that it was cut off.
    closing.await.unwrap().unwrap_err();
    assert_eq!(lines.all(), ["watch shutdown", "slow shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_cut_off_calls_no_handler_after_the_plugins_ended() {
    // G12
    let lines = Lines::default();
    let tool = RecordingTool::mutating("t").hanging();
    let provider = provider().reply([call("c1", "t", "{}"), done()]);
    let log = tool.log().clone();
    let rig = Rig::with(provider, config(), |b| {
        b.tool(tool).plugin(watching(&lines))
    })
    .await;
    let turn = rig.session.send("go").unwrap();
    log.started(1).await;
    lines.clear();
    let began = Instant::now();
    rig.agent.shutdown().await;
    assert!(began.elapsed() <= Duration::from_secs(5));
    let events = collect(turn).await;
    assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(lines.all(), ["session_end", "watch shutdown"]);
}

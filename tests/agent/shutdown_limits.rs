//! Chapter 6.3: whatever hangs, a shutdown ends in time.

use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemoryMemories, InMemorySessions, RecordingTool,
    SessionOperation, When, call, collect, done, text, wait,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ErrorCode, SessionConfig, SessionEnd, Tap, TurnEnd, TurnStatus,
};

use crate::clock::pass;
use crate::lifecycle_shutdown::{assert_shut_down, witness};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::said::said;
use crate::told::{read_until, told};

fn brief() -> AgentConfig {
    AgentConfig {
        shutdown_timeout_ms: 1_000,
        ..config()
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_end_is_cut_off_and_its_outcome_unknown() {
    let lines = Lines::default();
    let tool = RecordingTool::mutating("hang").hanging();
    let log = tool.log().clone();
    let provider = provider().reply([text("A"), call("c1", "hang", "{}"), done()]);
    let rig = Rig::with(provider, brief(), |builder| {
        builder.tool(tool).plugin(witness(&lines))
    })
    .await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "start c1 hang").await;
    lines.clear();
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_millis(1_000),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(report.problems.len(), 1, "{report:?}");
    log.stopped(1).await;
    assert_eq!(told(&collect(turn).await), ["cancelled"]);
    assert_eq!(lines.all(), ["SessionEnd", "p shutdown"]);
    assert_shut_down(&rig.agent, &rig.session).await;

    let id = rig.session.id().to_owned();
    let next = Rig::resumed(crate::rig::provider(), config(), rig.storage, &id, |b| b).await;
    next.provider.queue([text("ok"), done()]);
    next.send("what happened?").await;
    let lines = said(&next.request(1));
    assert_eq!(lines[..2], ["user: hi", "assistant: A <c1 hang>"]);
    assert!(
        lines[2].starts_with("error c1: [outcome unknown]"),
        "{lines:?}"
    );
    next.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_that_takes_its_time_is_hurried_by_a_shutdown() {
    let lines = Lines::default();
    let tool = RecordingTool::mutating("hang").hanging();
    let log = tool.log().clone();
    let provider = provider().reply([call("c1", "hang", "{}"), done()]);
    let rig = Rig::with(provider, brief(), |builder| {
        builder.tool(tool).plugin(witness(&lines))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    log.started(1).await;
    let closing = tokio::spawn({
        let session = rig.session.clone();
        async move { session.close().await }
    });
    pass(Duration::from_secs(10)).await;
    lines.clear();
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_millis(1_000),
        "{:?}",
        began.elapsed()
    );
    let [problem] = &report.problems[..] else {
        panic!("{report:?}");
    };
    assert!(problem.contains("its tools did is unknown"), "{problem}");
    closing.await.unwrap().unwrap();
    assert_eq!(turn.outcome().await.status, TurnStatus::Cancelled);
    pass(Duration::from_secs(200)).await;
    assert_eq!(
        lines.all(),
        ["SessionEnd", "p shutdown"],
        "no handler runs after its plugin was shut down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_hangs_does_not_hold_up_the_end() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let lines = Lines::default();
    let rig = Rig::over(provider(), brief(), inner, storage, |builder| {
        builder.plugin(witness(&lines))
    })
    .await;
    rig.provider.queue([text("AB"), wait()]);
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: AB").await;
    faults.inject(SessionOperation::Append, When::Always, Fault::Hang);
    lines.clear();
    let began = Instant::now();
    let _report = rig.agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_millis(1_000),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(told(&collect(turn).await).last().unwrap(), "cancelled");
    assert_eq!(lines.all().last().unwrap(), "p shutdown");
}

#[tokio::test(start_paused = true)]
async fn handlers_that_hang_do_not_hold_up_the_end() {
    let plugin = Probe::tapping("slow", |hooks| {
        hooks.turn_end(Tap::named("t").no_limit(), |_: TurnEnd| {
            std::future::pending()
        });
        hooks.session_end(Tap::named("t").no_limit(), |_: SessionEnd| {
            std::future::pending()
        });
    });
    let lines = Lines::default();
    let rig = Rig::with(provider(), brief(), |builder| {
        builder
            .plugin(plugin)
            .plugin(Probe::new("last").logged_in(&lines))
    })
    .await;
    rig.provider.queue([text("AB"), wait()]);
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: AB").await;
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    assert!(
        began.elapsed() <= Duration::from_millis(1_000),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(report.problems.len(), 2, "{report:?}");
    assert!(report.problems[0].contains("STORAGE_ERROR"), "{report:?}");
    assert!(report.problems[1].contains("was stopped"), "{report:?}");
    assert_eq!(lines.all().last().unwrap(), "last shutdown");
}

#[tokio::test(start_paused = true)]
async fn extraction_is_what_a_shutdown_leaves_out_first_and_plugins_keep_their_time() {
    let lines = Lines::default();
    let provider = provider().reply([text("ok"), done()]).reply([wait()]);
    let rig = Rig::with(provider, brief(), |builder| {
        builder
            .memory_storage(InMemoryMemories::new())
            .plugin(witness(&lines))
    })
    .await;
    rig.send("I like tea").await;
    lines.clear();
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    assert_eq!(began.elapsed(), Duration::from_millis(750));
    let [problem] = &report.problems[..] else {
        panic!("{report:?}");
    };
    assert!(problem.contains("memories"), "{problem}");
    assert_eq!(lines.all(), ["SessionEnd", "p shutdown"]);
    assert_eq!(rig.provider.streams_open(), 0);
    let stored = format!("{:?}", rig.stored());
    assert!(
        !stored.contains("MemoryCheckpoint"),
        "what was left out is extracted when the session is resumed: {stored}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_opening_that_never_ends_is_not_waited_for_for_ever() {
    let lines = Lines::default();
    let door = Gate::closed();
    let agent = AgentBuilder::new(brief())
        .provider(provider())
        .plugin(Probe::holding(&door))
        .plugin(witness(&lines))
        .build()
        .await
        .unwrap();
    let creating = tokio::spawn({
        let agent = agent.clone();
        async move { agent.create_session(SessionConfig::default()).await }
    });
    door.arrived(1).await;
    lines.clear();
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(began.elapsed() <= Duration::from_millis(1_000));
    assert_eq!(report.problems.len(), 1, "{report:?}");
    door.open();
    let refused = creating.await.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::AgentShutDown);
    assert_eq!(
        lines.all(),
        ["p shutdown"],
        "no handler runs after its plugin was shut down"
    );
    assert!(agent.current_session().is_none());
}

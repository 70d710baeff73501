//! Chapter 6.3: the end of an agent, bounded and in order.

use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{
    Gate, InMemoryMemories, InMemorySessions, RecordingTool, call, collect, done, gate, text, wait,
};
use youyou_agent::{
    AfterToolUse, Agent, AgentBuilder, ErrorCode, HookOutcome, ResumeOptions, Session,
    SessionConfig, SessionEnd, SessionStart, SessionState, Tap, TurnEnd,
};

use crate::clock::pass;
use crate::probe::{Lines, Probe, Step};
use crate::rig::{Rig, config, provider};
use crate::said::stored_lines;
use crate::told::{read_until, told};

/// A plugin that writes down every hook and its own end.
pub(crate) fn witness(lines: &Lines) -> Probe {
    let log = lines.clone();
    Probe::tapping("p", move |hooks| {
        let [start, end, turn_end, after] = std::array::from_fn(|_| log.clone());
        hooks.session_start("t", move |_: SessionStart| {
            start.add("SessionStart");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.session_end("t", move |_: SessionEnd| {
            end.add("SessionEnd");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_end("t", move |_: TurnEnd| {
            turn_end.add("TurnEnd");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.after_tool_use("t", move |_: AfterToolUse| {
            after.add("AfterToolUse");
            async { Ok(HookOutcome::Continue) }
        });
    })
    .logged_in(lines)
}

pub(crate) async fn assert_shut_down(agent: &Agent, session: &Session) {
    let create = agent
        .create_session(SessionConfig::default())
        .await
        .map(drop);
    let replace = SessionConfig {
        replace: true,
        ..SessionConfig::default()
    };
    let replace = agent.create_session(replace).await.map(drop);
    let resume = agent
        .resume_session(session.id(), ResumeOptions::default())
        .await
        .map(drop);
    let list = agent
        .list_sessions(None, NonZeroUsize::new(10))
        .await
        .map(drop);
    let find = agent.find_sessions("a").await.map(drop);
    let rename = agent.rename_session(session.id(), "title").await;
    let delete = agent.delete_session(session.id()).await;
    let history = agent
        .session_history(session.id(), None, NonZeroUsize::new(10))
        .await
        .map(drop);
    let send = session.send("hi").map(drop);
    let retry = session.retry_turn().map(drop);
    let compact = session.compact().await.map(drop);
    for answer in [
        create, replace, resume, list, find, rename, delete, history, send, retry, compact,
    ] {
        assert_eq!(answer.unwrap_err().code, ErrorCode::AgentShutDown);
    }
    assert!(!session.cancel(None));
    assert!(agent.current_session().is_none());
    assert_eq!(session.info().state, SessionState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_mid_turn_keeps_the_text_and_ends_everything_in_order() {
    // A18
    let lines = Lines::default();
    let provider = provider().reply([text("AB"), wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin(witness(&lines))
    })
    .await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "text 0: AB").await;
    lines.clear();
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(told(&collect(turn).await), ["cancelled"]);
    assert_eq!(lines.all(), ["TurnEnd", "SessionEnd", "p shutdown"]);
    assert_eq!(
        stored_lines(&rig.stored())[2..],
        ["assistant: AB (Cancelled)"]
    );
    assert_shut_down(&rig.agent, &rig.session).await;
    // The next process goes on where this one ended.
    let id = rig.session.id().to_owned();
    let next = Rig::resumed(crate::rig::provider(), config(), rig.storage, &id, |b| b).await;
    next.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn shutting_down_twice_or_at_once_is_one_shutdown() {
    // G12
    let lines = Lines::default();
    let provider = provider().reply([wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin(witness(&lines))
    })
    .await;
    let _turn = rig.session.send("hi").unwrap();
    lines.clear();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let agent = rig.agent.clone();
            tokio::spawn(async move { agent.shutdown().await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().problems, Vec::<String>::new());
    }
    rig.agent.shutdown().await;
    assert_eq!(lines.all(), ["TurnEnd", "SessionEnd", "p shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_session_shuts_down_its_plugins_in_reverse() {
    let lines = Lines::default();
    let agent = AgentBuilder::new(config())
        .provider(provider())
        .plugin(Probe::new("a").logged_in(&lines))
        .plugin(
            Probe::new("b")
                .logged_in(&lines)
                .shutting_down(Step::Panics),
        )
        .plugin(Probe::new("c").logged_in(&lines).shutting_down(Step::Hangs))
        .plugin(Probe::new("d").logged_in(&lines).shutting_down(Step::Fails))
        .build()
        .await
        .unwrap();
    lines.clear();
    let began = Instant::now();
    let report = agent.shutdown().await;
    assert!(began.elapsed() <= Duration::from_millis(5_000));
    assert_eq!(
        lines.all(),
        ["d shutdown", "c shutdown", "b shutdown", "a shutdown"]
    );
    assert_eq!(report.problems.len(), 3, "{report:?}");
    for (problem, id) in report.problems.iter().zip(["\"d\"", "\"c\"", "\"b\""]) {
        assert!(problem.contains(id), "{problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_opened_is_closed_before_the_plugins_are() {
    // G12: shutdown while create_session runs.
    let door = Gate::closed();
    let lines = Lines::default();
    let opener = {
        let (door, lines) = (door.clone(), lines.clone());
        Probe::tapping("opener", move |hooks| {
            let (door, lines) = (door.clone(), lines.clone());
            hooks.session_start(Tap::named("t").no_limit(), move |_: SessionStart| {
                let (door, lines) = (door.clone(), lines.clone());
                async move {
                    door.pass().await;
                    lines.add("opened");
                    Ok(HookOutcome::Continue)
                }
            });
        })
    };
    let agent = AgentBuilder::new(config())
        .provider(provider())
        .plugin(opener)
        .plugin(witness(&lines))
        .build()
        .await
        .unwrap();
    lines.clear();
    let creating = tokio::spawn({
        let agent = agent.clone();
        async move { agent.create_session(SessionConfig::default()).await }
    });
    door.arrived(1).await;
    let ending = tokio::spawn({
        let agent = agent.clone();
        async move { agent.shutdown().await }
    });
    pass(Duration::from_millis(100)).await;
    assert_eq!(lines.all(), Vec::<String>::new(), "the shutdown waits");
    door.open();
    assert_eq!(ending.await.unwrap().problems, Vec::<String>::new());
    let session = creating.await.unwrap().unwrap();
    assert_eq!(
        lines.all(),
        ["opened", "SessionStart", "SessionEnd", "p shutdown"]
    );
    assert_shut_down(&agent, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_while_a_session_is_replaced_starts_no_other() {
    // G12
    let lines = Lines::default();
    let tool = RecordingTool::mutating("slow").taking(Duration::from_secs(1));
    let log = tool.log().clone();
    let provider = provider()
        .reply([text("noted"), done()])
        .reply([call("c1", "slow", "{}"), done()])
        .always(|_| [wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(tool)
            .memory_storage(InMemoryMemories::new())
            .plugin(witness(&lines))
    })
    .await;
    rig.send("I like tea").await;
    let _turn = rig.session.send("go").unwrap();
    log.started(1).await;
    lines.clear();
    let replacing = tokio::spawn({
        let agent = rig.agent.clone();
        let config = SessionConfig {
            replace: true,
            ..SessionConfig::default()
        };
        async move { agent.create_session(config).await }
    });
    pass(Duration::from_millis(10)).await;
    let report = rig.agent.shutdown().await;
    assert_eq!(
        replacing.await.unwrap().unwrap_err().code,
        ErrorCode::AgentShutDown
    );
    let started = lines
        .all()
        .iter()
        .filter(|line| *line == "SessionStart")
        .count();
    assert_eq!(started, 0, "{:?}", lines.all());
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].contains("memories"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_memories_of_a_session_that_was_replaced() {
    for in_time in [true, false] {
        let door = Gate::closed();
        let behind = door.clone();
        let memories = InMemoryMemories::new();
        let provider = crate::memory::extracting(move || {
            vec![gate(&behind), text(r#"[{"content":"tea"}]"#), done()]
        });
        let rig = Rig::with(provider, config(), |builder| {
            builder.memory_storage(memories.clone())
        })
        .await;
        rig.send("I like tea").await;
        let config = SessionConfig {
            replace: true,
            ..SessionConfig::default()
        };
        rig.agent.create_session(config).await.unwrap();
        let ending = tokio::spawn({
            let agent = rig.agent.clone();
            async move { agent.shutdown().await }
        });
        pass(Duration::from_millis(10)).await;
        if in_time {
            door.open();
        }
        let report = ending.await.unwrap();
        let (kept, told) = if in_time { (1, 0) } else { (0, 1) };
        assert_eq!(memories.all().len(), kept);
        assert_eq!(report.problems.len(), told, "{report:?}");
        let noted = format!("{:?}", rig.stored()).contains("MemoryCheckpoint");
        assert_eq!(noted, in_time, "what was left out is not noted as done");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shutdown_at_any_moment_ends_every_started_session() {
    // G12: races with create, send and close.
    for round in 0_u32..200 {
        let lines = Lines::default();
        let agent = AgentBuilder::new(config())
            .provider(provider().always(|_| [text("ok"), done()]))
            .session_storage(InMemorySessions::new())
            .plugin(witness(&lines))
            .build()
            .await
            .unwrap();
        let using = tokio::spawn({
            let agent = agent.clone();
            async move {
                let Ok(session) = agent.create_session(SessionConfig::default()).await else {
                    return;
                };
                if let Ok(turn) = session.send("hi") {
                    turn.outcome().await;
                }
                let _ = session.close().await;
            }
        });
        for _ in 0..round % 40 {
            tokio::task::yield_now().await;
        }
        let report = agent.shutdown().await;
        using.await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        let lines = lines.all();
        let count = |what: &str| lines.iter().filter(|line| *line == what).count();
        assert_eq!(
            count("SessionStart"),
            count("SessionEnd"),
            "round {round}: {lines:?}"
        );
        assert_eq!(count("p shutdown"), 1);
        assert_eq!(
            lines.last().unwrap(),
            "p shutdown",
            "round {round}: {lines:?}"
        );
    }
}

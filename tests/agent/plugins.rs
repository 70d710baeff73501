//! Area G, third part: the life of plugins, from the build to the shutdown (chapters 3.4, 5.6
//! and 6.3).

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use youyou_agent::testing::{
    Gate, InMemorySessions, RecordingTool, call, collect, done, kinds, text, text_model,
};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentError, ErrorCode, ErrorSource, HookOutcome, PluginError,
    SessionConfig, SkillDefinition,
};

use crate::look::system;
use crate::probe::{Lines, Probe, Step};
use crate::rig::{Rig, config, provider};

fn impatient() -> AgentConfig {
    AgentConfig {
        plugin_timeout_ms: 100,
        ..config()
    }
}

async fn build(
    config: AgentConfig,
    plugins: impl IntoIterator<Item = Probe>,
) -> Result<Agent, AgentError> {
    let builder = AgentBuilder::new(config).provider(provider());
    plugins
        .into_iter()
        .fold(builder, AgentBuilder::plugin)
        .build()
        .await
}

#[tokio::test(start_paused = true)]
async fn all_are_initialised_then_all_applied_and_shut_down_in_reverse() {
    let lines = Lines::default();
    let plugin = |id| Probe::new(id).logged_in(&lines);
    let agent = AgentBuilder::new(config())
        .provider(provider())
        .plugin(plugin("a"))
        .plugin_with_config(plugin("b"), json!({"x": 1}))
        .plugin(plugin("c"))
        .build()
        .await
        .unwrap();
    assert_eq!(
        lines.all(),
        [
            "a initialize",
            "b initialize with {\"x\":1}",
            "c initialize",
            "a apply",
            "b apply",
            "c apply"
        ]
    );
    lines.clear();
    let report = agent.shutdown().await;
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(lines.all(), ["c shutdown", "b shutdown", "a shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_initialise_shuts_down_those_before_it_and_names_itself() {
    // G9
    for step in [Step::Fails, Step::Panics, Step::Hangs] {
        let lines = Lines::default();
        let plugin = |id| Probe::new(id).logged_in(&lines);
        let c = plugin("c").initializing(step);
        let began = Instant::now();
        let built = build(impatient(), [plugin("a"), plugin("b"), c, plugin("d")]).await;
        let error = built.unwrap_err();
        assert_eq!(
            (error.code, error.source),
            (ErrorCode::PluginInitFailed, ErrorSource::Plugin)
        );
        assert!(error.message.contains("\"c\""), "{}", error.message);
        assert!(!error.retryable);
        assert_eq!(
            lines.all(),
            [
                "a initialize",
                "b initialize",
                "c initialize",
                "b shutdown",
                "a shutdown"
            ]
        );
        assert!(began.elapsed() <= Duration::from_millis(100));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_apply_shuts_down_everything_that_was_initialised() {
    // G9
    for panics in [false, true] {
        let lines = Lines::default();
        let plugin = |id| Probe::new(id).logged_in(&lines);
        let b = plugin("b").applying(move |_| {
            assert!(!panics, "broken");
            Err(PluginError::new("out of order"))
        });
        let error = build(impatient(), [plugin("a"), b, plugin("c")])
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::PluginInitFailed);
        assert!(error.message.contains("\"b\""), "{}", error.message);
        assert_eq!(
            lines.all(),
            [
                "a initialize",
                "b initialize",
                "c initialize",
                "a apply",
                "b apply",
                "c shutdown",
                "b shutdown",
                "a shutdown"
            ]
        );
    }
}

#[tokio::test]
async fn an_apply_that_blocks_is_cut_off() {
    // G9; on real time, since a blocked thread keeps paused time from moving.
    let lines = Lines::default();
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let plugin = |id| Probe::new(id).logged_in(&lines);
    let b = plugin("b").applying(move |_| {
        let _ = blocked.lock().unwrap().recv();
        Ok(())
    });
    let config = AgentConfig {
        plugin_timeout_ms: 20,
        ..config()
    };
    let error = build(config, [plugin("a"), b]).await.unwrap_err();
    drop(release);
    assert_eq!(error.code, ErrorCode::PluginInitFailed);
    assert!(
        error.message.contains("\"b\"") && error.message.contains("20 ms"),
        "{}",
        error.message
    );
    assert_eq!(
        lines.all(),
        [
            "a initialize",
            "b initialize",
            "a apply",
            "b apply",
            "b shutdown",
            "a shutdown"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_on_whatever_a_shutdown_does() {
    // G9, G11
    let lines = Lines::default();
    let plugin = |id| Probe::new(id).logged_in(&lines);
    let plugins = [
        plugin("a"),
        plugin("b").shutting_down(Step::Panics),
        plugin("c").shutting_down(Step::Hangs),
        plugin("d").shutting_down(Step::Fails),
        plugin("e").initializing(Step::Fails),
    ];
    let error = build(impatient(), plugins).await.unwrap_err();
    assert!(error.message.contains("\"e\""), "{}", error.message);
    assert_eq!(
        lines.all()[5..],
        ["d shutdown", "c shutdown", "b shutdown", "a shutdown"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_build_that_fails_on_validation_starts_nothing() {
    // G9
    let lines = Lines::default();
    let base =
        |config: AgentConfig| AgentBuilder::new(config).plugin(Probe::new("p").logged_in(&lines));
    let with_provider = || base(config()).provider(provider());
    let needy = SkillDefinition {
        required_tools: vec!["missing".into()],
        ..SkillDefinition::new("s", "x")
    };
    let bad_schema = RecordingTool::read_only("t").parameters(json!({"type": "nonsense"}));
    let storages = || with_provider().session_storage(InMemorySessions::new());
    let other = provider().model(text_model("m2"));
    let builders = [
        base(config()),
        base(AgentConfig {
            tool_timeout_ms: 0,
            ..config()
        })
        .provider(provider()),
        base(AgentConfig::new("unknown")).provider(provider()),
        with_provider().provider(other),
        with_provider().tool(bad_schema),
        with_provider().skill(needy),
        with_provider().plugin(Probe::new("p")),
        storages().session_storage(InMemorySessions::new()),
    ];
    for builder in builders {
        builder.build().await.unwrap_err();
        assert_eq!(lines.all(), Vec::<String>::new());
    }
}

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
        agent.list_sessions(None, 10).await.unwrap_err().code,
        agent.find_sessions("x").await.unwrap_err().code,
        agent.rename_session("x", "y").await.unwrap_err().code,
        agent.delete_session("x").await.unwrap_err().code,
        agent.session_history("x", None, 10).await.unwrap_err().code,
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

#[tokio::test(start_paused = true)]
async fn active_plugins_are_described_in_the_system_prompt() {
    struct Described;

    #[async_trait::async_trait]
    impl youyou_agent::Plugin for Described {
        fn id(&self) -> &str {
            "described"
        }

        fn display_name(&self) -> &str {
            "The Guard"
        }

        fn description(&self) -> &str {
            "Watches over commands."
        }

        fn apply(&self, _: &mut youyou_agent::HookRegistry) -> Result<(), PluginError> {
            Ok(())
        }
    }

    let provider = provider().reply([text("hi"), done()]);
    let rig = Rig::with(provider, config(), |b| {
        b.plugin(Described).plugin(Probe::new("silent"))
    })
    .await;
    rig.send("hi").await;
    assert_eq!(
        system(&rig.request(1)),
        "# Active plugins\n- The Guard: Watches over commands.\n"
    );
    rig.epilogue().await;
}

//! Requirements 3.4: the life of plugins, from initialise to apply, and back when one fails.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use youyou_agent::testing::{InMemorySessions, RecordingTool, done, text, text_model};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentError, ErrorCode, ErrorOrigin, HookOutcome,
    HookRegistry, Plugin, PluginError, SkillDefinition, TurnStart,
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

/// An agent with these plugins.
pub(crate) async fn build(
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
            (error.code, error.origin),
            (ErrorCode::PluginInitFailed, ErrorOrigin::Plugin)
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
async fn a_panic_in_any_method_of_a_plugin_is_contained() {
    /// Tells its id once.
    struct Shy(std::sync::atomic::AtomicBool);

    #[async_trait::async_trait]
    impl Plugin for Shy {
        fn id(&self) -> &str {
            let told = self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
            assert!(!told, "asked before");
            "shy"
        }

        fn description(&self) -> &str {
            panic!("indescribable")
        }

        fn apply(&self, _: &mut HookRegistry) -> Result<(), PluginError> {
            Ok(())
        }

        async fn shutdown(&self) -> Result<(), PluginError> {
            panic!("never")
        }
    }

    let provider = provider().reply([text("hi"), done()]);
    let rig = Rig::with(provider, config(), |b| b.plugin(Shy(Default::default()))).await;
    rig.send("hi").await;
    assert!(rig.request(1).system.is_empty());
    let report = rig.agent.shutdown().await;
    let [problem] = &report.problems[..] else {
        panic!("{report:?}")
    };
    assert!(problem.contains("never"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn active_plugins_are_described_in_the_system_prompt() {
    struct Described;

    #[async_trait::async_trait]
    impl Plugin for Described {
        fn id(&self) -> &str {
            "described"
        }

        fn display_name(&self) -> &str {
            "The Guard"
        }

        fn description(&self) -> &str {
            "Watches over commands."
        }

        fn apply(&self, _: &mut HookRegistry) -> Result<(), PluginError> {
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

#[tokio::test(start_paused = true)]
async fn a_plugin_behind_an_arc_is_the_plugin_itself_in_every_step() {
    struct Noted(Lines);

    #[async_trait::async_trait]
    impl Plugin for Noted {
        fn id(&self) -> &str {
            "noted"
        }

        fn display_name(&self) -> &str {
            "The Noted"
        }

        fn description(&self) -> &str {
            "Notes its life."
        }

        async fn initialize(&self, config: Arc<Value>) -> Result<(), PluginError> {
            self.0.add(format!("initialize with {config}"));
            Ok(())
        }

        fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
            self.0.add("apply");
            let lines = self.0.clone();
            hooks.turn_start("t", move |turn: TurnStart| {
                lines.add(format!("turn with {}", turn.plugin_config));
                async { Ok(HookOutcome::Continue) }
            });
            Ok(())
        }

        async fn shutdown(&self) -> Result<(), PluginError> {
            self.0.add("shutdown");
            Ok(())
        }
    }

    let lines = Lines::default();
    let shared: Arc<dyn Plugin> = Arc::new(Noted(lines.clone()));
    let provider = provider().reply([text("hi"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.plugin_with_config(shared, json!(7))
    })
    .await;
    rig.send("hi").await;
    assert_eq!(
        system(&rig.request(1)),
        "# Active plugins\n- The Noted: Notes its life.\n"
    );
    rig.agent.shutdown().await;
    assert_eq!(
        lines.all(),
        ["initialize with 7", "apply", "turn with 7", "shutdown"]
    );
}

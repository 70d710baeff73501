//! Requirements 10: a panic in a hook, a tool or a plugin is contained, whatever its payload does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use youyou_agent::testing::{Gate, RecordingTool, ScriptedProvider, call, collect, done, text};
use youyou_agent::{
    AgentBuilder, AgentConfig, ErrorCode, HookError, HookOutcome, HookRegistry, HookResult, Plugin,
    PluginError, Tap, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput,
    TurnEnd,
};

use crate::look::{results, warnings};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::told::told;

/// Panics when it is dropped, with a payload that does so, too, this many times.
#[derive(Debug, thiserror::Error)]
#[error("a bomb")]
pub(crate) struct Bomb(u8);

impl Bomb {
    pub(crate) fn new() -> Self {
        Self(3)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        // A panic while another one unwinds would end the process, whoever catches.
        if !std::thread::panicking() {
            explode_again(self.0);
        }
    }
}

fn explode_again(times: u8) -> ! {
    match times.checked_sub(1) {
        Some(left) => std::panic::panic_any(Bomb(left)),
        None => panic!("the payload panics, too"),
    }
}

pub(crate) fn explode<T>() -> T {
    std::panic::panic_any(Bomb::new())
}

/// Explodes wherever it is asked for anything.
pub(crate) struct Bomber;

#[async_trait]
impl ToolHandler for Bomber {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("bomb", "Explodes.", json!({ "type": "object" }))
    }

    async fn call(&self, _: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        explode()
    }
}

/// Explodes after its time is up; in its future's end if it is never polled that far.
struct LateBomber {
    takes: Duration,
}

#[async_trait]
impl ToolHandler for LateBomber {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("late", "Explodes late.", json!({ "type": "object" }))
    }

    async fn call(&self, _: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let _armed = Bomb::new();
        tokio::time::sleep(self.takes).await;
        explode()
    }
}

/// Taps every hook with a handler that explodes in this way.
fn bombing<F>(fuse: F) -> Probe
where
    F: Fn() + Clone + Send + Sync + 'static,
{
    Probe::tapping("bombs", move |hooks| {
        macro_rules! bomb {
            ($($method:ident),*) => {$(
                let here = fuse.clone();
                hooks.$method("bomb", move |_| {
                    let fuse = here.clone();
                    async move {
                        fuse();
                        Ok(HookOutcome::Continue)
                    }
                });
            )*};
        }
        bomb!(
            session_start,
            turn_start,
            after_tool_use,
            before_compact,
            turn_end,
            session_end
        );
    })
}

fn one_call() -> ScriptedProvider {
    provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .reply([text("ok"), done()])
}

pub(crate) const FAULT: &str = "it panicked: with a payload that is no text";

fn named(hook: &str) -> String {
    format!("the handler \"bomb\" of the plugin \"bombs\" failed in {hook}: {FAULT}")
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_panic_panics_is_a_fault_like_any_other() {
    // C24
    let rig = Rig::with(one_call(), config(), |builder| {
        builder
            .plugin(bombing(explode))
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let events = rig.send("hi").await;
    let warned: Vec<String> = warnings(&events)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(
        warned,
        [named("TurnStart"), named("AfterToolUse"), named("TurnEnd")]
    );
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_whose_panic_panics_still_guards() {
    // C24
    let probe = Probe::tapping("bombs", |hooks| {
        hooks.before_tool_use("bomb", |_| async { explode() });
    });
    let tool = RecordingTool::read_only("ro_echo");
    let log = tool.log().clone();
    let rig = Rig::with(one_call(), config(), |builder| {
        builder.plugin(probe).tool(tool)
    })
    .await;
    rig.send("hi").await;
    assert_eq!(log.inputs(), []);
    let told = crate::look::result(&rig.request(2), "c1");
    assert!(told.contains(&named("BeforeToolUse")), "{told}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_explodes_when_it_is_dropped_is_dropped_without_harm() {
    // C24
    for limit in [Some(Duration::from_millis(10)), None] {
        let gate = Gate::opened();
        let door = gate.clone();
        let probe = Probe::tapping("bombs", move |hooks| {
            let tap = match limit {
                Some(limit) => Tap::named("hang").limit(limit),
                None => Tap::named("hang").no_limit(),
            };
            let door = door.clone();
            hooks.turn_end(tap, move |end: TurnEnd| {
                let door = door.clone();
                async move {
                    if &*end.assistant_output == "first" {
                        let _armed = Bomb::new();
                        door.pass().await;
                        std::future::pending::<()>().await;
                    }
                    Ok(HookOutcome::Continue)
                }
            });
        });
        let gated = provider().reply([text("first"), done()]);
        let settings = AgentConfig {
            hook_timeout_ms: 10,
            ..config()
        };
        let rig = Rig::with(gated, settings, |builder| builder.plugin(probe)).await;
        let turn = rig.session.send("hi").unwrap();
        gate.arrived(1).await;
        assert!(!turn.cancel(), "its outcome stands");
        let events = collect(turn).await;
        assert_eq!(warnings(&events).len(), 1, "{events:?}");
        assert_eq!(told(&events).last().unwrap(), "completed: first");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_source_explodes_when_it_is_dropped_is_a_failure_like_any_other() {
    // C24
    async fn fails<C>() -> HookResult<C> {
        Err(HookError::new("out of order").with_source(Bomb::new()))
    }
    fn tap(hooks: &mut HookRegistry) {
        hooks.session_start("bomb", |_| fails());
        hooks.turn_start("bomb", |_| fails());
        hooks.after_tool_use("bomb", |_| fails());
        hooks.turn_end("bomb", |_| fails());
        hooks.session_end("bomb", |_| fails());
    }
    struct Failing;

    #[async_trait]
    impl ToolHandler for Failing {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition::new("ro_echo", "Fails.", json!({ "type": "object" }))
        }

        async fn call(&self, _: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
            Err(ToolError::new("no echo").with_source(Bomb::new()))
        }
    }

    let rig = Rig::with(one_call(), config(), |builder| {
        builder.plugin(Probe::tapping("bombs", tap)).tool(Failing)
    })
    .await;
    let events = rig.send("hi").await;
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    for (_, warning) in warnings(&events) {
        assert!(warning.contains(FAULT), "{warning}");
    }
    assert_eq!(warnings(&events).len(), 3);
    let told = crate::look::result(&rig.request(2), "c1");
    assert!(told.contains(FAULT), "{told}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_panic_panics_is_one_error_result_of_its_batch() {
    // C24
    let provider = provider()
        .reply([
            call("c1", "bomb", "{}"),
            call("c2", "ro_echo", "{}"),
            call("c3", "bomb", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(Bomber)
            .tool(RecordingTool::read_only("ro_echo").answering("out"))
    })
    .await;
    let events = rig.send("hi").await;
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    let failed = format!("TOOL_EXECUTION_ERROR: the tool \"bomb\" failed: {FAULT}");
    assert_eq!(
        results(&rig.request(2)),
        [
            ("c1".to_owned(), failed.clone()),
            ("c2".to_owned(), "out".to_owned()),
            ("c3".to_owned(), failed)
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_explodes_after_its_time_was_up_harms_nobody() {
    // C24: within the grace, and when it is dropped after it.
    for takes in [Duration::from_millis(150), Duration::from_secs(3_600)] {
        let settings = AgentConfig {
            tool_timeout_ms: 100,
            ..config()
        };
        let provider = provider()
            .reply([call("c1", "late", "{}"), done()])
            .reply([text("ok"), done()]);
        let rig = Rig::with(provider, settings, |builder| {
            builder.tool(LateBomber { takes })
        })
        .await;
        let events = rig.send("hi").await;
        assert_eq!(told(&events).last().unwrap(), "completed: ok");
        // On paused time: what is left of the tool has its end.
        tokio::time::sleep(Duration::from_secs(10)).await;
        rig.epilogue().await;
    }
}

/// A plugin that explodes in one step of its life.
struct Bombing(&'static str);

#[async_trait]
impl Plugin for Bombing {
    fn id(&self) -> &str {
        "bombing"
    }

    async fn initialize(&self, _: Arc<serde_json::Value>) -> Result<(), PluginError> {
        match self.0 {
            "initialize" => explode(),
            "error" => Err(PluginError::new("no").with_source(Bomb::new())),
            _ => Ok(()),
        }
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        hooks.observe(|_| explode());
        match self.0 {
            "apply" => explode(),
            _ => Ok(()),
        }
    }

    async fn shutdown(&self) -> Result<(), PluginError> {
        match self.0 {
            "shutdown" => explode(),
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_whose_panic_panics_fails_the_build_or_is_named_at_the_shutdown() {
    // C24
    for step in ["initialize", "apply", "error"] {
        let built = AgentBuilder::new(config())
            .provider(provider())
            .plugin(Bombing(step))
            .build()
            .await;
        let error = built.unwrap_err();
        assert_eq!(error.code, ErrorCode::PluginInitFailed);
        assert!(error.message.contains(FAULT), "{}", error.message);
    }
    let rig = Rig::with(one_call(), config(), |builder| {
        builder.plugin(Bombing("shutdown")).plugin(bombing(|| ()))
    })
    .await;
    assert_eq!(told(&rig.send("hi").await).last().unwrap(), "completed: ok");
    let report = rig.agent.shutdown().await;
    let problem = format!("shutting down the plugin \"bombing\" failed: {FAULT}");
    assert_eq!(report.problems, [problem]);
}

//! Requirements 10: a panic of a caller's code is contained, whatever its payload does.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{
    Gate, RecordingTool, ScriptedProvider, call, collect, done, text, vision_model,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ChatRequest, ChatStream, ErrorCode, HookError, HookOutcome,
    HookRegistry, HookResult, ListPage, Memory, MemoryStorage, ModelInfo, ModelProvider, Plugin,
    PluginError, ProviderError, SendOptions, SessionConfig, SessionEvent, SessionLog,
    SessionStorage, SessionSummary, StorageError, Tap, ToolContext, ToolDefinition, ToolError,
    ToolHandler, ToolInput, ToolOutput, TurnEnd, TurnStatus,
};

use crate::look::{results, warnings};
use crate::probe::Probe;
use crate::rig::{MODEL, Rig, config, provider};
use crate::told::told;

/// Panics when it is dropped, with a payload that does so, too, this many times.
#[derive(Debug, thiserror::Error)]
#[error("a bomb")]
struct Bomb(u8);

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

fn explode<T>() -> T {
    std::panic::panic_any(Bomb(3))
}

/// Explodes wherever it is asked for anything.
struct Bomber;

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
        let _armed = Bomb(3);
        tokio::time::sleep(self.takes).await;
        explode()
    }
}

/// Where a provider explodes.
#[derive(Debug, Clone, Copy)]
enum Where {
    Models,
    Chat,
    Stream,
    End,
}

#[async_trait]
impl ModelProvider for Where {
    fn id(&self) -> &str {
        "bomber"
    }

    fn models(&self) -> Vec<ModelInfo> {
        match self {
            Self::Models => explode(),
            _ => vec![vision_model("bomb-1")],
        }
    }

    async fn chat(
        &self,
        _: ChatRequest,
        _: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let armed = match self {
            Self::Chat => explode(),
            Self::End => Some(Bomb(3)),
            _ => None,
        };
        Ok(Box::pin(futures_util::stream::poll_fn(move |_| {
            match &armed {
                // It ends without an end mark, and the bomb goes off when it is dropped.
                Some(_) => Poll::Ready(None),
                None => explode(),
            }
        })))
    }
}

#[async_trait]
impl SessionStorage for Bomber {
    async fn append(&self, _: &str, _: &[SessionEvent]) -> Result<(), StorageError> {
        explode()
    }

    async fn load(&self, _: &str) -> Result<Option<SessionLog>, StorageError> {
        explode()
    }

    async fn summary(&self, _: &str) -> Result<Option<SessionSummary>, StorageError> {
        explode()
    }

    async fn list(&self, _: Option<&str>, _: NonZeroUsize) -> Result<ListPage, StorageError> {
        explode()
    }

    async fn find(&self, _: &str) -> Result<Vec<SessionSummary>, StorageError> {
        explode()
    }

    async fn rename(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        explode()
    }

    async fn delete(&self, _: &str) -> Result<bool, StorageError> {
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

const FAULT: &str = "it panicked: with a payload that is no text";

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
                        let _armed = Bomb(3);
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
        Err(HookError::new("out of order").with_source(Bomb(3)))
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
            Err(ToolError::new("no echo").with_source(Bomb(3)))
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

#[tokio::test(start_paused = true)]
async fn a_provider_whose_panic_panics_fails_its_turn_alone() {
    // C24
    for place in [Where::Chat, Where::Stream, Where::End] {
        let settings = AgentConfig {
            max_retries: 0,
            ..config()
        };
        let rig = Rig::with(provider(), settings, |builder| builder.provider(place)).await;
        let bombed = SendOptions {
            model_id: Some("bomb-1".into()),
            ..SendOptions::default()
        };
        let turn = rig.session.send_with("hi", bombed).unwrap();
        let outcome = turn.outcome().await;
        assert_eq!(outcome.status, TurnStatus::Failed, "{place:?}");
        let error = outcome.error.unwrap();
        assert_eq!(error.code, ErrorCode::ProviderError, "{place:?} {error:?}");
        let well = SendOptions {
            model_id: Some(MODEL.into()),
            ..SendOptions::default()
        };
        rig.provider.queue([text("well"), done()]);
        let outcome = rig
            .session
            .send_with("again", well)
            .unwrap()
            .outcome()
            .await;
        assert_eq!(*outcome.assistant_output, *"well", "{place:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_explodes_when_it_is_asked_for_its_models_fails_the_build() {
    // C24
    let built = AgentBuilder::new(config()).provider(Where::Models).build();
    let error = built.await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidDefaultModel, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_storage_whose_panic_panics_fails_what_it_was_asked_for() {
    // C24
    let agent = AgentBuilder::new(config())
        .provider(provider().always(|_| [text("ok"), done()]))
        .session_storage(Bomber)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    for _ in 0..2 {
        let outcome = session.send("hi").unwrap().outcome().await;
        let error = outcome.error.unwrap();
        assert_eq!(error.code, ErrorCode::StorageError);
        assert!(error.message.contains(FAULT), "{}", error.message);
    }
    let history = agent.session_history("other", None, None).await;
    assert_eq!(history.unwrap_err().code, ErrorCode::StorageError);
    let resumed = agent.resume_session("other", Default::default()).await;
    assert_eq!(resumed.unwrap_err().code, ErrorCode::SessionBusy);
    session.close().await.unwrap();
    let resumed = agent.resume_session("other", Default::default()).await;
    assert_eq!(resumed.unwrap_err().code, ErrorCode::StorageError);
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    session.close().await.unwrap();
}

#[async_trait]
impl MemoryStorage for Bomber {
    async fn load(&self, _: &str) -> Result<Vec<Memory>, StorageError> {
        explode()
    }

    async fn upsert(&self, _: Memory) -> Result<(), StorageError> {
        explode()
    }

    async fn delete(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        explode()
    }

    async fn search(&self, _: &str, _: &str, _: NonZeroUsize) -> Result<Vec<Memory>, StorageError> {
        explode()
    }
}

#[tokio::test(start_paused = true)]
async fn memories_whose_storage_explodes_are_gone_without() {
    // C24
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| builder.memory_storage(Bomber),
    )
    .await;
    assert_eq!(told(&rig.send("hi").await).last().unwrap(), "completed: ok");
    rig.epilogue().await;
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
            "error" => Err(PluginError::new("no").with_source(Bomb(3))),
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

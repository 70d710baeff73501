//! Requirements 10: a panic of a caller's code is contained, whatever its payload does.

use async_trait::async_trait;
use youyou_agent::testing::{InMemorySessions, RecordingTool, call, done, text, vision_model};
use youyou_agent::{
    AgentBuilder, ChatRequest, ChatStream, HookOutcome, ModelInfo, ModelProvider, ProviderError,
    SessionConfig, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput,
    TurnStatus,
};

use crate::probe::Probe;
use crate::rig::{MODEL, Rig, config, provider};

/// A payload that panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the payload panics, too");
        }
    }
}

fn explode() -> ! {
    std::panic::panic_any(Bomb)
}

struct Bomber;

#[async_trait]
impl ToolHandler for Bomber {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("bomb", "Explodes.", serde_json::json!({ "type": "object" }))
    }

    async fn call(&self, _: ToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        explode()
    }
}

#[async_trait]
impl ModelProvider for Bomber {
    fn id(&self) -> &str {
        "bomber"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![vision_model("bomb-1")]
    }

    async fn chat(
        &self,
        _: ChatRequest,
        _: tokio_util::sync::CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        explode()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_whose_payload_panics_is_a_panic_like_any_other() {
    // C24
    let hooks = Probe::tapping("p", |hooks| {
        hooks.turn_end("a", |_| async { explode() });
        hooks.session_end("b", |_| async { explode() });
        hooks.after_tool_use("c", |_| async {
            let _never: HookOutcome<String> = explode();
            #[expect(unreachable_code, reason = "it gives the block its type")]
            Ok(HookOutcome::Continue)
        });
    });
    let provider = provider()
        .reply([
            call("c1", "bomb", "{}"),
            call("c2", "ro_echo", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .plugin(hooks)
            .tool(Bomber)
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let outcome = rig.session.send("hi").unwrap().outcome().await;
    assert_eq!(outcome.status, TurnStatus::Completed);
    let request = rig.request(2);
    let results = crate::look::results(&request);
    assert!(results[0].1.contains("panicked"), "{results:?}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_panic_panics_fails_its_turn_alone() {
    // C24
    let agent = AgentBuilder::new(config())
        .provider(provider().always(|_| [text("fine"), done()]))
        .provider(Bomber)
        .session_storage(InMemorySessions::new())
        .build()
        .await
        .unwrap();
    let bombed = SessionConfig {
        model_id: Some("bomb-1".into()),
        ..SessionConfig::default()
    };
    let session = agent.create_session(bombed).await.unwrap();
    let outcome = session.send("hi").unwrap().outcome().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    let well = youyou_agent::SendOptions {
        model_id: Some(MODEL.into()),
        ..youyou_agent::SendOptions::default()
    };
    let outcome = session.send_with("again", well).unwrap().outcome().await;
    assert_eq!(*outcome.assistant_output, *"fine");
}

//! Requirements 3.1: lists of models that block, change hands, or hold what cannot be used.

use std::sync::{Arc, Condvar, Mutex};

use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{ScriptedProvider, collect, done, text, text_model, vision_model};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, ChatRequest, ChatStream, ErrorCode, ModelInfo, ModelProvider,
    ProviderError, SessionConfig,
};

use crate::models::on_model;
use crate::rig::{MODEL, Rig, config, provider};
use crate::told::told;

/// A provider that says which models it has only while its gate is open.
struct Blocking {
    models: ScriptedProvider,
    gate: Arc<Turnstile>,
}

/// A gate for threads: what waits there cannot be cancelled, as in a provider that blocks.
#[derive(Default)]
struct Turnstile {
    shut: Mutex<bool>,
    opened: Condvar,
}

impl Turnstile {
    fn set_shut(&self, shut: bool) {
        *self.shut.lock().unwrap() = shut;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let shut = self.shut.lock().unwrap();
        drop(self.opened.wait_while(shut, |shut| *shut).unwrap());
    }
}

#[async_trait::async_trait]
impl ModelProvider for Blocking {
    fn id(&self) -> &str {
        self.models.id()
    }

    fn models(&self) -> Vec<ModelInfo> {
        self.gate.pass();
        self.models.models()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        self.models.chat(request, cancel).await
    }
}

/// A provider of the model "slow", and the gate before its list.
fn blocking() -> (Blocking, ScriptedProvider, Arc<Turnstile>) {
    let models = ScriptedProvider::new("blocking")
        .model(vision_model("slow"))
        .always(|_| [text("slowly"), done()]);
    let gate = Arc::new(Turnstile::default());
    let provider = Blocking {
        models: models.clone(),
        gate: Arc::clone(&gate),
    };
    (provider, models, gate)
}

fn listed(agent: &Agent) -> Vec<String> {
    let entries = agent.models().into_iter();
    entries.map(|entry| entry.model.id).collect()
}

#[tokio::test(start_paused = true)]
async fn of_a_provider_whose_list_blocks_what_it_named_before_can_be_used() {
    // X14: the gate is opened after each answer, so that no answer has waited for it.
    let (slow, models, gate) = blocking();
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| builder.provider(slow),
    )
    .await;
    gate.set_shut(true);
    models.add_model(vision_model("new"));
    let events = collect(rig.session.send_with("hi", on_model("slow")).unwrap()).await;
    assert_eq!(told(&events).last().unwrap(), "completed: slowly");
    assert_eq!(listed(&rig.agent), [MODEL, "slow"]);
    let refused = rig.session.send_with("hi", on_model("new")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    let reason = "the provider \"blocking\" does not answer which models it has";
    assert!(refused.message.contains(reason), "{refused}");
    collect(rig.session.send_with("back", on_model(MODEL)).unwrap()).await;
    let config = SessionConfig {
        model_id: Some("slow".to_owned()),
        replace: true,
        ..SessionConfig::default()
    };
    let session = rig.agent.create_session(config).await.unwrap();
    session.close().await.unwrap();

    gate.set_shut(false);
    let rig = rig.anew().await;
    while listed(&rig.agent) != [MODEL, "slow", "new"] {}
    collect(rig.session.send_with("hi", on_model("new")).unwrap()).await;
    collect(rig.session.send_with("back", on_model(MODEL)).unwrap()).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_blocks_from_the_start_has_no_models_until_it_answers() {
    // X14
    let (slow, _, gate) = blocking();
    gate.set_shut(true);
    let slow: Arc<dyn ModelProvider> = Arc::new(slow);
    let refused = AgentBuilder::new(AgentConfig::new("slow"))
        .provider(provider())
        .provider(Arc::clone(&slow))
        .build()
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidDefaultModel);
    assert!(refused.message.contains("\"blocking\""), "{refused}");
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| builder.provider(slow),
    )
    .await;
    assert_eq!(listed(&rig.agent), [MODEL]);
    rig.send("hi").await;
    gate.set_shut(false);
    while listed(&rig.agent) != [MODEL, "slow"] {}
    rig.epilogue().await;
}

/// A provider whose list needs the agent's runtime.
struct NeedsRuntime(ScriptedProvider);

#[async_trait::async_trait]
impl ModelProvider for NeedsRuntime {
    fn id(&self) -> &str {
        "needs-runtime"
    }

    fn models(&self) -> Vec<ModelInfo> {
        let _ = tokio::runtime::Handle::current();
        self.0.models()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        self.0.chat(request, cancel).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_finds_the_runtime_of_the_agent_when_it_is_asked_for_its_models() {
    let models = ScriptedProvider::new("inner").model(text_model("m2"));
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| builder.provider(NeedsRuntime(models)),
    )
    .await;
    assert_eq!(listed(&rig.agent), [MODEL, "m2"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn blank_ids_and_windows_of_zero_fail_the_build_by_name() {
    // X13
    let window = |window| ModelInfo {
        context_window: window,
        ..text_model("m2")
    };
    let provider = |id: &str, model| ScriptedProvider::new(id).model(model);
    let flawed = [
        (
            provider("", text_model("m2")),
            "the id \"\" of a model provider",
        ),
        (
            provider(" \t", text_model("m2")),
            "the id \" \\t\" of a model provider",
        ),
        (
            provider("p", text_model("")),
            "provider \"p\" has the id \"\"",
        ),
        (
            provider("p", text_model("\n")),
            "provider \"p\" has the id \"\\n\"",
        ),
        (
            provider("p", window(0)),
            "\"p\" (\"m2\") has a context window of 0",
        ),
    ];
    for (provider, words) in flawed {
        let error = AgentBuilder::new(config())
            .provider(crate::rig::provider())
            .provider(provider)
            .build()
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_window_that_comes_while_the_app_runs_is_left_out() {
    // X13
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    let window = |id, window| ModelInfo {
        context_window: window,
        ..vision_model(id)
    };
    for flawed in [window("none", 0), window("", 1_000), window(" ", 1_000)] {
        rig.provider.add_model(flawed);
    }
    rig.provider.add_model(window("huge", u32::MAX));
    assert_eq!(listed(&rig.agent), [MODEL, "huge"]);
    let refused = rig.session.send_with("hi", on_model("none")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    let events = collect(rig.session.send_with("hi", on_model("huge")).unwrap()).await;
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    assert_eq!(rig.session.info().context_window, u32::MAX);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_another_provider_takes_over_is_found_there() {
    let first = ScriptedProvider::new("first")
        .model(text_model("a"))
        .always(|_| [text("first"), done()]);
    let second = ScriptedProvider::new("second")
        .model(text_model("b"))
        .always(|_| [text("second"), done()]);
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| {
            let shared: [Arc<dyn ModelProvider>; 2] =
                [Arc::new(first.clone()), Arc::new(second.clone())];
            builder.providers(shared)
        },
    )
    .await;
    let answer = async |model: &str| {
        let turn = rig.session.send_with("hi", on_model(model)).unwrap();
        turn.text().await.unwrap()
    };
    assert_eq!(answer("a").await, "first");
    // A later provider has it after it left an earlier one.
    first.remove_model("a");
    second.add_model(text_model("a"));
    assert_eq!(answer("a").await, "second");
    // An earlier one goes before a later one.
    first.add_model(text_model("b"));
    assert_eq!(answer("b").await, "first");
    collect(rig.session.send_with("back", on_model(MODEL)).unwrap()).await;
    rig.epilogue().await;
}

//! Chapter 3.1: providers, their models, and what a request holds.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, call, collect, done, text, text_model, toolless_model,
    vision_model,
};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, ChatRequest, ChatStream, ContentBlock, ErrorCode, Message,
    ModelInfo, ModelProvider, ProviderError, ReasoningEffort, ResumeOptions, SendOptions,
    SessionConfig,
};

use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::told;

fn on_model(model_id: &str) -> SendOptions {
    SendOptions {
        model_id: Some(model_id.to_owned()),
        ..SendOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_may_name_a_model_for_this_and_later_turns() {
    let other = ScriptedProvider::new("other")
        .model(ModelInfo {
            context_window: 50_000,
            ..text_model("o1")
        })
        .always(|_| [text("from o1"), done()]);
    let provider = provider().always(|_| [text("from m1"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder.provider(other.clone())
    })
    .await;
    rig.send("1").await;
    let events = collect(rig.session.send_with("2", on_model("o1")).unwrap()).await;
    assert_eq!(told(&events).last().unwrap(), "completed: from o1");
    assert_eq!(rig.session.info().model_id, "o1");
    assert_eq!(rig.session.info().context_window, 50_000);
    rig.send("3").await;
    rig.reopen().await;
    assert_eq!(
        rig.session.info().model_id,
        "o1",
        "a resumed session goes on with it"
    );
    rig.send("4").await;
    assert_eq!(rig.provider.request_count(), 1);
    assert_eq!(other.request_count(), 3);
    assert!(stored_lines(&rig.stored()).contains(&"model: o1".to_owned()));
    assert_eq!(other.violations(), Vec::<String>::new());
    collect(rig.session.send_with("5", on_model(MODEL)).unwrap()).await;
    assert_eq!(
        said(&rig.request(2)),
        [
            "user: 1",
            "assistant: from m1",
            "user: 2",
            "assistant: from o1",
            "user: 3",
            "assistant: from o1",
            "user: 4",
            "assistant: from o1",
            "user: 5"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn parameters_reach_the_model_and_last_for_their_turn() {
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let options = SendOptions {
        model_id: None,
        temperature: Some(0.5),
        max_tokens: Some(100),
        reasoning_effort: Some(ReasoningEffort::High),
        response_format: None,
    };
    collect(rig.session.send_with("hi", options).unwrap()).await;
    rig.send("next").await;
    for number in [1, 2] {
        let request = rig.request(number);
        assert_eq!(request.temperature, Some(0.5));
        assert_eq!(request.max_tokens, Some(100));
        assert_eq!(request.reasoning_effort, Some(ReasoningEffort::High));
        assert_eq!(&*request.model_id, MODEL);
    }
    let request = rig.request(3);
    assert_eq!(
        (
            request.temperature,
            request.max_tokens,
            request.reasoning_effort
        ),
        (None, None, None)
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_shares_its_messages_with_the_one_before() {
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::new(provider).await;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let data: Arc<str> = png.into();
    let image = ContentBlock::image("image/png", Arc::clone(&data));
    rig.send(vec![image]).await;
    for turn in 0..100 {
        rig.send(format!("turn {turn}")).await;
    }
    let (early, late) = (rig.request(2), rig.request(101));
    for (before, after) in early.messages.iter().zip(late.messages.iter()) {
        assert!(Arc::ptr_eq(before, after));
    }
    let Message::User(user) = &**late.messages.iter().next().unwrap() else {
        panic!("{late:?}");
    };
    let ContentBlock::Image { data: sent, .. } = &user.content[0] else {
        panic!("{user:?}");
    };
    assert!(Arc::ptr_eq(sent, &data), "an image is never copied");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_without_tools_is_offered_none() {
    let other = ScriptedProvider::new("other")
        .model(toolless_model("plain"))
        .always(|_| [text("ok"), done()]);
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .provider(other.clone())
            .tool(RecordingTool::read_only("zeta"))
            .tool(RecordingTool::read_only("alpha"))
    })
    .await;
    rig.send("hi").await;
    let names: Vec<String> = rig
        .request(1)
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    assert_eq!(names, ["alpha", "zeta"]);
    collect(rig.session.send_with("hi", on_model("plain")).unwrap()).await;
    assert!(other.last_request().unwrap().tools.is_empty());
    collect(rig.session.send_with("back", on_model(MODEL)).unwrap()).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_may_gain_and_lose_models_while_the_app_runs() {
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    let ids = |rig: &Rig| -> Vec<String> {
        rig.agent
            .models()
            .into_iter()
            .map(|entry| entry.model.id)
            .collect()
    };
    assert_eq!(ids(&rig), [MODEL]);
    let refused = rig.session.send_with("hi", on_model("m2")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    assert!(refused.message.contains("\"m2\"") && refused.message.contains(MODEL));

    rig.provider.add_model(vision_model("m2"));
    assert_eq!(ids(&rig), [MODEL, "m2"]);
    collect(rig.session.send_with("hi", on_model("m2")).unwrap()).await;

    rig.provider.remove_model("m2");
    let refused = rig.session.send("again").unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotSupported);
    assert_eq!(
        rig.session.retry_turn().unwrap_err().code,
        ErrorCode::ModelNotSupported
    );
    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();
    let gone = rig
        .agent
        .resume_session(&id, ResumeOptions::default())
        .await
        .unwrap_err();
    assert_eq!(gone.code, ErrorCode::ModelNotSupported);
    let refused = rig.agent.create_session(SessionConfig {
        model_id: Some("m2".to_owned()),
        ..SessionConfig::default()
    });
    assert_eq!(
        refused.await.unwrap_err().code,
        ErrorCode::ModelNotSupported
    );
    let options = ResumeOptions {
        model_id: Some(MODEL.to_owned()),
        ..ResumeOptions::default()
    };
    let session = rig.agent.resume_session(&id, options).await.unwrap();
    let rig = Rig { session, ..rig };
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_providers_that_clash_at_run_time_the_first_registered_wins() {
    let first = ScriptedProvider::new("first").model(text_model("m1"));
    let second = ScriptedProvider::new("second").model(text_model("m2"));
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(first.clone())
        .provider(second.clone())
        .build()
        .await
        .unwrap();
    first.add_model(text_model("m2"));
    let listed: Vec<(String, String)> = agent
        .models()
        .into_iter()
        .map(|entry| (entry.model.id, entry.provider_id))
        .collect();
    assert_eq!(
        listed,
        [
            ("m1".to_owned(), "first".to_owned()),
            ("m2".to_owned(), "first".to_owned())
        ]
    );
    let session = agent
        .create_session(SessionConfig {
            model_id: Some("m2".to_owned()),
            ..SessionConfig::default()
        })
        .await
        .unwrap();
    first.queue([text("mine"), done()]);
    let outcome = session.send("hi").unwrap().outcome().await;
    assert_eq!(*outcome.assistant_output, *"mine");
    assert_eq!(second.request_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn models_are_listed_as_their_providers_declare_them() {
    let rig = Rig::new(provider()).await;
    let listed = serde_json::to_value(rig.agent.models()).unwrap();
    assert_eq!(
        listed,
        json!([{
            "id": "m1",
            "displayName": "m1",
            "contextWindow": 128_000,
            "capabilities": {
                "toolUse": true, "vision": true, "streaming": true, "reasoning": false
            },
            "providerId": "scripted",
        }])
    );
}

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

//! Chapter 3.1: providers, their models, and what a request holds.

use std::sync::Arc;

use serde_json::json;
use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, call, collect, done, text, text_model, toolless_model,
    vision_model,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ContentBlock, ErrorCode, Message, ModelInfo, ReasoningEffort,
    ResumeOptions, SendOptions, SessionConfig,
};

use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::told;

pub(crate) fn on_model(model_id: &str) -> SendOptions {
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

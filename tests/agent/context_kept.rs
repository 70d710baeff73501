//! Chapter 5.2: what stays the same from request to request: ids, opaque data, the messages.

use std::sync::Arc;

use serde_json::json;
use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, assistant_message, call, done, text, text_part,
    tool_result_stored, user_message, vision_model, wait,
};
use youyou_agent::{
    AssistantPart, Message, MessageStatus, ProviderData, SendOptions, SessionEventKind,
};

use crate::context::raw;
use crate::histories::{STORED, marked_turns, storage_with, tool_rounds};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};

#[tokio::test(start_paused = true)]
async fn ids_from_a_provider_are_made_unique_everywhere() {
    let provider = provider()
        .reply([
            call("", "ro_echo", r#"{"n":1}"#),
            call("c1", "ro_echo", r#"{"n":2}"#),
            call("c1", "ro_echo", r#"{"n":3}"#),
            done(),
        ])
        .reply([call("c1", "ro_echo", r#"{"n":4}"#), done()])
        .reply([text("done"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo").echo())
    })
    .await;
    let events = rig.send("go").await;
    let lines = said(&rig.request(3));
    let id_of = |n: usize| {
        let result = format!(r#": {{"n":{n}}}"#);
        let line = lines.iter().find(|line| line.ends_with(&result)).unwrap();
        line.strip_prefix("result ")
            .unwrap()
            .strip_suffix(&result)
            .unwrap()
            .to_owned()
    };
    let ids: Vec<String> = (1..=4).map(id_of).collect();
    assert_eq!(ids[1], "c1", "an id that is free is kept");
    let different: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 4, "{ids:?}");
    let shown: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.kind {
            youyou_agent::AgentEventKind::ToolCallStart { call_id, .. } => {
                Some(call_id.to_string())
            }
            _ => None,
        })
        .collect();
    assert_eq!(shown, ids, "the same in events");
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(4))[..lines.len()],
        lines,
        "and in storage"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_went_with_a_compaction_is_not_used_again() {
    let provider = provider()
        .intercept(|request| {
            crate::histories::asks_for_summary(request).then(|| [text("S"), done()])
        })
        .reply([call("c1", "ro_echo", "{}"), done()])
        .always(|_| [text("ok"), done()]);
    let storage = storage_with(tool_rounds(6, &"o".repeat(200)));
    let rig = Rig::resumed(
        provider,
        crate::histories::compacting(),
        storage,
        STORED,
        |builder| builder.tool(RecordingTool::read_only("ro_echo").echo()),
    )
    .await;
    rig.session.compact().await.unwrap();
    rig.send("go").await;
    let stored = stored_lines(&rig.stored());
    let calls: Vec<&String> = stored
        .iter()
        .filter(|line| line.starts_with("call "))
        .collect();
    let different: std::collections::HashSet<&&String> = calls.iter().collect();
    assert_eq!(calls.len(), 7);
    assert_eq!(different.len(), 7, "{calls:?}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_shares_every_message_with_the_one_before() {
    // The cost of a model call must not grow with the history.
    let provider = provider().always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(300, 10));
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    for n in 0..5 {
        rig.send(format!("message {n}").as_str()).await;
    }
    let requests = rig.provider.requests();
    for pair in requests.windows(2) {
        assert_eq!(pair[1].messages.len(), pair[0].messages.len() + 2);
        let both = pair[0].messages.iter().zip(pair[1].messages.iter());
        assert!(both.into_iter().all(|(old, new)| Arc::ptr_eq(old, new)));
        assert!(
            Arc::ptr_eq(&pair[0].system, &pair[1].system),
            "the system prompt, too"
        );
        assert!(
            Arc::ptr_eq(&pair[0].tools, &pair[1].tools),
            "the tools, too"
        );
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn opaque_data_goes_back_to_its_own_provider_only() {
    let data = |value: &str| Some(ProviderData(value.into()));
    let answer = raw(SessionEventKind::AssistantMessage {
        parts: vec![
            AssistantPart::Reasoning {
                text: "hm".into(),
                provider_data: data("signed"),
            },
            AssistantPart::Reasoning {
                text: "".into(),
                provider_data: data("redacted"),
            },
            text_part("answer"),
            AssistantPart::ToolCall {
                call_id: "c1".into(),
                tool_name: "ro_echo".into(),
                arguments: Arc::new(json!({})),
                provider_data: data("call"),
            },
        ],
        status: MessageStatus::Complete,
        interruption: None,
        stop_reason: None,
        provider_id: "scripted".into(),
        model_id: MODEL.into(),
        provider_data: data("message"),
        usage: None,
    });
    let history = vec![
        user_message(0, "q"),
        answer,
        tool_result_stored(0, "c1", "ro_echo", "one"),
        assistant_message(0, [text_part("done")]),
    ];
    let other = ScriptedProvider::new("other")
        .model(vision_model("m2"))
        .always(|_| [text("ok"), done()]);
    let registered = other.clone();
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(
        provider,
        config(),
        storage_with(history),
        STORED,
        move |builder| builder.provider(registered),
    )
    .await;
    rig.send("next").await;
    let away = SendOptions {
        model_id: Some("m2".to_owned()),
        ..SendOptions::default()
    };
    rig.session.send_with("away", away).unwrap().outcome().await;
    let data_in = |message: &Message| {
        let Message::Assistant(assistant) = message else {
            panic!("{message:?}");
        };
        let parts = assistant.parts.iter().map(|part| match part {
            AssistantPart::Text { provider_data, .. }
            | AssistantPart::Reasoning { provider_data, .. }
            | AssistantPart::ToolCall { provider_data, .. } => provider_data.clone(),
            other => panic!("{other:?}"),
        });
        parts
            .chain([assistant.provider_data.clone()])
            .flatten()
            .map(|data| data.0.to_string())
            .collect::<Vec<String>>()
    };
    let own = rig.request(1);
    let foreign = other.requests().remove(0);
    assert_eq!(
        data_in(own.messages.iter().nth(1).unwrap()),
        ["signed", "redacted", "call", "message"]
    );
    assert_eq!(
        data_in(foreign.messages.iter().nth(1).unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(
        said(&foreign)[1],
        "assistant: <thinks hm> answer <c1 ro_echo>"
    );
    assert_eq!(other.violations(), Vec::<String>::new());
    other.fall_back(|_| [text("fine"), done()]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_cut_is_run_again_without_its_answer_and_without_a_second_message() {
    let provider = provider()
        .reply([text("par"), wait()])
        .reply([text("whole"), done()]);
    let mut rig = Rig::new(provider).await;
    let turn = rig.session.send("q").unwrap();
    rig.provider.asked(1).await;
    tokio::task::yield_now().await;
    assert!(turn.cancel());
    turn.outcome().await;
    let again = rig.session.retry_turn().unwrap();
    assert_eq!(*again.outcome().await.assistant_output, *"whole");
    let lines = said(&rig.request(2));
    assert_eq!(lines, ["user: q"]);
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(3)),
        ["user: q", "assistant: whole", "user: next"]
    );
    rig.epilogue().await;
}

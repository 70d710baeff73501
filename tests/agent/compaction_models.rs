//! Chapter 5.2: who writes the summary, and what becomes of a compaction that is cancelled.

use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, done, error, kinds, text, text_model, user_message, wait,
};
use youyou_agent::{
    AgentConfig, AgentEventKind, CompactionMethod, ErrorCode, ModelInfo, ProviderErrorKind,
};

use crate::histories::{
    STORED, asks_for_summary, compacting, compactions, marked_turns, markers, storage_with,
    summarised_by, turns_asked, well_summarised,
};
use crate::rig::{Rig, provider, provider_with_window};
use crate::said::{all_said, said};

#[tokio::test(start_paused = true)]
async fn a_compact_model_that_is_not_there_means_truncation() {
    // C20
    let settings = AgentConfig {
        compact_model: Some("nope".to_owned()),
        ..compacting()
    };
    let provider = provider_with_window(1_000).always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(10, 50));
    let rig = Rig::resumed(provider, settings, storage, STORED, |builder| builder).await;
    let events = rig.send("next").await;
    assert_eq!(
        kinds(&events),
        [
            "turnStarted",
            "warning",
            "contextCompacted",
            "textDelta",
            "turnComplete"
        ]
    );
    let AgentEventKind::Warning { message, .. } = &events[1].kind else {
        panic!("{events:?}");
    };
    assert!(
        message.contains("nope"),
        "the warning names the model: {message}"
    );
    assert_eq!(rig.provider.request_count(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_compact_model_that_failed_is_tried_again_at_the_next_compaction() {
    // C20
    let summariser = ScriptedProvider::new("other")
        .model(text_model("small"))
        .reply([error(ProviderErrorKind::Overloaded, "busy")])
        .reply([text("THE SUMMARY"), done()]);
    let settings = AgentConfig {
        compact_model: Some("small".to_owned()),
        ..compacting()
    };
    let provider = provider_with_window(1_000).always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(10, 50));
    let other = summariser.clone();
    let rig = Rig::resumed(provider, settings, storage, STORED, move |builder| {
        builder.provider(other)
    })
    .await;
    let mut methods = Vec::new();
    for message in ["first".to_owned(), "x".repeat(1_600), "y".repeat(1_600)] {
        for event in rig.send(message.as_str()).await {
            if let AgentEventKind::ContextCompacted { method, .. } = event.kind {
                methods.push(method);
            }
        }
    }
    assert_eq!(
        methods[..2],
        [CompactionMethod::Truncated, CompactionMethod::Summarized]
    );
    assert_eq!(summariser.violations(), Vec::<String>::new());
    let asked = summariser.requests();
    assert!(asked.iter().all(|request| asks_for_summary(request)));
    assert!(asked.iter().all(|request| &*request.model_id == "small"));
    assert!(all_said(&rig.provider.last_request().unwrap()).contains("THE SUMMARY"));
    summariser.fall_back(|_| [text("fine"), done()]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_summary_has_no_tools_and_fits_the_model_that_writes_it() {
    let small = ModelInfo {
        context_window: 2_000,
        ..text_model("small")
    };
    let summariser = ScriptedProvider::new("other")
        .model(small)
        .always(|_| [text("长".repeat(50_000)), done()]);
    let settings = AgentConfig {
        compact_model: Some("small".to_owned()),
        ..compacting()
    };
    let provider = provider_with_window(20_000).always(|_| [text("ok"), done()]);
    let mut history = marked_turns(20, 450);
    history.insert(2, user_message(0, "字".repeat(1_500).as_str()));
    let other = summariser.clone();
    let rig = Rig::resumed(
        provider,
        settings,
        storage_with(history),
        STORED,
        move |builder| {
            builder
                .provider(other)
                .tool(RecordingTool::read_only("ro_echo"))
        },
    )
    .await;
    let events = rig.send("next").await;
    assert!(kinds(&events).contains(&"contextCompacted"));
    let request = summariser.last_request().unwrap();
    assert!(request.tools.is_empty());
    assert_eq!(
        request.max_tokens, None,
        "a quarter of the window is more than most models may write, and they would refuse"
    );
    let asked = all_said(&request);
    let tokens = asked
        .chars()
        .map(|c| if c.is_ascii() { 1 } else { 4 })
        .sum::<usize>()
        / 4;
    assert!(tokens < 2_000, "{tokens} tokens for a window of 2000");
    assert!(asked.contains("messages left out here for length"));
    assert!(markers(&asked).len() > 1, "as much as fits is read");
    let summary = said(turns_asked(&rig.provider).last().unwrap())[0]
        .chars()
        .count();
    assert!(
        summary <= 5_100,
        "the summary is capped at a quarter of the window: {summary}"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_compaction_changes_nothing() {
    let provider =
        summarised_by(provider(), || vec![text("half"), wait()]).always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(10, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
    let before = rig.stored();
    let session = rig.session.clone();
    let compacting = tokio::spawn(async move { session.compact().await });
    rig.provider.asked(1).await;
    assert_eq!(
        rig.session.send("now?").unwrap_err().code,
        ErrorCode::SessionBusy
    );
    assert!(rig.session.cancel(None));
    let refused = compacting.await.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::RequestCancelled);
    assert_eq!(rig.provider.dropped(), 1, "the request is gone");
    assert_eq!(rig.stored(), before);
    rig.send("next").await;
    assert_eq!(
        markers(&all_said(&rig.provider.last_request().unwrap())),
        Vec::from_iter(1..=20)
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_cancelled_while_it_compacts_changes_nothing_but_its_own_end() {
    let provider = summarised_by(provider_with_window(1_000), || vec![wait()]);
    let storage = storage_with(marked_turns(10, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
    let turn = rig.session.send("next").unwrap();
    rig.provider.asked(1).await;
    assert!(turn.cancel());
    let events = youyou_agent::testing::collect(turn).await;
    assert_eq!(kinds(&events), ["turnStarted", "turnCancelled"]);
    assert_eq!(compactions(&rig.stored()), 0);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_without_messages_has_nothing_to_compact() {
    let rig = Rig::with(well_summarised(provider()), compacting(), |builder| builder).await;
    for _ in 0..2 {
        let outcome = rig.session.compact().await.unwrap();
        assert_eq!(outcome.method, None);
        assert_eq!(outcome.messages_removed, 0);
    }
    assert_eq!(rig.provider.request_count(), 0);
    assert_eq!(rig.storage.session_ids(), Vec::<String>::new());
    rig.epilogue().await;
}

//! Chapter 6.2: a cancel while the model is asked or answers.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{
    Gate, assert_event_invariants, call, collect, done, kinds, reasoning, text, text_model,
    text_of, until_cancelled, wait,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ChatEvent, ChatRequest, ChatStream, Interruption, MessageStatus,
    ModelInfo, ModelProvider, ProviderError, SessionConfig, SessionEventKind, SessionState,
    TurnStatus,
};

use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::{cancel_at, told};

const NOTE: &str = "note: [此消息因用户取消而中断]";

#[tokio::test(start_paused = true)]
async fn text_that_was_shown_is_kept_exactly_and_followed_by_one_note() {
    // A5, A16
    let mut rig = Rig::new(provider().reply([text("AB"), text("CD"), wait()])).await;
    let events = cancel_at(rig.session.send("hi").unwrap(), "ABCD").await;
    assert_eq!(
        told(&events),
        ["started", "text 0: AB", "text 0: CD", "cancelled"]
    );
    let stored = rig.stored();
    assert_eq!(
        stored_lines(&stored),
        ["created: hi", "user: hi", "assistant: ABCD (Cancelled)"]
    );
    let SessionEventKind::AssistantMessage { status, .. } = &stored[2].kind else {
        panic!("{stored:?}");
    };
    assert_eq!(*status, MessageStatus::Incomplete);

    rig.provider.queue([text("on"), done()]);
    rig.send("go on").await;
    let expected = ["user: hi", "assistant: ABCD", NOTE, "user: go on"];
    assert_eq!(said(&rig.request(2)), expected);
    rig.reopen().await;
    rig.provider.queue([text("again"), done()]);
    rig.send("and now").await;
    assert_eq!(said(&rig.request(3))[..4], expected);
    assert_eq!(
        said(&rig.request(3))[4..],
        ["assistant: on", "user: and now"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_without_words_leaves_no_blank_message() {
    // A3
    let nothing_said = [
        text("\n\n"),
        reasoning("hm"),
        text(""),
        text(" \u{3000}\t"),
        reasoning("\n"),
    ];
    for first in nothing_said {
        let description = format!("{first:?}");
        let mut rig = Rig::new(provider().reply([first, wait()])).await;
        let turn = rig.session.send("hi").unwrap();
        rig.provider.asked(1).await;
        tokio::task::yield_now().await;
        assert!(turn.cancel());
        let events = collect(turn).await;
        assert_event_invariants(&events);
        assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");

        rig.provider.queue([text("ok"), done()]);
        rig.send("next").await;
        let expected = ["user: hi", NOTE, "user: next"];
        assert_eq!(said(&rig.request(2)), expected, "{description}");
        rig.reopen().await;
        rig.provider.queue([text("ok"), done()]);
        rig.send("more").await;
        assert_eq!(said(&rig.request(3))[..3], expected, "{description}");
        assert!(
            !stored_lines(&rig.stored())
                .iter()
                .any(|line| line.trim_end() == "assistant:"),
            "{description}: {:?}",
            rig.stored()
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_the_first_token_ends_the_turn_at_once() {
    // A6, A16
    for silent in [wait(), until_cancelled()] {
        let rig = Rig::new(provider().reply([silent])).await;
        let turn = rig.session.send("hi").unwrap();
        rig.provider.asked(1).await;
        let began = Instant::now();
        assert!(turn.cancel());
        let events = collect(turn).await;
        assert!(began.elapsed() < Duration::from_millis(500));
        assert_eq!(told(&events), ["started", "cancelled"]);
        assert_eq!(rig.provider.streams_open(), 0, "the stream is dropped");
        assert_eq!(rig.provider.cancelled(), 1, "the provider's token fired");
        assert_eq!(
            stored_lines(&rig.stored()),
            ["created: hi", "user: hi", "interrupted: Cancelled"]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_right_after_the_send_asks_no_model() {
    let rig = Rig::new(provider()).await;
    let turn = rig.session.send("hi").unwrap();
    assert!(turn.cancel());
    let events = collect(turn).await;
    assert_eq!(told(&events), ["started", "cancelled"]);
    assert_eq!(rig.provider.request_count(), 0);
    rig.epilogue().await;
}

/// A provider whose `chat` never answers.
struct Deaf(Gate);

#[async_trait]
impl ModelProvider for Deaf {
    fn id(&self) -> &str {
        "deaf"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![text_model("deaf-1")]
    }

    async fn chat(
        &self,
        _request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        self.0.pass().await;
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_gives_a_stream_can_be_cancelled() {
    // A6
    let asked = Gate::opened();
    let agent = AgentBuilder::new(AgentConfig::new("deaf-1"))
        .provider(Deaf(asked.clone()))
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let turn = session.send("hi").unwrap();
    asked.arrived(1).await;
    let began = Instant::now();
    assert!(turn.cancel());
    assert_eq!(told(&collect(turn).await), ["started", "cancelled"]);
    assert!(began.elapsed() < Duration::from_millis(500));
}

/// A provider that fires the token it was given and answers all the same.
struct Meddler;

#[async_trait]
impl ModelProvider for Meddler {
    fn id(&self) -> &str {
        "meddler"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![text_model("meddler-1")]
    }

    async fn chat(
        &self,
        _request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        cancel.cancel();
        let answer = [ChatEvent::text("hello"), ChatEvent::done()];
        Ok(ChatEvent::stream(answer))
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_cannot_cancel_the_turn() {
    let agent = AgentBuilder::new(AgentConfig::new("meddler-1"))
        .provider(Meddler)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let events = collect(session.send("hi").unwrap()).await;
    assert_eq!(
        told(&events),
        ["started", "text 0: hello", "completed: hello"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_cancel_for_an_old_turn_changes_nothing_and_says_so() {
    // A9
    let rig = Rig::new(
        provider()
            .reply([text("one"), done()])
            .reply([text("two"), wait()]),
    )
    .await;
    let first = rig.session.send("1").unwrap();
    let first_id = first.id().to_owned();
    collect(first).await;
    let second = rig.session.send("2").unwrap();
    rig.provider.asked(2).await;

    assert!(!rig.session.cancel(Some(&first_id)));
    assert!(!rig.agent.turn(&first_id).unwrap().cancel());
    assert!(!rig.session.cancel(Some("no-such-turn")));
    assert!(!rig.session.cancel(Some("")));
    assert_eq!(rig.session.info().state, SessionState::Running);
    assert_eq!(rig.session.info().turn_id.as_deref(), Some(second.id()));

    assert!(
        rig.session.cancel(None),
        "without an id the running turn is meant"
    );
    assert_eq!(second.outcome().await.status, TurnStatus::Cancelled);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_idle_does_nothing_to_the_next_turn() {
    // A10
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    assert!(!rig.session.cancel(None));
    let events = rig.send("hi").await;
    assert_eq!(told(&events), ["started", "text 0: ok", "completed: ok"]);
    assert!(!rig.session.cancel(None));
    assert!(!rig.session.cancel(Some(&events[0].turn_id)));
    let events = rig.send("again").await;
    assert_eq!(told(&events), ["started", "text 0: ok", "completed: ok"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_arrived_before_the_cancel_never_runs_and_says_so() {
    // Section 12: a call that arrived whole before its stream was cut.
    let tool = youyou_agent::testing::RecordingTool::mutating("mu_write");
    let log = tool.log().clone();
    let provider = provider().reply([text("A"), call("c1", "mu_write", "{}"), text("B"), wait()]);
    let mut rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = cancel_at(rig.session.send("hi").unwrap(), "AB").await;
    assert_eq!(
        told(&events),
        ["started", "text 0: A", "text 0: B", "cancelled"]
    );
    assert_eq!(log.order(), Vec::<String>::new());
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: hi",
            "user: hi",
            "assistant: A <c1 mu_write> B (Cancelled)",
            "result c1: [已取消] not executed",
        ]
    );
    let expected = [
        "user: hi",
        "assistant: A <c1 mu_write> B",
        "error c1: [已取消] not executed",
        NOTE,
        "user: next",
    ];
    rig.provider.queue([text("ok"), done()]);
    rig.send("next").await;
    assert_eq!(said(&rig.request(2)), expected);
    rig.reopen().await;
    rig.provider.queue([text("ok"), done()]);
    rig.send("more").await;
    assert_eq!(said(&rig.request(3))[..5], expected);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_note_is_never_streamed_nor_stored() {
    // A16
    let scripts = [
        vec![wait()],
        vec![text("part"), wait()],
        vec![reasoning("hm"), wait()],
    ];
    for script in scripts {
        let rig = Rig::new(provider().reply(script)).await;
        let turn = rig.session.send("hi").unwrap();
        rig.provider.asked(1).await;
        tokio::task::yield_now().await;
        assert!(turn.cancel());
        let mut events = collect(turn).await;
        rig.provider.queue([text("ok"), done()]);
        events.extend(rig.send("next").await);
        assert_event_invariants(&events);
        assert!(!text_of(&events).contains('['), "{events:?}");
        let stored = serde_json::to_string(&rig.stored()).unwrap();
        assert!(!stored.contains(Interruption::Cancelled.note()), "{stored}");
        let notes = said(&rig.request(rig.provider.request_count()));
        assert_eq!(notes.iter().filter(|line| *line == NOTE).count(), 1);
        rig.epilogue().await;
    }
}

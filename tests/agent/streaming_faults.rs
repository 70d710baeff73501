//! Chapters 3.1 and 10: providers with faults of their own.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{
    RecordingTool, assert_event_invariants, call, collect, done, error, panic_in_chat, panic_with,
    reasoning, refuse, text, text_model,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, ChatEvent, ChatRequest, ChatStream, ErrorOrigin, ModelInfo,
    ModelProvider, ProviderError, ProviderErrorKind, SessionConfig,
};

use crate::look::{assert_failed, warnings};
use crate::rig::{Rig, config, provider};
use crate::said::stored_lines;
use crate::told::told;

fn no_retries() -> AgentConfig {
    AgentConfig {
        max_retries: 0,
        ..config()
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_done_is_ignored_with_a_warning() {
    // E14
    let tool = RecordingTool::mutating("mu_write");
    let log = tool.log().clone();
    let tails = [
        vec![text("b"), call("c9", "mu_write", "{}"), done()],
        vec![done()],
        vec![error(ProviderErrorKind::Other, "too late")],
        vec![reasoning("b")],
    ];
    let rig = Rig::with(provider(), config(), |builder| builder.tool(tool)).await;
    for tail in tails {
        rig.provider
            .queue([text("a"), done()].into_iter().chain(tail));
        let events = rig.send("hi").await;
        let warnings = warnings(&events);
        assert_eq!(warnings.len(), 1, "{events:#?}");
        assert_eq!(warnings[0].0, ErrorOrigin::Provider);
        assert!(warnings[0].1.contains("\"scripted\""), "{warnings:?}");
        let told = told(&events);
        assert_eq!(told[1], "text 0: a");
        assert_eq!(told[3..], ["completed: a"]);
        assert_eq!(rig.provider.streams_open(), 0);
    }
    // A panic after the end is nobody's business any more, and silence is no fault at all.
    rig.provider
        .queue([text("a"), done(), panic_with("too late")]);
    rig.provider
        .queue([text("a"), done(), youyou_agent::testing::wait()]);
    for _ in 0..2 {
        let events = rig.send("hi").await;
        assert_eq!(told(&events), ["started", "text 0: a", "completed: a"]);
    }
    assert!(log.inputs().is_empty());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_or_refuses_fails_its_turn_and_nothing_else() {
    // E15
    let refusal = ProviderError::new(ProviderErrorKind::Auth, "the key is wrong");
    let scripts = [
        (vec![panic_in_chat("boom")], "boom", None),
        (
            vec![text("a"), panic_with("boom")],
            "boom",
            Some("assistant: a (Failed)"),
        ),
        (vec![panic_with("boom")], "boom", None),
        (vec![refuse(refusal)], "the key is wrong", None),
    ];
    let rig = Rig::with(provider(), no_retries(), |builder| builder).await;
    for (script, words, kept) in scripts {
        rig.provider.queue(script);
        let events = rig.send("hi").await;
        let failure = assert_failed(&events, youyou_agent::ErrorCode::ProviderError);
        assert_eq!(failure.origin, ErrorOrigin::Provider);
        assert!(failure.message.contains(words), "{failure}");
        assert!(failure.message.contains("scripted"), "{failure}");
        let lines = stored_lines(&rig.stored());
        assert_eq!(lines.last().unwrap(), kept.unwrap_or("interrupted: Failed"));
    }
    rig.epilogue().await;
}

/// A provider whose streams panic when they are dropped.
struct SoreLoser;

struct SoreStream(Vec<ChatEvent>);

impl futures_core::Stream for SoreStream {
    type Item = Result<ChatEvent, ProviderError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        match self.0.pop() {
            Some(event) => std::task::Poll::Ready(Some(Ok(event))),
            None => std::task::Poll::Pending,
        }
    }
}

impl Drop for SoreStream {
    fn drop(&mut self) {
        panic!("a sore loser");
    }
}

#[async_trait]
impl ModelProvider for SoreLoser {
    fn id(&self) -> &str {
        "sore"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![text_model("sore-1")]
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let mut events = vec![ChatEvent::text("shown")];
        if request.messages.len() > 1 {
            events.insert(0, ChatEvent::done());
        }
        Ok(Box::pin(SoreStream(events)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_panics_when_it_is_dropped_loses_nothing() {
    // E15: also in code of the provider that nobody calls by name.
    let storage = youyou_agent::testing::InMemorySessions::new();
    let agent = AgentBuilder::new(AgentConfig::new("sore-1"))
        .provider(SoreLoser)
        .session_storage(storage.clone())
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let events = crate::told::cancel_at(session.send("hi").unwrap(), "shown").await;
    assert_eq!(told(&events), ["started", "text 0: shown", "cancelled"]);
    let events = collect(session.send("again").unwrap()).await;
    assert_event_invariants(&events);
    assert_eq!(
        told(&events),
        ["started", "text 0: shown", "completed: shown"]
    );
    assert_eq!(
        stored_lines(&storage.events(session.id())),
        [
            "created: hi",
            "user: hi",
            "assistant: shown (Cancelled)",
            "user: again",
            "assistant: shown"
        ]
    );
}

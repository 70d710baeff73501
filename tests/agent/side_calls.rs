//! Calls beside the conversation, for a summary or for memories: whatever a model answers, they
//! end, in bounded memory and time, and the turn or the close goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{InMemoryMemories, done, text, text_model};
use youyou_agent::{
    AgentConfig, ChatEvent, ChatRequest, ChatStream, ModelInfo, ModelProvider, ProviderError,
    TurnStatus,
};

use crate::histories::{
    STORED, compacting, marked_turns, storage_with, summarised_by, turns_asked,
};
use crate::look::warnings;
use crate::memory::extractions;
use crate::rig::{Rig, config, provider, provider_with_window};
use crate::said::{said, stored_lines};
use crate::told::told;

/// What is read of an answer at most, in bytes.
const CAP: usize = 1024 * 1024;

/// A provider whose answer never ends.
#[derive(Clone)]
struct Endless {
    event: fn() -> ChatEvent,
    /// Before each event; zero means that the next one is always ready.
    pause: Duration,
    /// How many events it gave.
    given: Arc<AtomicUsize>,
}

impl Endless {
    fn of(event: fn() -> ChatEvent) -> Self {
        Self {
            event,
            pause: Duration::ZERO,
            given: Arc::default(),
        }
    }

    fn slow(pause: Duration) -> Self {
        let event = || ChatEvent::text("x");
        Self {
            pause,
            ..Self::of(event)
        }
    }

    fn given(&self) -> usize {
        self.given.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ModelProvider for Endless {
    fn id(&self) -> &str {
        "endless"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![text_model("endless")]
    }

    async fn chat(
        &self,
        _: ChatRequest,
        _: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let events = stream::unfold(self.clone(), async |this| {
            if !this.pause.is_zero() {
                tokio::time::sleep(this.pause).await;
            }
            this.given.fetch_add(1, Ordering::SeqCst);
            Some((Ok((this.event)()), this))
        });
        Ok(Box::pin(events))
    }
}

fn kibibytes(count: usize) -> String {
    "[".repeat(count * 1024)
}

/// Answers that never end, and how many of their events are read at most.
fn endless_answers() -> [(Endless, usize); 5] {
    let bytes = |count: usize| CAP / count + 1;
    [
        (
            Endless::of(|| ChatEvent::text(kibibytes(64))),
            bytes(64 * 1024),
        ),
        (
            Endless::of(|| ChatEvent::reasoning(kibibytes(64))),
            bytes(64 * 1024),
        ),
        (
            Endless::of(|| ChatEvent::tool_call("c", "t", kibibytes(64))),
            bytes(64 * 1024),
        ),
        (
            Endless::of(|| ChatEvent::Warning {
                message: kibibytes(64),
            }),
            bytes(64 * 1024),
        ),
        (Endless::of(|| ChatEvent::text("")), bytes(1)),
    ]
}

async fn remembering_by(endless: &Endless, memories: &InMemoryMemories) -> Rig {
    let settings = AgentConfig {
        memory_model: Some("endless".to_owned()),
        ..config()
    };
    let provider = provider().always(|_| [text("ok"), done()]);
    Rig::with(provider, settings, |builder| {
        builder
            .provider(endless.clone())
            .memory_storage(memories.clone())
    })
    .await
}

async fn summarised_by_endless(endless: &Endless) -> Rig {
    let settings = AgentConfig {
        compact_model: Some("endless".to_owned()),
        ..compacting()
    };
    let provider = provider_with_window(1_000).always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(10, 50));
    Rig::resumed(provider, settings, storage, STORED, |builder| {
        builder.provider(endless.clone())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn an_endless_answer_about_memories_ends_at_its_cap() {
    // X2
    for (endless, most) in endless_answers() {
        let memories = InMemoryMemories::new();
        let mut rig = remembering_by(&endless, &memories).await;
        rig.send("q").await;
        rig.reopen().await;
        assert!(memories.all().is_empty());
        assert!(endless.given() <= most, "{} > {most}", endless.given());
        let lines = stored_lines(&rig.stored());
        assert_eq!(lines, ["created: q", "user: q", "assistant: ok"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_summary_ends_at_its_cap_and_the_turn_goes_on() {
    // X2
    for (endless, most) in endless_answers() {
        let rig = summarised_by_endless(&endless).await;
        let events = rig.send("next").await;
        let lines = told(&events);
        assert!(
            lines[1].contains("longer than 1048576 bytes"),
            "told: {lines:?}"
        );
        assert_eq!(lines[2..], ["compacted", "text 0: ok", "completed: ok"]);
        assert!(endless.given() <= most, "{} > {most}", endless.given());
        assert_eq!(warnings(&events).len(), 1);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_endless_answer_about_memories_ends_at_its_time() {
    // X2
    let endless = Endless::slow(Duration::from_secs(1));
    let rig = remembering_by(&endless, &InMemoryMemories::new()).await;
    rig.send("q").await;
    let began = Instant::now();
    rig.session.close().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn a_slow_endless_summary_ends_at_its_time_and_the_turn_goes_on() {
    // X2
    let endless = Endless::slow(Duration::from_secs(1));
    let rig = summarised_by_endless(&endless).await;
    let began = Instant::now();
    let events = rig.send("next").await;
    let lines = told(&events);
    assert!(
        lines[1].contains("did not finish within 600000 ms"),
        "told: {lines:?}"
    );
    assert_eq!(lines[2..], ["compacted", "text 0: ok", "completed: ok"]);
    assert_eq!(began.elapsed(), Duration::from_secs(600));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_an_endless_summary_at_once() {
    // X2
    let endless = Endless::slow(Duration::from_secs(1));
    let rig = summarised_by_endless(&endless).await;
    let turn = rig.session.send("next").unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let began = Instant::now();
    assert!(turn.cancel());
    turn.outcome().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(endless.given(), 2);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_always_has_more_ready_lets_a_cancel_through() {
    // X2: on one thread, where nothing else runs while an answer is read without a pause.
    let endless = Endless::of(|| ChatEvent::text("x"));
    let rig = summarised_by_endless(&endless).await;
    let turn = rig.session.send("next").unwrap();
    while endless.given() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(turn.cancel());
    assert_eq!(turn.outcome().await.status, TurnStatus::Cancelled);
    assert!(endless.given() < CAP / 2, "{}", endless.given());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_of_brackets_about_memories_leave_a_shutdown_its_limit() {
    // X3: beyond the cap, and right below it.
    for length in [10 * 1024 * 1024, CAP - 1] {
        let memories = InMemoryMemories::new();
        let provider = crate::memory::extracting(move || vec![text("[".repeat(length)), done()]);
        let rig = Rig::with(provider, config(), |builder| {
            builder.memory_storage(memories.clone())
        })
        .await;
        rig.send("q").await;
        let began = Instant::now();
        let report = rig.agent.shutdown().await;
        assert!(began.elapsed() <= Duration::from_secs(5));
        assert_eq!(extractions(&rig.provider).len(), 1);
        assert!(memories.all().is_empty());
        let [problem] = &report.problems[..] else {
            panic!("{report:?}");
        };
        assert!(problem.contains("memories were not extracted"), "{problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_in_the_text_of_a_summary_are_no_part_of_it() {
    // P17
    for (pieces, summary) in [
        (vec!["<think>secret</think>SUMMARY"], "SUMMARY"),
        (
            vec!["<th", "ink>\nsecr", "et\n</thi", "nk>\n\nSUMMARY"],
            "SUMMARY",
        ),
        (
            vec!["<think>secret</think>A <thinking>secret</thinking>B"],
            "A B",
        ),
        (vec!["secret\n</think>\n\nSUMMARY"], "SUMMARY"),
        (vec!["SUMMARY\n<think>secret"], "SUMMARY"),
        (
            vec!["SUMMARY of `<think>` tags"],
            "SUMMARY of `<think>` tags",
        ),
    ] {
        let answer = pieces.clone();
        let provider = summarised_by(provider_with_window(1_000), move || {
            let deltas = answer.iter().map(|piece| text(*piece));
            deltas.chain([done()]).collect()
        });
        let provider = provider.always(|_| [text("ok"), done()]);
        let storage = storage_with(marked_turns(10, 50));
        let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
        rig.send("next").await;
        let first = said(turns_asked(&rig.provider).last().unwrap()).remove(0);
        assert!(first.ends_with(&format!("\n{summary}")), "{first}");
        assert!(!first.contains("secret"), "{first}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_of_thoughts_alone_is_none() {
    // P17
    let provider = summarised_by(provider_with_window(1_000), || {
        vec![text("<think>only thoughts"), done()]
    });
    let provider = provider.always(|_| [text("ok"), done()]);
    let storage = storage_with(marked_turns(10, 50));
    let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| builder).await;
    let lines = told(&rig.send("next").await);
    assert!(lines[1].contains("the summary is empty"), "{lines:?}");
    assert_eq!(lines[2..], ["compacted", "text 0: ok", "completed: ok"]);
    rig.epilogue().await;
}

//! What an extracting model is asked, which model that is, and how much of its window it takes.

use youyou_agent::testing::{InMemoryMemories, ScriptedProvider, done, memory, text, text_model};
use youyou_agent::{AgentConfig, ContentBlock, ModelInfo};

use crate::compaction_limits::picture;
use crate::look::system;
use crate::memory::{answering, contents, extractions, remembering};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::all_said;

#[tokio::test(start_paused = true)]
async fn the_extraction_uses_its_own_model_and_leaves_it_room() {
    let small = ModelInfo {
        context_window: 2_000,
        ..text_model("small")
    };
    let extractor = ScriptedProvider::new("other")
        .model(small)
        .always(|_| [text(r#"[{"content":"x"}]"#), done()]);
    let memories = InMemoryMemories::new();
    memories.preload((0..200).map(|n| memory(&format!("m{n}"), "", &"known ".repeat(30))));
    let settings = AgentConfig {
        memory_model: Some("small".to_owned()),
        ..config()
    };
    let registered = extractor.clone();
    let mut rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        settings,
        |builder| {
            builder
                .memory_storage(memories.clone())
                .provider(registered)
        },
    )
    .await;
    rig.send(vec![picture(), ContentBlock::text("字".repeat(3_000))])
        .await;
    rig.send("x".repeat(20_000).as_str()).await;
    rig.send("the last word").await;
    rig.reopen().await;
    let request = extractor.last_request().unwrap();
    let system: String = request
        .system
        .iter()
        .map(|block| block.text.to_string())
        .collect();
    let whole = format!("{system}{}", all_said(&request));
    let quarters: usize = whole
        .chars()
        .map(|c| if c.is_ascii() { 1 } else { 4 })
        .sum();
    assert!(
        quarters / 4 <= 1_400 + 50,
        "at most 70 % of the window: {}",
        quarters / 4
    );
    assert!(whole.contains("the last word"));
    assert!(
        whole.contains("- id m"),
        "known memories are shown with their ids"
    );
    assert!(request.tools.is_empty());
    assert!(contents(&memories).contains(&"x".to_owned()));
    extractor.fall_back(|_| [text("[]"), done()]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_extraction_fills_seventy_percent_of_the_window_and_no_more() {
    for known in [0, 1_000] {
        let window = 20_000;
        let model = ModelInfo {
            context_window: window,
            ..text_model("small")
        };
        let extractor = ScriptedProvider::new("other")
            .model(model)
            .always(|_| [text("[]"), done()]);
        let memories = InMemoryMemories::new();
        memories.preload((0..known).map(|n| memory(&format!("m{n}"), "", &"known ".repeat(10))));
        let settings = AgentConfig {
            memory_model: Some("small".to_owned()),
            memory_checkpoint_interval: 1_000,
            ..config()
        };
        let registered = extractor.clone();
        let mut rig = Rig::with(
            provider().always(|_| [text("ok"), done()]),
            settings,
            |builder| builder.memory_storage(memories).provider(registered),
        )
        .await;
        for _ in 0..200 {
            rig.send("word ".repeat(100).as_str()).await;
        }
        rig.reopen().await;
        let request = extractor.last_request().unwrap();
        let whole = format!("{}{}", system(&request), all_said(&request));
        let percent = whole.len() as f64 / 4.0 / f64::from(window) * 100.0;
        assert!((67.0..=70.0).contains(&percent), "{percent} %");
        extractor.fall_back(|_| [text("[]"), done()]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_memory_of_any_length_keeps_no_other_out_of_the_request() {
    let memories = InMemoryMemories::new();
    memories.preload([
        memory("m1", "", &"long ".repeat(1_000_000)),
        memory("m2", "", "likes tea"),
    ]);
    let mut rig = remembering(answering("[]"), memories).await;
    rig.send("q").await;
    rig.reopen().await;
    let asked = all_said(&extractions(&rig.provider)[0]);
    assert!(asked.contains("- id m2: likes tea"));
    assert!(!asked.contains("- id m1"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_memory_model_that_is_gone_is_replaced_by_that_of_the_session() {
    let extractor = ScriptedProvider::new("other").model(text_model("small"));
    let settings = AgentConfig {
        memory_model: Some("small".to_owned()),
        ..config()
    };
    let registered = extractor.clone();
    let memories = InMemoryMemories::new();
    let mut rig = Rig::with(answering(r#"[{"content":"x"}]"#), settings, |builder| {
        builder
            .memory_storage(memories.clone())
            .provider(registered)
    })
    .await;
    rig.send("q").await;
    assert!(extractor.remove_model("small"));
    rig.reopen().await;
    assert_eq!(contents(&memories), ["x"]);
    assert_eq!(&*extractions(&rig.provider)[0].model_id, MODEL);
    rig.epilogue().await;
}

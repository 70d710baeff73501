//! Chapter 5.2: what a request is estimated to cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use youyou_agent::testing::{RecordingTool, done, done_with, error, kinds, text};
use youyou_agent::{
    AgentConfig, HookOutcome, ProviderErrorKind, TurnStart, TurnStartChange, Usage,
};

use crate::probe::Probe;
use crate::rig::{Rig, config, provider, provider_with_window};
use crate::said::said;

#[tokio::test(start_paused = true)]
async fn the_estimate_counts_quarters_of_a_token_by_the_kind_of_character() {
    // C13
    let cases = [
        ("x".repeat(4_000), 1_000),
        ("é".repeat(4_000), 1_000),
        ("Ж".repeat(4_000), 1_000),
        ("频".repeat(1_000), 1_000),
        ("，。".repeat(500), 1_000),
        ("ひら".repeat(500), 1_000),
        ("ｶﾅ".repeat(500), 1_000),
        ("한글".repeat(500), 1_000),
        ("Ａ１".repeat(500), 1_000),
        ("😀⏰⭐⌚".repeat(250), 1_000),
        ("𠮷𪚥".repeat(500), 1_000),
        (format!("{}{}", "中".repeat(500), "a".repeat(2_000)), 1_000),
    ];
    for (message, tokens) in cases {
        let rig = Rig::new(provider().always(|_| [text("okay"), done()])).await;
        rig.send("base").await;
        let base = rig.session.info().context_tokens;
        rig.send(message.as_str()).await;
        let cost = rig.session.info().context_tokens - base;
        let excerpt: String = message.chars().take(4).collect();
        assert_eq!(cost, tokens + 1, "{excerpt}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_and_tools_are_part_of_the_estimate() {
    let settings = AgentConfig {
        system_instructions: vec!["x".repeat(40_000)],
        tool_definitions_in_prompt: false,
        ..config()
    };
    let tool = RecordingTool::read_only("t").parameters(json!({
        "type": "object", "description": "y".repeat(20_000)
    }));
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, settings, |builder| builder.tool(tool)).await;
    rig.send("hi").await;
    let tokens = rig.session.info().context_tokens;
    assert!((15_000..15_200).contains(&tokens), "{tokens}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_counted_replaces_the_estimate_of_the_same() {
    let counted = |tokens| Usage {
        input_tokens: Some(tokens),
        ..Usage::default()
    };
    let provider = provider()
        .reply([text("okay"), done_with(counted(5_000), None)])
        .reply([text("okay"), done()])
        .reply([text("okay"), done_with(counted(0), None)]);
    let rig = Rig::new(provider).await;
    rig.send("hi").await;
    assert_eq!(
        rig.session.info().context_tokens,
        5_001,
        "the answer is estimated"
    );
    rig.send("x".repeat(400).as_str()).await;
    assert_eq!(
        rig.session.info().context_tokens,
        5_102,
        "what is new is estimated"
    );
    rig.send("x".repeat(400).as_str()).await;
    assert_eq!(
        rig.session.info().context_tokens,
        5_203,
        "nothing counted is no count"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_counted_outlives_a_section_that_changes_with_every_turn() {
    let counted = Usage {
        input_tokens: Some(5_000),
        ..Usage::default()
    };
    let provider = provider()
        .reply([text("okay"), done_with(counted, None)])
        .always(|_| [text("okay"), done()]);
    let turns = Arc::new(AtomicUsize::new(0));
    let lengths = [400, 800, 0];
    let plugin = Probe::tapping("p", move |hooks| {
        let turns = Arc::clone(&turns);
        hooks.turn_start("t", move |_: TurnStart| {
            let turn = turns.fetch_add(1, Ordering::Relaxed);
            let section = "s".repeat(lengths.get(turn).copied().unwrap_or(0));
            async move {
                Ok(HookOutcome::ContinueWith(TurnStartChange {
                    user_input: None,
                    prompt_sections: vec![section],
                }))
            }
        });
    });
    let rig = Rig::with(provider, config(), |builder| builder.plugin(plugin)).await;
    for expected in [5_001, 5_103, 4_905] {
        rig.send("x".repeat(4).as_str()).await;
        assert_eq!(rig.session.info().context_tokens, expected);
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_counts_more_than_the_estimate_is_believed() {
    // C13: one token a character, four times the estimate
    let provider = provider_with_window(8_000).always(|request| {
        let characters: usize = said(request).iter().map(String::len).sum();
        if characters > 8_000 {
            return [
                error(ProviderErrorKind::ContextLengthExceeded, "too long"),
                done(),
            ];
        }
        let counted = Usage {
            input_tokens: Some(characters as u64),
            ..Usage::default()
        };
        [text("ok"), done_with(counted, None)]
    });
    let rig = Rig::with(provider, config(), |builder| builder).await;
    for _ in 0..30 {
        let events = rig.send("x".repeat(400)).await;
        assert!(!kinds(&events).contains(&"error"));
    }
    let sizes = rig.provider.requests();
    let oversized = sizes
        .iter()
        .filter(|request| said(request).iter().map(String::len).sum::<usize>() > 8_000)
        .count();
    assert_eq!(oversized, 0);
    rig.epilogue().await;
}

//! What of a model's answer becomes a memory.

use youyou_agent::testing::{InMemoryMemories, ScriptedProvider, memory};
use youyou_agent::{AgentConfig, Memory};

use crate::memory::{answering, contents, extractions, remembering};
use crate::rig::{Rig, config};

/// Closes the session after a turn, and answers what was remembered then. The session goes
/// through the epilogue after that.
async fn remembered(provider: ScriptedProvider) -> Vec<String> {
    let memories = InMemoryMemories::new();
    let mut rig = remembering(provider, memories.clone()).await;
    rig.send("remember me").await;
    rig.reopen().await;
    assert_eq!(extractions(&rig.provider).len(), 1);
    let contents = contents(&memories);
    rig.epilogue().await;
    contents
}

#[tokio::test(start_paused = true)]
async fn memories_are_found_in_an_answer_whatever_is_around_them() {
    // G17
    for answer in [
        r#"[{"content":"tea"}]"#,
        r#"{"memories":[{"content":"tea"}]}"#,
        "```json\n[{\"content\":\"tea\"}]\n```",
        "```\n{\"memories\": [{\"content\": \"tea\"}]}\n```",
        r#"<think>{x}</think>[{"content":"tea"}]"#,
        r#"<think>maybe [{"content":"coffee"}] or []</think>[{"content":"tea"}]"#,
        "<thinking>\n[{\"content\":\"coffee\"}]\n</thinking>\n[{\"content\":\"tea\"}]",
        r#"about {travel}: {"memories":[{"content":"tea"}]}"#,
        r#"Sure! The list [see below] is {"memories":[{"content":"tea"}]} as you asked {:-)}"#,
        r#"I started from [] and {} and [1, 2] and [{"x":1}]: [{"content":"tea"}]"#,
        r#"答案如下：[{"content":"tea","tags":["喝"]}]。"#,
        "\u{feff}[{\"content\":\"tea\"}]",
        "first [{\"content\":\"coffee\"}]\n</think>\n\n[{\"content\":\"tea\"}]",
        "<think>[]</think>[{\"content\":\"tea\"}]<think>[{\"content\":\"coffee\"}]</think>",
        r#"[["coffee"],{"content":"tea"}]"#,
        r#"{"result":{"memories":[{"content":"tea"}]}}"#,
    ] {
        assert_eq!(remembered(answering(answer)).await, ["tea"], "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_memories_stores_nothing_and_closes_normally() {
    // G17
    for answer in [
        "",
        "nothing to remember",
        "[]",
        r#"{"memories":[]}"#,
        r#"{"memories":null}"#,
        r#"{"memories":"tea"}"#,
        r#"[{"content":"tea"},{"content":"cof"#,
        r#"[{"content":"tea","tags":[]},{"content":"cof"#,
        r#"{"memories":[{"content":"tea","tags":["a"]},"#,
        r#"["tea", "coffee"]"#,
        r#"[[[[[[[["#,
        r#"{"content":"tea"}"#,
        "[{]}",
    ] {
        assert_eq!(
            remembered(answering(answer)).await,
            Vec::<String>::new(),
            "{answer}"
        );
    }
    let deep: &'static str = "[".repeat(200_000).leak();
    assert_eq!(remembered(answering(deep)).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_bad_item_is_skipped_alone() {
    // G18
    let long = "x".repeat(10_000);
    let bad = [
        r#"{"content":""}"#.to_owned(),
        r#"{"content":" \n"}"#.to_owned(),
        r#"{"content":5}"#.to_owned(),
        r#"{"content":null}"#.to_owned(),
        r#"{"content":["tea"]}"#.to_owned(),
        r#"{"text":"tea"}"#.to_owned(),
        r#""tea""#.to_owned(),
        "null".to_owned(),
        "7".to_owned(),
        format!(r#"{{"content":"{long}"}}"#),
        r#"{"content":"EXAMPLE: the user prefers short answers","tags":["style"]}"#.to_owned(),
        r#"{"content":"example: The user prefers short answers."}"#.to_owned(),
        r#"{"content":"tags","tags":"one"}"#.to_owned(),
        r#"{"content":"tags","tags":[1]}"#.to_owned(),
        r#"{"content":"id","id":5}"#.to_owned(),
    ];
    for item in &bad {
        for answer in [
            format!(r#"[{item},{{"content":"good"}}]"#),
            format!(r#"[{{"content":"good"}},{item}]"#),
        ] {
            let answer: &'static str = answer.leak();
            assert_eq!(remembered(answering(answer)).await, ["good"], "{item}");
        }
    }
    let all: &'static str = format!(r#"[{},{{"content":"good"}}]"#, bad.join(",")).leak();
    assert_eq!(remembered(answering(all)).await, ["good"]);
}

#[tokio::test(start_paused = true)]
async fn tags_are_few_and_short() {
    let tags: Vec<String> = (0..50).map(|n| format!("\"tag {n}\"")).collect();
    let long = "t".repeat(500);
    let answer: &'static str = format!(
        r#"[{{"content":"good","tags":["{long}"," ",{}]}}]"#,
        tags.join(",")
    )
    .leak();
    let memories = InMemoryMemories::new();
    let mut rig = remembering(answering(answer), memories.clone()).await;
    rig.send("q").await;
    rig.reopen().await;
    let tags = memories.all().remove(0).tags;
    assert_eq!(tags.len(), 10);
    assert_eq!(tags[0], "tag 0");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_id_updates_only_a_memory_of_its_own_namespace() {
    // G20
    let memories = InMemoryMemories::new();
    memories.preload([
        memory("m1", "A", "old one"),
        memory("m2", "B", "of another"),
    ]);
    let answer = r#"[
        {"id":"m1","content":"new one","tags":["t"]},
        {"id":"m2","content":"two"},
        {"id":"new-1","content":"three"},
        {"id":"","content":"four"},
        {"id":" ","content":"five"}
    ]"#;
    let settings = AgentConfig {
        memory_namespace: Some("A".to_owned()),
        ..config()
    };
    let mut rig = Rig::with(answering(answer), settings, |builder| {
        builder.memory_storage(memories.clone())
    })
    .await;
    let session_id = rig.session.id().to_owned();
    rig.send("q").await;
    rig.reopen().await;
    let all = memories.all();
    let of = |id: &str| all.iter().find(|memory| memory.id == id).unwrap();
    assert_eq!(*of("m2"), memory("m2", "B", "of another"));
    assert_eq!(of("m1").content, "new one");
    assert_eq!(of("m1").tags, ["t"]);
    assert_eq!(of("m1").created_at, 0);
    assert!(of("m1").updated_at > 0);
    assert_eq!(of("m1").source, session_id);
    let fresh: Vec<&Memory> = all
        .iter()
        .filter(|memory| !["m1", "m2"].contains(&memory.id.as_str()))
        .collect();
    assert_eq!(fresh.len(), 4);
    for memory in fresh {
        assert_eq!(memory.namespace, "A");
        assert!(memory.id.len() >= 32, "a fresh id: {}", memory.id);
        assert!(["two", "three", "four", "five"].contains(&memory.content.as_str()));
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn known_content_only_touches_the_time() {
    let memories = InMemoryMemories::new();
    memories.preload([memory("m1", "", "tea"), memory("m2", "", "coffee")]);
    let answer = r#"[
        {"content":" tea ","tags":["new"]},
        {"id":"m2","content":"tea"},
        {"content":"milk"},
        {"content":"milk"}
    ]"#;
    let mut rig = remembering(answering(answer), memories.clone()).await;
    rig.send("q").await;
    rig.reopen().await;
    assert_eq!(contents(&memories), ["coffee", "milk", "tea"]);
    let all = memories.all();
    let tea = all.iter().find(|memory| memory.id == "m1").unwrap();
    assert!(tea.updated_at > 0);
    assert_eq!(tea.tags, Vec::<String>::new());
    let coffee = all.iter().find(|memory| memory.id == "m2").unwrap();
    assert_eq!(*coffee, memory("m2", "", "coffee"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn control_characters_are_replaced_in_memories_and_tags() {
    let answer = r#"[
        {"content":"tea\u0000 and\u001b[31m\tmilk\n","tags":["a\u0007b","\u0000"]},
        {"content":" \u0000\u0001 "}
    ]"#;
    let memories = InMemoryMemories::new();
    let mut rig = remembering(answering(answer), memories.clone()).await;
    rig.send("q").await;
    rig.reopen().await;
    let all = memories.all();
    assert_eq!(contents(&memories), ["tea\u{fffd} and\u{fffd}[31m\tmilk"]);
    assert_eq!(all[0].tags, ["a\u{fffd}b"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn one_answer_makes_at_most_a_hundred_memories() {
    let items: Vec<String> = (0..300)
        .map(|n| format!(r#"{{"content":"fact {n}"}}"#))
        .collect();
    let answer: &'static str = format!("[{}]", items.join(",")).leak();
    let found = remembered(answering(answer)).await;
    assert_eq!(found.len(), 100);
    assert!(found.contains(&"fact 99".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_id_of_any_length_makes_a_new_memory_with_a_short_one() {
    let answer: &'static str =
        format!(r#"[{{"id":"{}","content":"tea"}}]"#, "m".repeat(100_000)).leak();
    let memories = InMemoryMemories::new();
    let mut rig = remembering(answering(answer), memories.clone()).await;
    rig.send("q").await;
    rig.reopen().await;
    let ids: Vec<usize> = memories
        .all()
        .iter()
        .map(|memory| memory.id.len())
        .collect();
    assert_eq!(ids, [36]);
    rig.epilogue().await;
}

//! Memories: when they are searched, and what of them the system prompt shows.

use std::num::NonZeroUsize;
use std::sync::Arc;

use youyou_agent::testing::{
    FaultyMemories, InMemoryMemories, MemoryOperation, ScriptedProvider, Step, done, memory, text,
    user_message,
};
use youyou_agent::{AgentConfig, ChatRequest, ContentBlock, Memory, MemoryStorage, SessionConfig};

use crate::histories::{STORED, compacting, marked_turns, storage_with, well_summarised};
use crate::rig::{Rig, config, provider};
use crate::said::{all_said, stored_lines};

fn extracts(request: &ChatRequest) -> bool {
    request
        .system
        .first()
        .is_some_and(|block| block.text.contains("worth remembering"))
}

/// Every extraction gets this answer; everything else is answered with "ok".
pub(crate) fn extracting(
    answer: impl Fn() -> Vec<Step> + Send + Sync + 'static,
) -> ScriptedProvider {
    provider()
        .intercept(move |request| extracts(request).then(&answer))
        .always(|_| [text("ok"), done()])
}

pub(crate) fn answering(answer: &'static str) -> ScriptedProvider {
    extracting(move || vec![text(answer), done()])
}

pub(crate) fn extractions(provider: &ScriptedProvider) -> Vec<Arc<ChatRequest>> {
    let mut requests = provider.requests();
    requests.retain(|request| extracts(request));
    requests
}

pub(crate) async fn remembering(provider: ScriptedProvider, memories: impl MemoryStorage) -> Rig {
    Rig::with(provider, config(), |builder| {
        builder.memory_storage(memories)
    })
    .await
}

pub(crate) fn contents(memories: &InMemoryMemories) -> Vec<String> {
    let mut contents: Vec<String> = memories
        .all()
        .into_iter()
        .map(|memory| memory.content)
        .collect();
    contents.sort();
    contents
}

#[tokio::test(start_paused = true)]
async fn a_session_may_name_its_own_namespace_and_keeps_it() {
    let memories = InMemoryMemories::new();
    memories.preload([
        memory("m1", "own", "likes green tea"),
        memory("m2", "", "likes tea"),
    ]);
    let settings = AgentConfig {
        memory_namespace: Some("agents".to_owned()),
        ..config()
    };
    let mut rig = Rig::with(answering(r#"[{"content":"new"}]"#), settings, |builder| {
        builder.memory_storage(memories.clone())
    })
    .await;
    rig.session.close().await.unwrap();
    let own = SessionConfig {
        memory_namespace: Some("own".to_owned()),
        ..SessionConfig::default()
    };
    rig.session = rig.agent.create_session(own).await.unwrap();
    for _ in 0..2 {
        rig.send("which tea?").await;
        let system: String = rig
            .provider
            .last_request()
            .unwrap()
            .system
            .iter()
            .map(|block| block.text.to_string())
            .collect();
        assert!(system.contains("likes green tea"));
        assert!(!system.contains("likes tea"));
        rig.reopen().await;
    }
    let own: Vec<Memory> = memories
        .all()
        .into_iter()
        .filter(|memory| memory.namespace == "own")
        .collect();
    assert_eq!(own.len(), 2);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_message_finds_the_memories_and_they_stay_for_the_session() {
    let memories = FaultyMemories::new(InMemoryMemories::new());
    memories.inner().preload([
        memory("m1", "", "喜欢龙井茶"),
        memory("m2", "", "喜欢龙井茶"),
        memory("m3", "", "住在杭州"),
    ]);
    let faults = memories.faults().clone();
    let mut rig = remembering(answering("[]"), memories).await;
    assert_eq!(
        faults.count(MemoryOperation::Search),
        0,
        "not before the first message"
    );
    rig.send(vec![
        ContentBlock::text("龙井茶好喝吗"),
        ContentBlock::file("茶.txt", "泡茶"),
    ])
    .await;
    rig.send("杭州呢").await;
    let calls = faults.calls();
    let searches = calls
        .iter()
        .filter(|call| call.operation == MemoryOperation::Search);
    assert_eq!(searches.count(), 1, "once per session");
    let first = rig.request(1);
    let system: String = first
        .system
        .iter()
        .map(|block| block.text.to_string())
        .collect();
    assert_eq!(
        system.matches("喜欢龙井茶").count(),
        1,
        "without doubles: {system}"
    );
    assert!(!system.contains("住在杭州"));
    assert_eq!(first.system, rig.request(2).system, "the set stays");
    rig.reopen().await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_message_of_the_session_is_the_query_after_a_compaction_too() {
    let memories = InMemoryMemories::new();
    memories.preload([
        memory("m1", "", "about dragons"),
        memory("m2", "", "about newts"),
    ]);
    let mut history = vec![user_message(0, "tell me of dragons")];
    history.extend(marked_turns(20, 50));
    let provider = well_summarised(provider()).always(|_| [text("[]"), done()]);
    let mut rig = Rig::resumed(
        provider,
        compacting(),
        storage_with(history),
        STORED,
        |builder| builder.memory_storage(memories),
    )
    .await;
    rig.session.compact().await.unwrap();
    rig.reopen().await;
    rig.send("and of newts").await;
    let request = rig.provider.last_request().unwrap();
    let system: String = request
        .system
        .iter()
        .map(|block| block.text.to_string())
        .collect();
    assert!(system.contains("about dragons"), "{system}");
    assert!(!system.contains("about newts"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_memories_than_configured_and_none_of_elsewhere() {
    // A storage that ignores namespace and limit.
    struct Careless(InMemoryMemories);

    #[async_trait::async_trait]
    impl MemoryStorage for Careless {
        async fn load(&self, _: &str) -> Result<Vec<Memory>, youyou_agent::StorageError> {
            Ok(self.0.all())
        }

        async fn upsert(&self, memory: Memory) -> Result<(), youyou_agent::StorageError> {
            self.0.upsert(memory).await
        }

        async fn delete(&self, _: &str, id: &str) -> Result<bool, youyou_agent::StorageError> {
            self.0.delete("", id).await
        }

        async fn search(
            &self,
            _: &str,
            _: &str,
            _: NonZeroUsize,
        ) -> Result<Vec<Memory>, youyou_agent::StorageError> {
            Ok(self.0.all())
        }
    }

    for items in [0, 1, 3] {
        let memories = InMemoryMemories::new();
        memories.preload((0..10).map(|n| memory(&format!("m{n}"), "", &format!("fact {n};"))));
        memories.preload([memory("a", "other", "foreign fact;"), memory("b", "", " ")]);
        let settings = AgentConfig {
            memory_max_items: items,
            ..config()
        };
        let provider = answering(r#"[{"id":"a","content":"taken over"}]"#);
        let careless = Careless(memories.clone());
        let mut rig = Rig::with(provider, settings, |builder| {
            builder.memory_storage(careless)
        })
        .await;
        rig.send("facts").await;
        let request = rig.request(1);
        let system: String = request
            .system
            .iter()
            .map(|block| block.text.to_string())
            .collect();
        assert_eq!(system.matches("fact ").count(), items as usize, "{system}");
        assert!(!system.contains("foreign"));
        rig.reopen().await;
        assert!(!all_said(&extractions(&rig.provider)[0]).contains("foreign"));
        assert!(
            contents(&memories).contains(&"foreign fact;".to_owned()),
            "not overwritten"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_no_items_there_is_no_section_no_search_and_no_call_of_the_storage() {
    let memories = FaultyMemories::new(InMemoryMemories::new());
    memories.inner().preload([memory("m1", "", "likes tea")]);
    let faults = memories.faults().clone();
    let settings = AgentConfig {
        memory_max_items: 0,
        ..config()
    };
    let rig = Rig::with(answering("[]"), settings, |builder| {
        builder.memory_storage(memories)
    })
    .await;
    rig.send("which tea?").await;
    rig.send("and now?").await;
    assert_eq!(faults.calls(), []);
    let without = Rig::new(answering("[]")).await;
    without.send("which tea?").await;
    assert_eq!(rig.request(1).system, without.request(1).system);
    without.epilogue().await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_found_memory_of_any_length_is_cut_in_the_system_prompt() {
    let memories = InMemoryMemories::new();
    memories.preload([memory("m1", "", &format!("tea {}", "x".repeat(1_000_000)))]);
    let rig = remembering(answering("[]"), memories).await;
    rig.send("which tea?").await;
    let system = crate::look::system(&rig.request(1));
    assert!(system.contains("tea xxx"));
    assert!(system.len() < 10_000, "{}", system.len());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_storage_may_be_shared() {
    let memories: Arc<dyn MemoryStorage> = Arc::new(InMemoryMemories::new());
    let mut rig = remembering(answering(r#"[{"content":"tea"}]"#), Arc::clone(&memories)).await;
    rig.send("q").await;
    rig.reopen().await;
    assert_eq!(memories.load("").await.unwrap().len(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_memory_storage_there_is_no_memory() {
    let mut rig = Rig::new(answering("[]")).await;
    rig.send("q").await;
    rig.reopen().await;
    assert_eq!(extractions(&rig.provider).len(), 0);
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: q", "user: q", "assistant: ok"]
    );
    rig.epilogue().await;
}

//! The storages of the kit are whole, behind faults that do not happen and through JSON too.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use youyou_agent::testing::{
    FaultyMemories, FaultySessions, InMemoryMemories, InMemorySessions, memory_storage_conformance,
    session_storage_conformance, session_storage_durability, session_storage_skips_unreadable,
    session_storage_two_writers,
};
use youyou_agent::{
    ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError,
};

// D9, D11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_in_memory_are_whole() {
    session_storage_conformance(async || InMemorySessions::new()).await;
    session_storage_conformance(async || FaultySessions::new(InMemorySessions::new())).await;
    let shared = InMemorySessions::new();
    session_storage_durability(async || shared.clone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_in_memory_are_whole() {
    memory_storage_conformance(async || InMemoryMemories::new()).await;
    memory_storage_conformance(async || FaultyMemories::new(InMemoryMemories::new())).await;
}

// D19
#[tokio::test]
async fn unreadable_records_are_skipped() {
    let storage = InMemorySessions::new();
    session_storage_skips_unreadable(&storage, async |session_id, index| {
        assert!(storage.corrupt(session_id, index));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_of_one_store_in_memory_never_replace_what_the_other_wrote() {
    let store = InMemorySessions::new();
    session_storage_two_writers(async || store.another_writer()).await;
}

/// Writes what the JSON of an event says, as a real storage does, and leaves to the trait
/// what the trait can do.
#[derive(Default)]
struct JsonSessions(InMemorySessions);

#[async_trait]
impl SessionStorage for JsonSessions {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let json = serde_json::to_string(events)?;
        let events: Vec<SessionEvent> = serde_json::from_str(&json)?;
        self.0.append(session_id, &events).await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        self.0.load(session_id).await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        self.0.summary(session_id).await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        self.0.list(cursor, limit).await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        self.0.find(query).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        self.0.rename(session_id, title).await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        self.0.delete(session_id).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_survive_their_json_and_the_defaults_of_the_trait_keep_its_rules() {
    session_storage_conformance(async || JsonSessions::default()).await;
}

//! The kit notices the faults that memory storages really have.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use youyou_agent::testing::{InMemoryMemories, memory_storage_conformance};
use youyou_agent::{Memory, MemoryStorage, StorageError};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    ForgetsTags,
    TouchesAll,
    TouchesNothing,
    OrdersById,
    MixesNamespaces,
    DeletesAnywhere,
    QueryAsPhrase,
    QueryAsSyntax,
    IgnoresLimit,
    WorstFirst,
}

struct Flawed {
    inner: InMemoryMemories,
    flaw: Flaw,
}

impl Flawed {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }
}

#[async_trait]
impl MemoryStorage for Flawed {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        let mut memories = self.inner.load(namespace).await?;
        if self.has(Flaw::OrdersById) {
            memories.sort_by(|a, b| a.id.cmp(&b.id));
        }
        if self.has(Flaw::MixesNamespaces) {
            memories = self.inner.all();
            memories.sort_by_key(|memory| std::cmp::Reverse(memory.updated_at));
        }
        Ok(memories)
    }

    async fn upsert(&self, mut memory: Memory) -> Result<(), StorageError> {
        if self.has(Flaw::ForgetsTags) {
            memory.tags.clear();
        }
        let known = self
            .inner
            .all()
            .into_iter()
            .find(|known| known.id == memory.id);
        if let Some(known) = known {
            if self.has(Flaw::TouchesNothing) && known.content == memory.content {
                return Ok(());
            }
            if self.has(Flaw::TouchesAll) {
                self.inner.delete(&known.namespace, &known.id).await?;
            }
        }
        self.inner.upsert(memory).await
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        let of_id = self.inner.all().into_iter().find(|known| known.id == id);
        match of_id {
            Some(known) if self.has(Flaw::DeletesAnywhere) => {
                self.inner.delete(&known.namespace, id).await
            }
            _ => self.inner.delete(namespace, id).await,
        }
    }

    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError> {
        if self.has(Flaw::QueryAsSyntax) && query.matches('"').count() % 2 == 1 {
            return Err(StorageError::new("fts5: syntax error"));
        }
        let limit = if self.has(Flaw::IgnoresLimit) {
            NonZeroUsize::MAX
        } else {
            limit
        };
        let mut found = self.inner.search(namespace, query, limit).await?;
        if self.has(Flaw::QueryAsPhrase) {
            found.retain(|memory| memory.content.contains(query));
        }
        if self.has(Flaw::WorstFirst) {
            found.reverse();
        }
        Ok(found)
    }
}

async fn verdict(flaw: Flaw) -> String {
    let fresh = move || async move {
        Flawed {
            inner: InMemoryMemories::new(),
            flaw,
        }
    };
    let run = tokio::spawn(async move { memory_storage_conformance(fresh).await });
    let Err(stopped) = run.await else {
        return format!("{flaw:?} passes the kit");
    };
    stopped
        .into_panic()
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_default()
}

#[tokio::test]
async fn each_flaw_is_found_and_its_rule_named() {
    let cases = [
        (Flaw::ForgetsTags, "comes back as it was written"),
        (Flaw::TouchesAll, "nothing but updated_at"),
        (Flaw::TouchesNothing, "nothing but updated_at"),
        (Flaw::OrdersById, "most recently updated first"),
        (Flaw::MixesNamespaces, "do not see each other"),
        (Flaw::DeletesAnywhere, "one memory of one namespace"),
        (Flaw::QueryAsPhrase, "shares a word"),
        (Flaw::QueryAsSyntax, "search takes any text"),
        (Flaw::IgnoresLimit, "at most `limit`"),
        (Flaw::WorstFirst, "fits best first"),
    ];
    for (flaw, rule) in cases {
        let verdict = verdict(flaw).await;
        assert!(
            verdict.starts_with("rule broken: ") && verdict.contains(rule),
            "{flaw:?} should break {rule:?}: {verdict}"
        );
    }
}

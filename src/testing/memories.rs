//! A memory storage in memory, with a ranking good enough for tests and small apps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::agent::contain::lock;
use crate::{Memory, MemoryStorage, StorageError};

/// A [`MemoryStorage`] in memory, whole in every rule. Copies share everything.
///
/// Memories are ranked by how many pieces of the query they hold: words, or pairs of
/// characters where a script writes no spaces.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
///
/// use youyou_agent::MemoryStorage as _;
/// use youyou_agent::testing::{InMemoryMemories, memory};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = InMemoryMemories::new();
/// storage.preload([memory("m1", "", "Likes green tea."), memory("m2", "", "住在杭州")]);
/// let found = storage.search("", "杭州的天气怎么样", NonZeroUsize::MIN).await?;
/// assert_eq!(found.len(), 1);
/// # Ok::<(), youyou_agent::StorageError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct InMemoryMemories(Arc<Mutex<BTreeMap<String, Memory>>>);

impl InMemoryMemories {
    /// An empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes memories at once, as [`upsert`](MemoryStorage::upsert) does.
    pub fn preload(&self, memories: impl IntoIterator<Item = Memory>) {
        let mut all = lock(&self.0);
        for memory in memories {
            match all.get_mut(&memory.id) {
                Some(known) if known.content == memory.content => {
                    known.updated_at = memory.updated_at;
                }
                Some(known) => {
                    *known = Memory {
                        created_at: known.created_at,
                        ..memory
                    };
                }
                None => {
                    all.insert(memory.id.clone(), memory);
                }
            }
        }
    }

    /// The memories of all namespaces, in order of id.
    #[must_use]
    pub fn all(&self) -> Vec<Memory> {
        lock(&self.0).values().cloned().collect()
    }

    fn of_namespace(&self, namespace: &str) -> Vec<Memory> {
        let all = lock(&self.0);
        let of_namespace = |memory: &&Memory| memory.namespace == namespace;
        let mut memories: Vec<Memory> = all.values().filter(of_namespace).cloned().collect();
        memories.sort_by_key(|memory| Reverse(memory.updated_at));
        memories
    }
}

/// A memory without tags, made at time 0.
#[must_use]
pub fn memory(id: &str, namespace: &str, content: &str) -> Memory {
    Memory {
        source: "test".to_owned(),
        created_at: 0,
        updated_at: 0,
        ..Memory::new(id, namespace, content)
    }
}

/// What a text is looked up by: its words in lower case, and pairs of neighbouring
/// characters instead where a word is not written in ASCII.
fn pieces(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut pieces = BTreeSet::new();
    for word in words {
        let characters: Vec<char> = word.chars().collect();
        if word.is_ascii() || characters.len() == 1 {
            pieces.insert(word.to_owned());
        } else {
            pieces.extend(
                characters
                    .windows(2)
                    .map(|pair| pair.iter().collect::<String>()),
            );
        }
    }
    pieces
}

#[async_trait]
impl MemoryStorage for InMemoryMemories {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        Ok(self.of_namespace(namespace))
    }

    async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
        self.preload([memory]);
        Ok(())
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        let mut all = lock(&self.0);
        let there = all
            .get(id)
            .is_some_and(|memory| memory.namespace == namespace);
        if there {
            all.remove(id);
        }
        Ok(there)
    }

    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError> {
        let wanted = pieces(query);
        let mut found: Vec<(usize, Memory)> = self
            .of_namespace(namespace)
            .into_iter()
            .map(|memory| {
                let held = pieces(&format!("{} {}", memory.content, memory.tags.join(" ")));
                (held.intersection(&wanted).count(), memory)
            })
            .filter(|(score, _)| *score > 0)
            .collect();
        // A stable sort: equal scores stay with the most recent first.
        found.sort_by_key(|(score, _)| Reverse(*score));
        found.truncate(limit.get());
        Ok(found.into_iter().map(|(_, memory)| memory).collect())
    }
}

//! What is remembered beyond a session (chapters 3.7 and 5.7).
//!
//! An implementor of a memory storage reads this file.

pub(crate) mod extract;
pub(crate) mod manager;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::storage::StorageError;

/// A store of memories. Ranking is its job.
///
/// # Examples
/// ```
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use youyou_agent::{Memory, MemoryStorage, StorageError};
///
/// #[derive(Default)]
/// struct Minimal(Mutex<Vec<Memory>>);
///
/// #[async_trait]
/// impl MemoryStorage for Minimal {
///     async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
///         let all = self.0.lock().map_err(StorageError::new)?;
///         Ok(all.iter().filter(|memory| memory.namespace == namespace).cloned().collect())
///     }
///
///     async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
///         let mut all = self.0.lock().map_err(StorageError::new)?;
///         match all.iter_mut().find(|known| known.id == memory.id) {
///             Some(known) if known.content == memory.content => known.updated_at = memory.updated_at,
///             Some(known) => *known = Memory { created_at: known.created_at, ..memory },
///             None => all.push(memory),
///         }
///         Ok(())
///     }
///
///     async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
///         let mut all = self.0.lock().map_err(StorageError::new)?;
///         let before = all.len();
///         all.retain(|memory| memory.id != id || memory.namespace != namespace);
///         Ok(all.len() < before)
///     }
///
///     async fn search(&self, namespace: &str, query: &str, limit: usize) -> Result<Vec<Memory>, StorageError> {
///         let mut found = self.load(namespace).await?;
///         found.retain(|memory| query.split_whitespace().any(|word| memory.content.contains(word)));
///         found.truncate(limit);
///         Ok(found)
///     }
/// }
/// ```
#[async_trait]
pub trait MemoryStorage: Send + Sync + 'static {
    /// All memories of a namespace, the most recently updated first.
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError>;

    /// Inserts a memory, or updates the one with its id: with the same content only
    /// `updated_at` changes, else everything but `created_at`.
    async fn upsert(&self, memory: Memory) -> Result<(), StorageError>;

    /// Deletes a memory of a namespace. Answers whether it existed.
    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError>;

    /// The memories of a namespace that fit the query, the best first, at most `limit`.
    /// The query is a user's own text, in any language and of any length.
    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Memory>, StorageError>;
}

/// Something worth remembering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Unique over all namespaces.
    pub id: String,
    /// Memories are isolated by it; the caller decides what it means.
    pub namespace: String,
    /// What is remembered, in one or a few sentences.
    pub content: String,
    /// Where it comes from: the id of a session, or whatever a caller put there.
    pub source: String,
    /// Key words.
    pub tags: Vec<String>,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Milliseconds since the Unix epoch.
    pub updated_at: u64,
}

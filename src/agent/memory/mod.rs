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
/// The agent searches once per session, with the user's first message and at most
/// `memory_max_items`, and puts what it finds into the system prompt. When a session closes,
/// and in the background every `memory_checkpoint_interval` turns, it loads a namespace, asks a
/// model what is worth remembering, and upserts that. It deletes nothing. An error here is
/// logged and fails neither a turn nor a close.
///
/// # Rules
/// - Namespaces are any text, compared exactly, and do not see each other.
/// - An id is unique over all namespaces: written again in another one, a memory moves.
/// - A search finds at least the memories that share a word with the query, whatever the
///   case, and in scripts without spaces, too. Nothing in a query is syntax.
///
/// `memory_storage_conformance` of the module `testing` checks the rules.
///
/// # Examples
/// A storage in a list, which keeps all rules:
/// ```
/// use std::cmp::Reverse;
/// use std::collections::BTreeSet;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use youyou_agent::{Memory, MemoryStorage, StorageError};
///
/// #[derive(Default)]
/// struct InList(Mutex<Vec<Memory>>);
///
/// /// Words in lower case; single characters where a script may have no spaces.
/// fn pieces(text: &str) -> BTreeSet<String> {
///     let text = text.to_lowercase();
///     let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
///     words
///         .flat_map(|word| match word.is_ascii() {
///             true => vec![word.to_owned()],
///             false => word.chars().map(String::from).collect(),
///         })
///         .collect()
/// }
///
/// #[async_trait]
/// impl MemoryStorage for InList {
///     async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
///         let all = self.0.lock().map_err(StorageError::new)?;
///         let mut found: Vec<Memory> =
///             all.iter().filter(|memory| memory.namespace == namespace).cloned().collect();
///         found.sort_by_key(|memory| Reverse(memory.updated_at));
///         Ok(found)
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
///         let wanted = pieces(query);
///         let shared = |memory: &Memory| pieces(&memory.content).intersection(&wanted).count();
///         let mut found = self.load(namespace).await?;
///         found.retain(|memory| shared(memory) > 0);
///         found.sort_by_key(|memory| Reverse(shared(memory)));
///         found.truncate(limit);
///         Ok(found)
///     }
/// }
/// # #[cfg(feature = "testing")]
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(
/// #     youyou_agent::testing::memory_storage_conformance(async || InList::default()),
/// # );
/// # Ok::<(), std::io::Error>(())
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
    /// The query is a user's own text, in any language and of any length; one of blanks or
    /// signs alone finds nothing or anything, and is no error.
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
    /// Unique over all namespaces. The agent makes a UUID.
    pub id: String,
    /// Memories are isolated by it; the caller decides what it means, by `memory_namespace` of
    /// the agent or the session. Empty unless it is set.
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

//! What is remembered beyond a session.
//!
//! An implementor of a memory storage reads this file.

// Requirements: 3.7 MemoryStorage, 5.7 Memory manager.

mod extraction;
mod fresh;
mod progress;
mod prompt;
mod proposals;

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub(crate) use progress::MemoryProgress;

use super::clock::now_ms;
use super::storage::StorageError;

/// A store of memories. Ranking is its job.
///
/// The agent searches once per session, with the user's first message and at most
/// `memory_max_items`, and puts what it finds into the system prompt; with 0 it never searches.
/// When a session closes, and in the background every `memory_checkpoint_interval` turns, it
/// loads a namespace, asks a model what is worth remembering, and upserts that. It deletes
/// nothing. An error here is logged and fails neither a turn nor a close.
///
/// What the agent upserts is bounded: at most 100 memories per extraction, of at most 2,000
/// characters and 10 tags of at most 60, without control characters.
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
/// use std::num::NonZeroUsize;
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
///     async fn search(&self, namespace: &str, query: &str, limit: NonZeroUsize) -> Result<Vec<Memory>, StorageError> {
///         let wanted = pieces(query);
///         let shared = |memory: &Memory| pieces(&memory.content).intersection(&wanted).count();
///         let mut found = self.load(namespace).await?;
///         found.retain(|memory| shared(memory) > 0);
///         found.sort_by_key(|memory| Reverse(shared(memory)));
///         found.truncate(limit.get());
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

    /// Deletes a memory of a namespace. Returns whether it existed.
    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError>;

    /// The memories of a namespace that fit the query, the best first, at most `limit`.
    /// The query is a user's own text, in any language and of any length; one of blanks or
    /// signs alone finds nothing or anything, and is no error.
    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError>;
}

#[async_trait]
impl<T: MemoryStorage + ?Sized> MemoryStorage for Arc<T> {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        T::load(self, namespace).await
    }

    async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
        T::upsert(self, memory).await
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        T::delete(self, namespace, id).await
    }

    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError> {
        T::search(self, namespace, query, limit).await
    }
}

/// Something worth remembering.
///
/// Code that ends the literal with `..Memory::new(..)` goes on compiling when a later version
/// adds a field. A storage that names every field is told by the compiler that there is another
/// one to keep.
///
/// # Examples
/// ```
/// use youyou_agent::Memory;
///
/// let memory = Memory {
///     source: "settings".into(),
///     tags: vec!["language".into()],
///     ..Memory::new("m1", "", "Prefers answers in German.")
/// };
/// assert_eq!(memory.created_at, memory.updated_at);
/// ```
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

impl Memory {
    /// A memory of now, without source and tags.
    pub fn new(
        id: impl Into<String>,
        namespace: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        let now = now_ms();
        Self {
            id: id.into(),
            namespace: namespace.into(),
            content: content.into(),
            source: String::new(),
            tags: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }
}

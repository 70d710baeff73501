//! Storages that go wrong as a test plans it, around any storage.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;

use super::Faults;
use crate::{
    EventPage, HeadMove, ListPage, Memory, MemoryStorage, PageRequest, SessionEvent, SessionLog,
    SessionStorage, SessionSummary, StorageError,
};

/// The operations of a [`SessionStorage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionOperation {
    /// `append`.
    Append,
    /// `load`.
    Load,
    /// `load_page`.
    LoadPage,
    /// `head_moves`.
    HeadMoves,
    /// `summary`.
    Summary,
    /// `list`.
    List,
    /// `find`.
    Find,
    /// `rename`.
    Rename,
    /// `delete`.
    Delete,
}

/// The operations of a [`MemoryStorage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryOperation {
    /// `load`.
    Load,
    /// `upsert`.
    Upsert,
    /// `delete`.
    Delete,
    /// `search`.
    Search,
}

/// A session storage whose calls go wrong as planned. Copies share everything.
///
/// # Examples
/// ```
/// use youyou_agent::SessionStorage as _;
/// use youyou_agent::testing::{
///     Fault, FaultySessions, InMemorySessions, SessionOperation, When, session_created,
/// };
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = FaultySessions::new(InMemorySessions::new());
/// let lost_answer = Fault::ErrorAfter("connection lost".into());
/// storage.faults().inject(SessionOperation::Append, When::Nth(1), lost_answer);
///
/// let event = session_created(0, "A title", "m1");
/// assert!(storage.append("s1", &[event]).await.is_err());
/// assert_eq!(storage.inner().events("s1").len(), 1, "it was written all the same");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FaultySessions<S> {
    inner: Arc<S>,
    faults: Faults<SessionOperation>,
}

/// A memory storage whose calls go wrong as planned. Copies share everything.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
///
/// use youyou_agent::MemoryStorage as _;
/// use youyou_agent::testing::{FaultyMemories, InMemoryMemories, MemoryOperation, When};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = FaultyMemories::new(InMemoryMemories::new());
/// storage.faults().fail(MemoryOperation::Search, When::Always);
/// assert!(storage.search("", "tea", NonZeroUsize::MIN).await.is_err());
/// storage.faults().heal();
/// assert!(storage.search("", "tea", NonZeroUsize::MIN).await.is_ok());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FaultyMemories<S> {
    inner: Arc<S>,
    faults: Faults<MemoryOperation>,
}

impl<S> FaultySessions<S> {
    /// Around `inner`, without any fault yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner: Arc::new(inner),
            faults: Faults::new(),
        }
    }

    /// The storage behind, for a look that no fault disturbs and nobody counts.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// What goes wrong, and what was called.
    #[must_use]
    pub fn faults(&self) -> &Faults<SessionOperation> {
        &self.faults
    }
}

impl<S> FaultyMemories<S> {
    /// Around `inner`, without any fault yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner: Arc::new(inner),
            faults: Faults::new(),
        }
    }

    /// The storage behind, for a look that no fault disturbs and nobody counts.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// What goes wrong, and what was called.
    #[must_use]
    pub fn faults(&self) -> &Faults<MemoryOperation> {
        &self.faults
    }
}

impl<S> Clone for FaultySessions<S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            faults: self.faults.clone(),
        }
    }
}

impl<S> Clone for FaultyMemories<S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            faults: self.faults.clone(),
        }
    }
}

#[async_trait]
impl<S: SessionStorage> SessionStorage for FaultySessions<S> {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let indices = events.iter().map(|event| event.index).collect();
        let work = self.inner.append(session_id, events);
        self.faults
            .around(SessionOperation::Append, session_id, indices, work)
            .await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        let work = self.inner.load(session_id);
        self.faults
            .around(SessionOperation::Load, session_id, Vec::new(), work)
            .await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let work = self.inner.load_page(session_id, request);
        self.faults
            .around(SessionOperation::LoadPage, session_id, Vec::new(), work)
            .await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        let work = self.inner.head_moves(session_id);
        self.faults
            .around(SessionOperation::HeadMoves, session_id, Vec::new(), work)
            .await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        let work = self.inner.summary(session_id);
        self.faults
            .around(SessionOperation::Summary, session_id, Vec::new(), work)
            .await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        let work = self.inner.list(cursor, limit);
        self.faults
            .around(SessionOperation::List, "", Vec::new(), work)
            .await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        let work = self.inner.find(query);
        self.faults
            .around(SessionOperation::Find, query, Vec::new(), work)
            .await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        let work = self.inner.rename(session_id, title);
        self.faults
            .around(SessionOperation::Rename, session_id, Vec::new(), work)
            .await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        let work = self.inner.delete(session_id);
        self.faults
            .around(SessionOperation::Delete, session_id, Vec::new(), work)
            .await
    }
}

#[async_trait]
impl<S: MemoryStorage> MemoryStorage for FaultyMemories<S> {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        let work = self.inner.load(namespace);
        self.faults
            .around(MemoryOperation::Load, namespace, Vec::new(), work)
            .await
    }

    async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
        let namespace = memory.namespace.clone();
        let work = self.inner.upsert(memory);
        self.faults
            .around(MemoryOperation::Upsert, &namespace, Vec::new(), work)
            .await
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        let work = self.inner.delete(namespace, id);
        self.faults
            .around(MemoryOperation::Delete, namespace, Vec::new(), work)
            .await
    }

    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError> {
        let work = self.inner.search(namespace, query, limit);
        self.faults
            .around(MemoryOperation::Search, namespace, Vec::new(), work)
            .await
    }
}

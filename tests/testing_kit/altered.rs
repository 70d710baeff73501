//! A storage that is whole but for what a test alters.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use youyou_agent::testing::InMemorySessions;
use youyou_agent::{
    EventPage, HeadMove, ListPage, PageRequest, SessionEvent, SessionLog, SessionStorage,
    SessionSummary, StorageError,
};

type Answer<T> = Result<T, StorageError>;

/// What is done otherwise. Each method does as the storage in memory unless it is overridden.
#[async_trait]
pub(crate) trait Alteration: Send + Sync + 'static {
    async fn append(&self, inner: &InMemorySessions, id: &str, e: &[SessionEvent]) -> Answer<()> {
        inner.append(id, e).await
    }

    async fn load(&self, inner: &InMemorySessions, id: &str) -> Answer<Option<SessionLog>> {
        inner.load(id).await
    }

    async fn load_page(
        &self,
        inner: &InMemorySessions,
        id: &str,
        request: PageRequest,
    ) -> Answer<Option<EventPage>> {
        inner.load_page(id, request).await
    }

    async fn head_moves(&self, inner: &InMemorySessions, id: &str) -> Answer<Vec<HeadMove>> {
        inner.head_moves(id).await
    }

    async fn summary(&self, inner: &InMemorySessions, id: &str) -> Answer<Option<SessionSummary>> {
        inner.summary(id).await
    }

    async fn list(
        &self,
        inner: &InMemorySessions,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Answer<ListPage> {
        inner.list(cursor, limit).await
    }

    async fn find(&self, inner: &InMemorySessions, query: &str) -> Answer<Vec<SessionSummary>> {
        inner.find(query).await
    }

    async fn rename(&self, inner: &InMemorySessions, id: &str, title: &str) -> Answer<bool> {
        inner.rename(id, title).await
    }

    async fn delete(&self, inner: &InMemorySessions, id: &str) -> Answer<bool> {
        inner.delete(id).await
    }
}

/// The storage in memory with an alteration.
#[derive(Clone)]
pub(crate) struct Altered<A> {
    pub(crate) inner: InMemorySessions,
    alteration: A,
}

impl<A> Altered<A> {
    pub(crate) fn new(alteration: A) -> Self {
        Self::over(InMemorySessions::new(), alteration)
    }

    pub(crate) fn over(inner: InMemorySessions, alteration: A) -> Self {
        Self { inner, alteration }
    }
}

#[async_trait]
impl<A: Alteration> SessionStorage for Altered<A> {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Answer<()> {
        self.alteration
            .append(&self.inner, session_id, events)
            .await
    }

    async fn load(&self, session_id: &str) -> Answer<Option<SessionLog>> {
        self.alteration.load(&self.inner, session_id).await
    }

    async fn load_page(&self, session_id: &str, request: PageRequest) -> Answer<Option<EventPage>> {
        self.alteration
            .load_page(&self.inner, session_id, request)
            .await
    }

    async fn head_moves(&self, session_id: &str) -> Answer<Vec<HeadMove>> {
        self.alteration.head_moves(&self.inner, session_id).await
    }

    async fn summary(&self, session_id: &str) -> Answer<Option<SessionSummary>> {
        self.alteration.summary(&self.inner, session_id).await
    }

    async fn list(&self, cursor: Option<&str>, limit: NonZeroUsize) -> Answer<ListPage> {
        self.alteration.list(&self.inner, cursor, limit).await
    }

    async fn find(&self, query: &str) -> Answer<Vec<SessionSummary>> {
        self.alteration.find(&self.inner, query).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Answer<bool> {
        self.alteration.rename(&self.inner, session_id, title).await
    }

    async fn delete(&self, session_id: &str) -> Answer<bool> {
        self.alteration.delete(&self.inner, session_id).await
    }
}

/// A run of the kit must fail with the words of a rule.
pub(crate) async fn breaks(flaw: impl std::fmt::Debug, rule: &str, run: impl Future<Output = ()>) {
    let verdict = match AssertUnwindSafe(run).catch_unwind().await {
        Ok(()) => "it passes the kit".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
    };
    assert!(
        verdict.starts_with("rule broken: ") && verdict.contains(rule),
        "{flaw:?} should break {rule:?}: {verdict}"
    );
}

//! The kit notices the faults that session storages really have.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use youyou_agent::testing::{
    InMemorySessions, session_storage_conformance, session_storage_durability,
};
use youyou_agent::{
    ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError,
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    KeepsOldEvents,
    RefusesRepeats,
    OrderOfWriting,
    WritesHalf,
    FoldsIds,
    CutsLargeEvents,
    PagesFromAfter,
    IgnoresLimit,
    DeletesNothing,
    TakesLastTime,
    CountsEvents,
    ListsEmptySessions,
    RenamingIsActivity,
    OrdersByIdOnly,
    CursorIsTime,
    CursorIsOffset,
    LastPageHasCursor,
    BlankFindsAll,
    FindsFirstOnly,
    FindFoldsCase,
    FindUsesPatterns,
    FindsAllKindsAtOnce,
    UnknownIsEmpty,
}

#[derive(Clone)]
struct Flawed {
    inner: InMemorySessions,
    flaw: Flaw,
}

impl Flawed {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn id(&self, session_id: &str) -> String {
        if self.has(Flaw::FoldsIds) {
            session_id.to_lowercase()
        } else {
            session_id.to_owned()
        }
    }

    async fn all(&self) -> Vec<SessionSummary> {
        self.inner.list(None, usize::MAX).await.unwrap().sessions
    }

    fn spoil_row(&self, row: &mut SessionSummary) {
        let events = self.inner.events(&row.session_id);
        if self.has(Flaw::CountsEvents) {
            row.message_count = events.len().try_into().unwrap();
        }
        if self.has(Flaw::TakesLastTime)
            && let Some(last) = events.last()
        {
            row.updated_at = last.timestamp;
        }
    }
}

#[async_trait]
impl SessionStorage for Flawed {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let id = self.id(session_id);
        let known: Vec<u64> = self
            .inner
            .events(&id)
            .iter()
            .map(|event| event.index)
            .collect();
        let mut events = events.to_vec();
        if self.has(Flaw::RefusesRepeats) && events.iter().any(|event| known.contains(&event.index))
        {
            return Err(StorageError::new("UNIQUE constraint failed"));
        }
        if self.has(Flaw::KeepsOldEvents) {
            events.retain(|event| !known.contains(&event.index));
        }
        if self.has(Flaw::CutsLargeEvents) {
            events.retain(|event| serde_json::to_string(event).unwrap().len() < 1 << 20);
        }
        if self.has(Flaw::WritesHalf) {
            let rest = events.split_off(events.len() / 2);
            self.inner.append(&id, &events).await?;
            tokio::task::yield_now().await;
            events = rest;
        }
        self.inner.append(&id, &events).await
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        let mut log = self.inner.load(&self.id(session_id)).await?;
        if self.has(Flaw::OrderOfWriting)
            && let Some(log) = &mut log
        {
            log.events.sort_by_key(|event| event.index.to_string());
        }
        if self.has(Flaw::UnknownIsEmpty) {
            log = Some(log.unwrap_or_default());
        }
        Ok(log)
    }

    async fn load_page(
        &self,
        session_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<SessionLog>, StorageError> {
        let after = match after {
            Some(after) if self.has(Flaw::PagesFromAfter) => after.checked_sub(1),
            after => after,
        };
        let limit = if self.has(Flaw::IgnoresLimit) {
            1_000
        } else {
            limit
        };
        self.inner
            .load_page(&self.id(session_id), after, limit)
            .await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        if self.has(Flaw::CursorIsOffset) {
            let start: usize = cursor.unwrap_or("0").parse().unwrap();
            let all = self.all().await;
            let sessions: Vec<SessionSummary> =
                all.iter().skip(start).take(limit).cloned().collect();
            let end = start + sessions.len();
            let next_cursor = (end < all.len()).then(|| end.to_string());
            return Ok(ListPage {
                sessions,
                next_cursor,
            });
        }
        if self.has(Flaw::CursorIsTime) {
            let before: u64 = cursor.map_or(u64::MAX, |cursor| cursor.parse().unwrap());
            let mut sessions = self.all().await;
            sessions.retain(|row| row.updated_at < before);
            let more = sessions.len() > limit;
            sessions.truncate(limit);
            let last = sessions.last().filter(|_| more);
            let next_cursor = last.map(|row| row.updated_at.to_string());
            return Ok(ListPage {
                sessions,
                next_cursor,
            });
        }
        let mut page = self.inner.list(cursor, limit).await?;
        page.sessions.iter_mut().for_each(|row| self.spoil_row(row));
        if self.has(Flaw::OrdersByIdOnly) {
            page.sessions
                .sort_by(|a, b| a.session_id.cmp(&b.session_id));
        }
        if self.has(Flaw::LastPageHasCursor)
            && let Some(last) = page.sessions.last()
        {
            page.next_cursor = Some(format!("{}:{}", last.updated_at, last.session_id));
        }
        if self.has(Flaw::ListsEmptySessions) {
            for session_id in self.inner.session_ids() {
                if page.sessions.iter().all(|row| row.session_id != session_id) {
                    page.sessions.push(SessionSummary {
                        session_id,
                        title: String::new(),
                        created_at: 0,
                        updated_at: 0,
                        message_count: 0,
                    });
                }
            }
        }
        Ok(page)
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        let mut found = self.inner.find(query).await?;
        let fold = |text: &str| text.to_lowercase();
        if self.has(Flaw::BlankFindsAll) && query.trim().is_empty() {
            found = self.all().await;
        }
        if self.has(Flaw::FindFoldsCase) && found.is_empty() && !query.trim().is_empty() {
            found = self.all().await;
            found.retain(|row| fold(&row.title).contains(&fold(query)));
        }
        if self.has(Flaw::FindUsesPatterns) && query.contains('_') {
            let parts: Vec<&str> = query.split('_').collect();
            found = self.all().await;
            found.retain(|row| parts.iter().all(|part| row.title.contains(part)));
        }
        if self.has(Flaw::FindsAllKindsAtOnce) && !query.trim().is_empty() {
            found = self.all().await;
            found.retain(|row| row.session_id.starts_with(query) || row.title.contains(query));
        }
        if self.has(Flaw::FindsFirstOnly) {
            found.truncate(1);
        }
        Ok(found)
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        if self.has(Flaw::RenamingIsActivity)
            && let Some(first) = self.inner.events(session_id).first()
        {
            let touched = SessionEvent {
                timestamp: 1_000_000,
                ..first.clone()
            };
            self.inner.preload(session_id, [touched]);
        }
        self.inner.rename(&self.id(session_id), title).await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        if self.has(Flaw::DeletesNothing) {
            return Ok(self.inner.load(session_id).await?.is_some());
        }
        self.inner.delete(&self.id(session_id)).await
    }
}

/// What the kit says of a storage with this flaw.
async fn verdict(flaw: Flaw) -> String {
    let fresh = move || async move {
        Flawed {
            inner: InMemorySessions::new(),
            flaw,
        }
    };
    let run = AssertUnwindSafe(session_storage_conformance(fresh));
    match run.catch_unwind().await {
        Ok(()) => "it passes the kit".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_flaw_is_found_and_its_rule_named() {
    let cases = [
        (Flaw::KeepsOldEvents, "replaces the event"),
        (Flaw::RefusesRepeats, "replaces the event"),
        (Flaw::OrderOfWriting, "in order of index"),
        (Flaw::WritesHalf, "written whole or not at all"),
        (Flaw::FoldsIds, "exact ids"),
        (Flaw::CutsLargeEvents, "5 MB comes back whole"),
        (Flaw::PagesFromAfter, "load_page gives the events above"),
        (Flaw::IgnoresLimit, "load_page gives the events above"),
        (Flaw::DeletesNothing, "deleted session is gone"),
        (Flaw::TakesLastTime, "never decreases"),
        (Flaw::CountsEvents, "replaces the event"),
        (Flaw::ListsEmptySessions, "neither listed nor found"),
        (Flaw::RenamingIsActivity, "updated_at and the events stay"),
        (Flaw::OrdersByIdOnly, "updated_at and the events stay"),
        (Flaw::CursorIsTime, "sorted by updated_at"),
        (Flaw::CursorIsOffset, "added while paging"),
        (Flaw::LastPageHasCursor, "whether it is the last"),
        (Flaw::BlankFindsAll, "a blank query finds nothing"),
        (Flaw::FindsFirstOnly, "find: the exact id"),
        (Flaw::FindFoldsCase, "compares literally"),
        (Flaw::FindUsesPatterns, "compares literally"),
        (Flaw::FindsAllKindsAtOnce, "find: the exact id"),
        (Flaw::UnknownIsEmpty, "never written does not exist"),
    ];
    let mut missed = Vec::new();
    for (flaw, rule) in cases {
        let verdict = verdict(flaw).await;
        if !verdict.starts_with("rule broken: ") || !verdict.contains(rule) {
            missed.push(format!("{flaw:?} should break {rule:?}: {verdict}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test]
async fn a_store_that_forgets_is_found() {
    let run = AssertUnwindSafe(session_storage_durability(async || InMemorySessions::new()));
    let panic = run.catch_unwind().await.unwrap_err();
    let verdict = panic.downcast_ref::<String>().unwrap();
    assert!(
        verdict.contains("there when the store is opened again"),
        "{verdict}"
    );
}

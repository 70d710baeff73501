//! The kit notices the faults that session storages really have.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use youyou_agent::testing::{
    InMemorySessions, at, session_storage_conformance, session_storage_durability,
};
use youyou_agent::{
    ListPage, SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError,
};

use crate::altered::{Alteration, Altered, breaks};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    KeepsOldEvents,
    RefusesRepeats,
    OrderOfWriting,
    WritesHalf,
    FoldsIds,
    CutsLargeEvents,
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
    OneRowNeedsMessages,
    OneRowByPrefix,
}

impl Flaw {
    fn id(self, session_id: &str) -> String {
        if self == Self::FoldsIds {
            session_id.to_lowercase()
        } else {
            session_id.to_owned()
        }
    }

    fn spoil_row(self, inner: &InMemorySessions, row: &mut SessionSummary) {
        let events = inner.events(&row.session_id);
        if self == Self::CountsEvents {
            row.message_count = events.len().try_into().unwrap();
        }
        if self == Self::TakesLastTime
            && let Some(last) = events.last()
        {
            row.updated_at = last.timestamp;
        }
    }
}

async fn all(inner: &InMemorySessions) -> Vec<SessionSummary> {
    inner.list(None, NonZeroUsize::MAX).await.unwrap().sessions
}

#[async_trait]
impl Alteration for Flaw {
    async fn append(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        events: &[SessionEvent],
    ) -> Result<(), StorageError> {
        let id = self.id(session_id);
        let known: Vec<u64> = inner.events(&id).iter().map(|event| event.index).collect();
        let mut events = events.to_vec();
        match self {
            Self::RefusesRepeats if events.iter().any(|event| known.contains(&event.index)) => {
                return Err(StorageError::new("UNIQUE constraint failed"));
            }
            Self::KeepsOldEvents => events.retain(|event| !known.contains(&event.index)),
            Self::CutsLargeEvents => {
                events.retain(|event| serde_json::to_string(event).unwrap().len() < 1 << 20);
            }
            Self::WritesHalf => {
                let rest = events.split_off(events.len() / 2);
                inner.append(&id, &events).await?;
                tokio::task::yield_now().await;
                events = rest;
            }
            _ => {}
        }
        inner.append(&id, &events).await
    }

    async fn load(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Option<SessionLog>, StorageError> {
        let mut log = inner.load(&self.id(session_id)).await?;
        match (self, &mut log) {
            (Self::OrderOfWriting, Some(log)) => {
                log.events.sort_by_key(|event| event.index.to_string());
            }
            (Self::UnknownIsEmpty, None) => log = Some(SessionLog::default()),
            _ => {}
        }
        Ok(log)
    }

    async fn summary(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Option<SessionSummary>, StorageError> {
        let mut row = inner.summary(&self.id(session_id)).await?;
        match self {
            Self::OneRowNeedsMessages => Ok(row.filter(|row| row.message_count > 0)),
            Self::OneRowByPrefix => {
                let mut rows = all(inner).await.into_iter();
                Ok(row.or_else(|| rows.find(|row| row.session_id.starts_with(session_id))))
            }
            _ => {
                if let Some(row) = &mut row {
                    self.spoil_row(inner, row);
                }
                Ok(row)
            }
        }
    }

    async fn list(
        &self,
        inner: &InMemorySessions,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        match self {
            Self::CursorIsOffset => {
                let start: usize = cursor.unwrap_or("0").parse().unwrap();
                let all = all(inner).await;
                let rest = all.iter().skip(start);
                let sessions: Vec<SessionSummary> = rest.take(limit.get()).cloned().collect();
                let end = start + sessions.len();
                let next_cursor = (end < all.len()).then(|| end.to_string());
                return Ok(ListPage::new(sessions, next_cursor));
            }
            Self::CursorIsTime => {
                let before: u64 = cursor.map_or(u64::MAX, |cursor| cursor.parse().unwrap());
                let mut sessions = all(inner).await;
                sessions.retain(|row| row.updated_at < before);
                let more = sessions.len() > limit.get();
                sessions.truncate(limit.get());
                let last = sessions.last().filter(|_| more);
                let next_cursor = last.map(|row| row.updated_at.to_string());
                return Ok(ListPage::new(sessions, next_cursor));
            }
            _ => {}
        }
        let mut page = inner.list(cursor, limit).await?;
        page.sessions
            .iter_mut()
            .for_each(|row| self.spoil_row(inner, row));
        match self {
            Self::OrdersByIdOnly => page
                .sessions
                .sort_by(|a, b| a.session_id.cmp(&b.session_id)),
            Self::LastPageHasCursor => {
                let last = page.sessions.last();
                page.next_cursor =
                    last.map(|last| format!("{}:{}", last.updated_at, last.session_id));
            }
            Self::ListsEmptySessions => {
                for session_id in inner.session_ids() {
                    if page.sessions.iter().all(|row| row.session_id != session_id) {
                        let empty = SessionSummary::new(session_id, "", 0, 0, 0);
                        page.sessions.push(empty);
                    }
                }
            }
            _ => {}
        }
        Ok(page)
    }

    async fn find(
        &self,
        inner: &InMemorySessions,
        query: &str,
    ) -> Result<Vec<SessionSummary>, StorageError> {
        let mut found = inner.find(query).await?;
        let is_blank = query.trim().is_empty();
        let fold = |text: &str| text.to_lowercase();
        match self {
            Self::BlankFindsAll if is_blank => found = all(inner).await,
            Self::FindFoldsCase if found.is_empty() && !is_blank => {
                found = all(inner).await;
                found.retain(|row| fold(&row.title).contains(&fold(query)));
            }
            Self::FindUsesPatterns if query.contains('_') => {
                let parts: Vec<&str> = query.split('_').collect();
                found = all(inner).await;
                found.retain(|row| parts.iter().all(|part| row.title.contains(part)));
            }
            Self::FindsAllKindsAtOnce if !is_blank => {
                found = all(inner).await;
                found.retain(|row| row.session_id.starts_with(query) || row.title.contains(query));
            }
            Self::FindsFirstOnly => found.truncate(1),
            _ => {}
        }
        Ok(found)
    }

    async fn rename(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        title: &str,
    ) -> Result<bool, StorageError> {
        if *self == Self::RenamingIsActivity
            && let Some(first) = inner.events(session_id).first()
        {
            inner.preload(session_id, [at(1_000_000, first.clone())]);
        }
        inner.rename(&self.id(session_id), title).await
    }

    async fn delete(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<bool, StorageError> {
        if *self == Self::DeletesNothing {
            return Ok(inner.load(session_id).await?.is_some());
        }
        inner.delete(&self.id(session_id)).await
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
        (Flaw::OneRowNeedsMessages, "without any message, too"),
        (Flaw::OneRowByPrefix, "the row that the list has"),
    ];
    for (flaw, rule) in cases {
        let fresh = async || Altered::new(flaw);
        breaks(flaw, rule, session_storage_conformance(fresh)).await;
    }
}

#[tokio::test]
async fn a_store_that_forgets_is_found() {
    let open = async || InMemorySessions::new();
    let rule = "there when the store is opened again";
    breaks("forgets", rule, session_storage_durability(open)).await;
}

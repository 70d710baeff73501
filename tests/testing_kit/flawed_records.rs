//! The kit notices storages that lose sight of records which cannot be read, or make such.

use async_trait::async_trait;
use youyou_agent::testing::{
    InMemorySessions, session_storage_conformance, session_storage_skips_unreadable,
};
use youyou_agent::{
    EventPage, HeadMove, PageRequest, SessionEvent, SessionLog, SessionStorage as _,
    SessionSummary, StorageError,
};

use crate::altered::{Alteration, Altered, breaks};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    Fails,
    EndsAtIt,
    CountsNone,
    LastIsReadable,
    PagesCountNone,
    PagesEndAtIt,
    PagesFillUp,
    NextIsReadable,
    WritesOver,
    WritesWhatIsAround,
    RefusesAsFailed,
    MovesFail,
    RowIsMadeOfEvents,
    StoresWhatItCannotRead,
}

#[async_trait]
impl Alteration for Flaw {
    async fn append(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        events: &[SessionEvent],
    ) -> Result<(), StorageError> {
        let outcome = inner.append(session_id, events).await;
        match (self, &outcome) {
            (Self::WritesOver, Err(_)) => {
                inner.preload(session_id, events.iter().cloned());
                Ok(())
            }
            (Self::WritesWhatIsAround, Err(_)) => {
                for event in events {
                    let _ = inner.append(session_id, std::slice::from_ref(event)).await;
                }
                outcome
            }
            (Self::RefusesAsFailed, Err(_)) => Err(StorageError::new("constraint failed")),
            (Self::StoresWhatItCannotRead, Ok(())) => {
                for event in events {
                    let json = serde_json::to_string(event)?;
                    if serde_json::from_str::<SessionEvent>(&json).is_err() {
                        inner.corrupt(session_id, event.index);
                    }
                }
                outcome
            }
            _ => outcome,
        }
    }

    async fn load(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Option<SessionLog>, StorageError> {
        let Some(mut log) = inner.load(session_id).await? else {
            return Ok(None);
        };
        if log.unreadable > 0 {
            match self {
                Self::Fails => return Err(StorageError::new("expected value at line 1")),
                Self::EndsAtIt => log.events.truncate(2),
                Self::CountsNone => log.unreadable = 0,
                Self::LastIsReadable => {
                    log.last_index = log.events.last().map(|event| event.index);
                }
                _ => {}
            }
        }
        Ok(Some(log))
    }

    async fn load_page(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let Some(mut page) = inner.load_page(session_id, request).await? else {
            return Ok(None);
        };
        let readable = inner.events(session_id);
        match self {
            Self::PagesCountNone => page.unreadable = 0,
            Self::PagesEndAtIt if page.unreadable > 0 => page.next = None,
            // As the default of the trait, which knows no place of what is left out.
            Self::PagesFillUp => {
                let records = readable
                    .into_iter()
                    .map(|event| Ok((event.index, 1, Some(event))));
                return EventPage::collect(&request, records).map(Some);
            }
            Self::NextIsReadable => {
                let mut indices = readable.iter().map(|event| event.index);
                page.next = page
                    .next
                    .and_then(|next| indices.find(|index| *index >= next));
            }
            _ => {}
        }
        Ok(Some(page))
    }

    async fn head_moves(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Vec<HeadMove>, StorageError> {
        let log = inner.load(session_id).await?;
        if *self == Self::MovesFail && log.is_some_and(|log| log.unreadable > 0) {
            return Err(StorageError::new("malformed JSON"));
        }
        inner.head_moves(session_id).await
    }

    async fn summary(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Option<SessionSummary>, StorageError> {
        let row = inner.summary(session_id).await?;
        if *self == Self::RowIsMadeOfEvents && inner.events(session_id).is_empty() {
            return Ok(None);
        }
        Ok(row)
    }
}

#[tokio::test]
async fn each_flaw_of_unreadable_records_is_found_and_its_rule_named() {
    let cases = [
        (Flaw::Fails, "left out and counted"),
        (Flaw::EndsAtIt, "left out and counted"),
        (Flaw::CountsNone, "left out and counted"),
        (Flaw::LastIsReadable, "keeps its index"),
        (Flaw::PagesCountNone, "ends no page"),
        (Flaw::PagesEndAtIt, "ends no page"),
        (Flaw::PagesFillUp, "ends no page"),
        (Flaw::NextIsReadable, "ends no page"),
        (Flaw::WritesOver, "never written over"),
        (Flaw::WritesWhatIsAround, "never written over"),
        (Flaw::RefusesAsFailed, "never written over"),
        (Flaw::MovesFail, "a move of the head that cannot be read"),
        (Flaw::RowIsMadeOfEvents, "no record can be read"),
    ];
    for (flaw, rule) in cases {
        let storage = Altered::new(flaw);
        let run = session_storage_skips_unreadable(&storage, async |session_id, index| {
            assert!(storage.inner.corrupt(session_id, index));
        });
        breaks(flaw, rule, run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_takes_what_it_cannot_read_again_is_found() {
    let flaw = Flaw::StoresWhatItCannotRead;
    let run = session_storage_conformance(async || Altered::new(flaw));
    breaks(flaw, "what cannot be read again is refused", run).await;
}

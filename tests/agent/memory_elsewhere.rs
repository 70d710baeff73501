//! A checkpoint that comes late: the session may have gone on in another process by then.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use youyou_agent::testing::{
    Gate, InMemoryMemories, InMemorySessions, done, done_with, gate, text, user_message,
};
use youyou_agent::{
    EventPage, HeadMove, ListPage, PageRequest, SessionEvent, SessionLog, SessionStorage,
    SessionSummary, StorageError, Usage,
};

use crate::memory::extracting;
use crate::rig::{Rig, config};
use crate::said::stored_lines;

/// A storage that replaces whatever is there, whoever wrote it: what keeps the words of another
/// process is the agent alone.
struct Trusting(InMemorySessions);

#[async_trait]
impl SessionStorage for Trusting {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        self.0.preload(session_id, events.iter().cloned());
        Ok(())
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        self.0.load(session_id).await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        self.0.load_page(session_id, request).await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        self.0.head_moves(session_id).await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        self.0.summary(session_id).await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        self.0.list(cursor, limit).await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        self.0.find(query).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        self.0.rename(session_id, title).await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        self.0.delete(session_id).await
    }
}

/// What is stored after a close whose extraction took so long that `meanwhile` came before its
/// end: lines, and how many records cannot be read.
async fn stored_after(
    answer: &'static str,
    meanwhile: impl FnOnce(&InMemorySessions, &str),
) -> (Vec<String>, u32) {
    let door = Gate::closed();
    let behind = door.clone();
    let provider = extracting(move || {
        let cost = done_with(Usage::new(1, 1), None);
        vec![gate(&behind), text(answer), cost]
    });
    let storage = InMemorySessions::new();
    let trusting = Trusting(storage.clone());
    let rig = Rig::over(provider, config(), storage, trusting, |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("q").await;
    let session = rig.session.clone();
    let closing = tokio::spawn(async move { session.close().await });
    rig.provider.asked(2).await;
    let id = rig.session.id().to_owned();
    meanwhile(&rig.storage, &id);
    door.open();
    closing.await.unwrap().unwrap();
    let unreadable = match rig.storage.load(&id).await.unwrap() {
        Some(log) => log.unreadable,
        None => 0,
    };
    (stored_lines(&rig.stored()), unreadable)
}

const OWN: [&str; 3] = ["created: q", "user: q", "assistant: ok"];

#[tokio::test(start_paused = true)]
async fn a_late_checkpoint_is_noted_where_nothing_came_between() {
    let (lines, _) = stored_after("[]", |_, _| ()).await;
    assert_eq!(lines, [&OWN[..], &["memory checkpoint"]].concat());
    let (lines, _) = stored_after("no list", |_, _| ()).await;
    assert_eq!(lines, [&OWN[..], &["spent"]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_late_checkpoint_writes_over_nothing_that_another_process_stored() {
    // X11
    for answer in ["[]", "no list"] {
        let (lines, _) = stored_after(answer, |storage, id| {
            storage.preload(id, [user_message(3, "from elsewhere")]);
        })
        .await;
        assert_eq!(lines, [&OWN[..], &["user: from elsewhere"]].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_checkpoint_writes_over_no_record_that_cannot_be_read() {
    // X11: at its own index, and behind it.
    for index in [3, 4] {
        let (lines, unreadable) = stored_after("[]", |storage, id| {
            storage.preload(id, [user_message(index, "from elsewhere")]);
            assert!(storage.corrupt(id, index));
        })
        .await;
        assert_eq!((lines, unreadable), (OWN.map(str::to_owned).to_vec(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_checkpoint_brings_no_deleted_session_back() {
    let (lines, _) = stored_after("[]", |storage, id| {
        let deleted = futures_util::FutureExt::now_or_never(storage.delete(id));
        assert!(deleted.unwrap().unwrap());
    })
    .await;
    assert_eq!(lines, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_another_process_left_unextracted_is_extracted_after_a_resume() {
    // X11: the checkpoint was not noted, so nothing is lost.
    let provider = extracting(|| vec![text("[]"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder.memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.send("M1. q").await;
    let id = rig.session.id().to_owned();
    rig.storage
        .another_writer()
        .preload(&id, [user_message(3, "M2. from elsewhere")]);
    rig.reopen().await;
    rig.send("M3. q").await;
    rig.reopen().await;
    let asked = crate::memory::extractions(&rig.provider);
    let read = crate::said::all_said(asked.last().unwrap());
    assert_eq!(crate::histories::markers(&read), [1, 2, 3]);
    rig.epilogue().await;
}

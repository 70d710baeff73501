//! A history to resume, and the storage that gives it.

use async_trait::async_trait;
use bench_harness::{Workload, history_text, image_data};
use std::num::NonZeroUsize;
use youyou_agent::testing::{InMemorySessions, assistant_message, session_created, text_part};
use youyou_agent::{
    ContentBlock, ListPage, SessionEvent, SessionEventKind, SessionLog, SessionStorage,
    SessionSummary, StorageError,
};

/// A session to resume, with the messages of the workload.
pub(crate) fn history(workload: &Workload) -> InMemorySessions {
    let storage = InMemorySessions::new();
    let event = |index: usize, kind| SessionEvent {
        index: index as u64,
        timestamp: 0,
        turn_id: "".into(),
        kind,
    };
    let mut events = vec![session_created(0, "history", "m")];
    for number in 0..workload.history {
        let index = number + 1;
        events.push(if workload.image && number == 2 {
            let content = vec![ContentBlock::image("image/png", image_data())];
            event(
                index,
                SessionEventKind::UserMessage {
                    content,
                    skill: None,
                    steering: false,
                },
            )
        } else if number % 2 == 0 {
            let content = vec![ContentBlock::text(history_text())];
            event(
                index,
                SessionEventKind::UserMessage {
                    content,
                    skill: None,
                    steering: false,
                },
            )
        } else {
            assistant_message(index as u64, [text_part(&history_text())])
        });
    }
    storage.preload("h", events);
    storage
}

/// Gives a history and stores nothing, so that the storage is not what is measured.
pub(crate) struct HistoryOnly(pub(crate) InMemorySessions);

#[async_trait]
impl SessionStorage for HistoryOnly {
    async fn append(&self, _: &str, _: &[SessionEvent]) -> Result<(), StorageError> {
        Ok(())
    }

    async fn load(&self, id: &str) -> Result<Option<SessionLog>, StorageError> {
        self.0.load(id).await
    }

    async fn list(&self, _: Option<&str>, _: NonZeroUsize) -> Result<ListPage, StorageError> {
        Ok(ListPage::default())
    }

    async fn summary(&self, _: &str) -> Result<Option<SessionSummary>, StorageError> {
        Ok(None)
    }

    async fn find(&self, _: &str) -> Result<Vec<SessionSummary>, StorageError> {
        Ok(Vec::new())
    }

    async fn rename(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        Ok(false)
    }

    async fn delete(&self, _: &str) -> Result<bool, StorageError> {
        Ok(false)
    }
}

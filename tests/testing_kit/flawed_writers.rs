//! The kit notices storages that let two writers get into each other's way.

use async_trait::async_trait;
use youyou_agent::testing::{InMemorySessions, session_storage_two_writers};
use youyou_agent::{SessionEvent, SessionStorage as _, StorageError};

use crate::altered::{Alteration, Altered, breaks};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    LastOneWins,
    FirstOneWinsSilently,
    KeepsTheRestOfTheBatch,
    RefusesAsFailed,
    OwnsWholeSessions,
    RefusesItself,
    LooksBeforeItWrites,
    RemembersTheDeleted,
}

#[async_trait]
impl Alteration for Flaw {
    async fn append(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        events: &[SessionEvent],
    ) -> Result<(), StorageError> {
        let there = inner.events(session_id);
        let taken = |event: &SessionEvent| there.iter().any(|one| one.index == event.index);
        let conflict = Err(StorageError::conflict(session_id));
        match self {
            Self::LooksBeforeItWrites => {
                // Each finds the place free, and then both write.
                let is_free = !events.iter().any(taken);
                tokio::task::yield_now().await;
                if is_free {
                    inner.preload(session_id, events.iter().cloned());
                    return Ok(());
                }
                inner.append(session_id, events).await
            }
            Self::RefusesItself if events.iter().any(taken) => conflict,
            Self::OwnsWholeSessions if !there.is_empty() && !taken_by(inner, session_id).await => {
                conflict
            }
            Self::RemembersTheDeleted if session_id == "gone" && there.is_empty() => {
                inner.preload(session_id, events.iter().cloned());
                conflict
            }
            _ => {
                let outcome = inner.append(session_id, events).await;
                match (self, &outcome) {
                    (Self::LastOneWins, Err(_)) => {
                        inner.preload(session_id, events.iter().cloned());
                        Ok(())
                    }
                    (Self::FirstOneWinsSilently, Err(_)) => Ok(()),
                    (Self::KeepsTheRestOfTheBatch, Err(_)) => {
                        for event in events {
                            let _ = inner.append(session_id, std::slice::from_ref(event)).await;
                        }
                        outcome
                    }
                    (Self::RefusesAsFailed, Err(_)) => Err(StorageError::new("duplicate key")),
                    _ => outcome,
                }
            }
        }
    }
}

/// Whether this writer wrote the first event of a session.
async fn taken_by(inner: &InMemorySessions, session_id: &str) -> bool {
    let first = inner
        .events(session_id)
        .into_iter()
        .take(1)
        .collect::<Vec<_>>();
    inner.append(session_id, &first).await.is_ok()
}

#[tokio::test]
async fn each_flaw_of_two_writers_is_found_and_its_rule_named() {
    let refused = "another storage object wrote is refused";
    let cases = [
        (Flaw::LastOneWins, refused),
        (Flaw::FirstOneWinsSilently, refused),
        (Flaw::KeepsTheRestOfTheBatch, refused),
        (Flaw::RefusesAsFailed, refused),
        (Flaw::RefusesItself, "still replaces what it wrote itself"),
        (Flaw::OwnsWholeSessions, "a free index is open to every"),
        (Flaw::RemembersTheDeleted, "is gone, its indices free"),
        (Flaw::LooksBeforeItWrites, "one succeeds"),
    ];
    for (flaw, rule) in cases {
        let store = InMemorySessions::new();
        let open = async || Altered::over(store.another_writer(), flaw);
        breaks(flaw, rule, session_storage_two_writers(open)).await;
    }
}

//! How a rule says that it is broken.

use std::fmt::Debug;
use std::num::NonZeroUsize;

use crate::testing::{at, session_created, user_message};
use crate::{SessionEvent, SessionStorage, SessionSummary, StorageError, StorageErrorKind};

/// A rule under test. Its methods panic with its words when it is broken.
#[derive(Clone, Copy)]
pub(super) struct Rule(pub(super) &'static str);

impl Rule {
    /// What the storage answered; an error breaks the rule.
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a broken rule fails the test that runs the kit"
    )]
    pub(super) fn got<T>(self, answer: Result<T, StorageError>) -> T {
        match answer {
            Ok(value) => value,
            Err(error) => panic!(
                "rule broken: {}: the storage answered an error: {error}",
                self.0
            ),
        }
    }

    /// What the storage answered, which must be something.
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a broken rule fails the test that runs the kit"
    )]
    pub(super) fn there<T>(self, answer: Result<Option<T>, StorageError>) -> T {
        match self.got(answer) {
            Some(value) => value,
            None => panic!("rule broken: {}: the storage found nothing", self.0),
        }
    }

    /// The storage must refuse a write as one that goes against another writer.
    #[track_caller]
    pub(super) fn conflict(self, answer: Result<(), StorageError>) {
        self.same(
            answer.map_err(|error| error.kind),
            Err(StorageErrorKind::Conflict),
        );
    }

    #[track_caller]
    pub(super) fn same<T: PartialEq + Debug>(self, found: T, expected: T) {
        assert!(
            found == expected,
            "rule broken: {}:\n   found: {found:?}\nexpected: {expected:?}",
            self.0
        );
    }

    /// For what is too large to print.
    #[track_caller]
    pub(super) fn holds(self, condition: bool, otherwise: &str) {
        assert!(condition, "rule broken: {}: {otherwise}", self.0);
    }

    /// Writes a session of one message at a time.
    pub(super) async fn write_session<S: SessionStorage>(
        self,
        storage: &S,
        session_id: &str,
        title: &str,
        time: u64,
    ) {
        let events = session(title, time);
        self.got(storage.append(session_id, &events).await);
    }

    /// The whole list, page by page.
    pub(super) async fn listed<S: SessionStorage>(
        self,
        storage: &S,
        limit: usize,
    ) -> Vec<SessionSummary> {
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = self.got(storage.list(cursor.as_deref(), rows(limit)).await);
            self.holds(
                page.sessions.len() <= limit,
                "a page is longer than its limit",
            );
            self.holds(
                !page.sessions.is_empty() || page.next_cursor.is_none(),
                "an empty page says that more follow",
            );
            seen.extend(page.sessions);
            match page.next_cursor {
                Some(next) => {
                    self.holds(
                        cursor.as_ref() != Some(&next),
                        "a page leads back to itself",
                    );
                    cursor = Some(next);
                }
                None => return seen,
            }
        }
    }

    /// The row of one session.
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a broken rule fails the test that runs the kit"
    )]
    pub(super) fn row(self, rows: &[SessionSummary], session_id: &str) -> SessionSummary {
        match rows.iter().find(|row| row.session_id == session_id) {
            Some(row) => row.clone(),
            None => panic!(
                "rule broken: {}: session {session_id:?} is not listed",
                self.0
            ),
        }
    }
}

/// A number of rows, at least one.
pub(super) fn rows(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

/// A session of one message.
pub(super) fn session(title: &str, time: u64) -> [SessionEvent; 2] {
    [
        at(time, session_created(0, title, "m1")),
        at(time, user_message(1, "hello")),
    ]
}

/// Where the events of a log or a page stand.
pub(super) fn indices(events: &[SessionEvent]) -> Vec<u64> {
    events.iter().map(|event| event.index).collect()
}

pub(super) fn ids(rows: &[SessionSummary]) -> Vec<&str> {
    rows.iter().map(|row| row.session_id.as_str()).collect()
}

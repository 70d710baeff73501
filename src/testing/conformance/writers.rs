//! Two storage objects over one store, as two processes have them.

use std::future::Future;

use futures_util::future::join;

use super::rule::{Rule, indices, session};
use crate::testing::{at, user_message};
use crate::{SessionEvent, SessionStorage, StorageErrorKind};

/// How often two writers meet at one index.
const MEETINGS: u64 = 30;

/// Runs a [`SessionStorage`] that several processes can reach through the rule that nobody
/// replaces what another storage object wrote. `open` opens the same, at first empty, store
/// each time, as another process would.
///
/// # Panics
/// When a rule is broken.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{InMemorySessions, session_storage_two_writers};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let store = InMemorySessions::new();
/// session_storage_two_writers(async || store.another_writer()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn session_storage_two_writers<S, F, Fut>(open: F)
where
    S: SessionStorage,
    F: Fn() -> Fut,
    Fut: Future<Output = S>,
{
    let (one, other) = (open().await, open().await);
    seeing(&one, &other).await;
    taken_indices(&one, &other).await;
    taking_turns(&one, &other).await;
    deleting(&one, &other).await;
    meeting(&one, &other).await;
}

async fn seeing<S: SessionStorage>(one: &S, other: &S) {
    let rule = Rule("what one storage object wrote, another sees at once");
    rule.write_session(one, "seen", "title", 1).await;
    let log = rule.there(one.load("seen").await);
    rule.same(rule.there(other.load("seen").await), log);
    rule.same(rule.got(other.rename("seen", "renamed").await), true);
    let row = rule.there(one.summary("seen").await);
    rule.same(row.title.as_str(), "renamed");
    rule.same(rule.listed(one, 10).await, vec![row.clone()]);
    rule.same(rule.got(other.find("renamed").await), vec![row]);
}

async fn taken_indices<S: SessionStorage>(one: &S, other: &S) {
    let rule = Rule("a write to an index that another storage object wrote is refused, whole");
    rule.write_session(one, "taken", "title", 1).await;
    rule.got(one.append("taken", &[user_message(5, "one")]).await);
    let before = rule.there(one.load("taken").await);
    let row = rule.there(one.summary("taken").await);
    let late = |index: u64| at(9, user_message(index, "other"));
    let batches = [
        vec![late(5)],
        vec![late(4), late(5), late(6)],
        vec![late(6), late(0)],
        // The same again is no repeat: it was never this object's.
        before.events.clone(),
        session("title of the other", 9).to_vec(),
    ];
    for batch in batches {
        rule.conflict(other.append("taken", &batch).await);
        for storage in [one, other] {
            rule.same(rule.there(storage.load("taken").await), before.clone());
            rule.same(rule.there(storage.summary("taken").await), row.clone());
        }
    }

    let rule = Rule("a storage object still replaces what it wrote itself");
    let again = at(9, user_message(5, "one again"));
    rule.got(one.append("taken", std::slice::from_ref(&again)).await);
    let log = rule.there(other.load("taken").await);
    rule.same(log.events.last(), Some(&again));
}

async fn taking_turns<S: SessionStorage>(one: &S, other: &S) {
    let rule = Rule("a free index is open to every storage object, and then to one only");
    rule.write_session(one, "turns", "title", 1).await;
    rule.got(other.append("turns", &[user_message(2, "other")]).await);
    rule.conflict(one.append("turns", &[user_message(2, "one")]).await);
    rule.got(one.append("turns", &[user_message(3, "one")]).await);
    rule.conflict(other.append("turns", &[user_message(3, "other")]).await);
    rule.got(other.append("turns", &[user_message(2, "other")]).await);
    let texts = |index: u64, text: &str| user_message(index, text);
    let log = rule.there(one.load("turns").await);
    rule.same(
        log.events.get(2..).map(<[_]>::to_vec),
        Some(vec![texts(2, "other"), texts(3, "one")]),
    );
    rule.same(rule.there(other.summary("turns").await).message_count, 3);
}

async fn deleting<S: SessionStorage>(one: &S, other: &S) {
    let rule = Rule("a session that another storage object deleted is gone, its indices free");
    rule.write_session(one, "gone", "title", 1).await;
    rule.same(rule.got(other.delete("gone").await), true);
    rule.same(rule.got(one.load("gone").await), None);
    rule.same(rule.got(one.delete("gone").await), false);
    rule.write_session(other, "gone", "new", 2).await;
    rule.conflict(one.append("gone", &[user_message(1, "old")]).await);
    rule.same(rule.there(one.summary("gone").await).title.as_str(), "new");
}

async fn meeting<S: SessionStorage>(one: &S, other: &S) {
    let rule = Rule("of two storage objects that write to one index at once, one succeeds");
    rule.write_session(one, "meeting", "title", 1).await;
    let batch = |index: u64, text: &str| -> [SessionEvent; 2] {
        [user_message(index, text), user_message(index + 1, text)]
    };
    for round in 1..=MEETINGS {
        let index = round * 2;
        let (first, second) = (batch(index, "one"), batch(index, "other"));
        let (a, b) = join(
            one.append("meeting", &first),
            other.append("meeting", &second),
        )
        .await;
        let conflict = Some(StorageErrorKind::Conflict);
        let kinds = (a.err().map(|e| e.kind), b.err().map(|e| e.kind));
        let winner = match kinds {
            (None, refused) if refused == conflict => first,
            (refused, None) if refused == conflict => second,
            _ => {
                rule.holds(false, &format!("both were answered with {kinds:?}"));
                return;
            }
        };
        let log = rule.there(one.load("meeting").await);
        let expected: Vec<u64> = (0..index + 2).collect();
        rule.same(indices(&log.events), expected);
        let newest = log.events.get(log.events.len().saturating_sub(2)..);
        rule.same(newest, Some(&winner[..]));
    }
    let row = rule.there(other.summary("meeting").await);
    rule.same(u64::from(row.message_count), 1 + 2 * MEETINGS);
}

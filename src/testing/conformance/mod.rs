//! The rules of the storage traits as tests that any implementation can be run through.
//!
//! A broken rule panics with its words; so each function here is the body of a test.

mod finding;
mod listing;
mod memories;
mod rule;
mod writing;

use std::future::Future;

use rule::{Rule, ids};

pub use memories::memory_storage_conformance;

use crate::SessionStorage;
use crate::testing::{at, user_message};

/// Runs a [`SessionStorage`] through the rules of its trait. `fresh` gives an empty
/// storage each time. Needs a tokio runtime, best one with several threads.
///
/// Durability and damaged records take more than one storage object:
/// [`session_storage_durability`] and [`session_storage_skips_unreadable`].
///
/// # Panics
/// When a rule is broken, with its words, what was found and what was expected.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{InMemorySessions, session_storage_conformance};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
/// # runtime.block_on(async {
/// session_storage_conformance(async || InMemorySessions::new()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn session_storage_conformance<S, F, Fut>(fresh: F)
where
    S: SessionStorage,
    F: Fn() -> Fut,
    Fut: Future<Output = S>,
{
    writing::unknown_session(fresh().await).await;
    writing::round_trip(fresh().await).await;
    writing::order(fresh().await).await;
    writing::session_ids(fresh().await).await;
    writing::replacing(fresh().await).await;
    writing::abandoned_batch(fresh().await).await;
    writing::pages_of_events(fresh().await).await;
    writing::large_event(fresh().await).await;
    writing::deleting(fresh().await).await;
    writing::two_sessions_at_once(fresh().await).await;
    listing::summary(fresh().await).await;
    listing::times(fresh().await).await;
    listing::counting(fresh().await).await;
    listing::without_messages(fresh().await).await;
    listing::renaming(fresh().await).await;
    listing::order(fresh().await).await;
    listing::equal_times(fresh().await).await;
    listing::changes_while_paging(fresh().await).await;
    finding::precedence(fresh().await).await;
    finding::literal(fresh().await).await;
    finding::order(fresh().await).await;
}

/// Runs a [`SessionStorage`] that outlives its object through the rule that a batch is
/// durable when `append` returns. `open` opens the same, at first empty, store each time.
///
/// # Panics
/// When the rule is broken.
pub async fn session_storage_durability<S, F, Fut>(open: F)
where
    S: SessionStorage,
    F: Fn() -> Fut,
    Fut: Future<Output = S>,
{
    let rule = Rule("what was written is there when the store is opened again");
    let storage = open().await;
    rule.write_session(&storage, "s1", "标题", 1).await;
    rule.write_session(&storage, "s2", "second", 2).await;
    rule.same(rule.got(storage.rename("s2", "renamed").await), true);
    rule.write_session(&storage, "gone", "gone", 3).await;
    rule.same(rule.got(storage.delete("gone").await), true);
    let before = rule.there(storage.load("s1").await);
    let listed = rule.listed(&storage, 10).await;
    drop(storage);

    let storage = open().await;
    rule.same(rule.there(storage.load("s1").await), before);
    rule.same(rule.listed(&storage, 10).await, listed.clone());
    rule.same(ids(&listed), vec!["s2", "s1"]);
    rule.same(rule.got(storage.load("gone").await), None);
    rule.got(
        storage
            .append("s1", &[at(4, user_message(2, "more"))])
            .await,
    );
    rule.same(rule.there(storage.load("s1").await).events.len(), 3);
}

/// Runs a [`SessionStorage`] through the rule that records which cannot be read are left
/// out and counted. `spoil` makes the record of a session and an index unreadable behind
/// the storage's back: cut, overwritten, of a type that does not exist.
///
/// # Panics
/// When the rule is broken.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{InMemorySessions, session_storage_skips_unreadable};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let storage = InMemorySessions::new();
/// session_storage_skips_unreadable(&storage, async |session_id, index| {
///     assert!(storage.corrupt(session_id, index));
/// })
/// .await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn session_storage_skips_unreadable<S: SessionStorage>(
    storage: &S,
    spoil: impl AsyncFnOnce(&str, u64),
) {
    let rule = Rule("a record that cannot be read is left out and counted; all others load");
    rule.write_session(storage, "spoiled", "title", 1).await;
    let more = [
        at(2, user_message(2, "two")),
        at(3, user_message(3, "three")),
    ];
    rule.got(storage.append("spoiled", &more).await);
    spoil("spoiled", 2).await;

    let log = rule.there(storage.load("spoiled").await);
    let indices: Vec<u64> = log.events.iter().map(|event| event.index).collect();
    rule.same((indices, log.unreadable), (vec![0, 1, 3], 1));
    rule.same(ids(&rule.listed(storage, 10).await), vec!["spoiled"]);

    let rule = Rule("a session with an unreadable record can go on");
    rule.got(
        storage
            .append("spoiled", &[at(4, user_message(4, "four"))])
            .await,
    );
    let log = rule.there(storage.load("spoiled").await);
    rule.same((log.events.len(), log.unreadable), (4, 1));
}

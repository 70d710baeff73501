//! The rules of the storage traits as tests that any implementation can be run through.
//!
//! A broken rule panics with its words; so each function here is the body of a test.

mod finding;
mod listing;
mod memories;
mod pages;
mod records;
mod rule;
mod writers;
mod writing;

use std::future::Future;

use rule::{Rule, ids};

pub use memories::memory_storage_conformance;
pub use records::session_storage_skips_unreadable;
pub use writers::session_storage_two_writers;

use crate::SessionStorage;
use crate::testing::{at, user_message};

/// Runs a [`SessionStorage`] through the rules of its trait. `fresh` gives an empty
/// storage each time. Needs a tokio runtime, best one with several threads.
///
/// Some rules take more than an empty storage, and a function each:
/// [`session_storage_durability`], [`session_storage_skips_unreadable`] and, for a store
/// that several processes can reach, [`session_storage_two_writers`].
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
    writing::large_event(fresh().await).await;
    writing::deleting(fresh().await).await;
    writing::two_sessions_at_once(fresh().await).await;
    records::round_trip_of_json(fresh().await).await;
    pages::requests(fresh().await).await;
    pages::sizes(fresh().await).await;
    pages::many(fresh().await).await;
    pages::head_moves(fresh().await).await;
    listing::summary(fresh().await).await;
    listing::times(fresh().await).await;
    listing::counting(fresh().await).await;
    listing::without_messages(fresh().await).await;
    listing::renaming(fresh().await).await;
    listing::one_row(fresh().await).await;
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

//! Records that cannot be read, and events that would become such.

use serde_json::{Value, json};

use super::rule::{Rule, ids, indices, rows};
use crate::testing::{at, metadata, tool_call_stored, user_message};
use crate::{EventPage, HeadMove, PageRequest, SessionMetadata, SessionStorage};

/// Deeper than readers of JSON go.
const TOO_DEEP: usize = 200;

pub(super) async fn round_trip_of_json<S: SessionStorage>(storage: S) {
    let rule = Rule("what cannot be read again is refused, with its batch, when it is written");
    rule.write_session(&storage, "s1", "title", 1).await;
    let before = rule.there(storage.load("s1").await);
    let deep = (0..TOO_DEEP).fold(Value::Null, |inner, _| json!([inner]));
    let batch = [
        user_message(2, "before it"),
        tool_call_stored(3, "c1", "t", json!({ "deep": deep })),
    ];
    // A storage that needs no JSON may take it.
    let expected = match storage.append("s1", &batch).await {
        Ok(()) => [&*before.events, &batch].concat(),
        Err(_) => before.events,
    };
    let log = rule.there(storage.load("s1").await);
    rule.holds(
        log.events == expected && log.unreadable == 0,
        "the batch was taken, and does not come back as it was written",
    );
    rule.got(storage.append("s1", &[user_message(2, "goes on")]).await);
}

/// Runs a [`SessionStorage`] through the rules of records that cannot be read: they are left
/// out and counted, wherever they stand, and never written over. `storage` is empty, and
/// `spoil` makes the record of a session and an index unreadable behind its back: cut,
/// overwritten, of a type that does not exist.
///
/// # Panics
/// When a rule is broken.
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
    spoil: impl AsyncFn(&str, u64),
) {
    in_the_middle(storage, &spoil).await;
    in_pages(storage, &spoil).await;
    the_last(storage, &spoil).await;
    never_written_over(storage, &spoil).await;
    of_the_head(storage, &spoil).await;
    all_of_them(storage, &spoil).await;
}

async fn in_the_middle<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("a record that cannot be read is left out and counted; all others load");
    rule.write_session(storage, "spoiled", "title", 1).await;
    let more = [
        at(2, user_message(2, "two")),
        at(3, user_message(3, "three")),
    ];
    rule.got(storage.append("spoiled", &more).await);
    spoil("spoiled", 2).await;
    let log = rule.there(storage.load("spoiled").await);
    rule.same(
        (indices(&log.events), log.unreadable, log.last_index),
        (vec![0, 1, 3], 1, Some(3)),
    );
    let rows = rule.listed(storage, 10).await;
    rule.same(ids(&rows), vec!["spoiled"]);
    let row = rule.there(storage.summary("spoiled").await);
    rule.same(rows, vec![row]);

    let rule = Rule("a session with an unreadable record can go on");
    rule.got(
        storage
            .append("spoiled", &[at(4, user_message(4, "four"))])
            .await,
    );
    let log = rule.there(storage.load("spoiled").await);
    rule.same((log.events.len(), log.unreadable), (4, 1));
}

async fn in_pages<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("an unreadable record ends no page: its page counts it and goes on");
    let events: Vec<_> = (0..100).map(|index| user_message(index, "text")).collect();
    rule.got(storage.append("pages", &events).await);
    spoil("pages", 3).await;
    spoil("pages", 40).await;
    spoil("pages", 59).await;
    let mut from = Some(0);
    for number in 0..10 {
        let start = number * 10;
        rule.same((number, from), (number, Some(start)));
        let request = PageRequest::new(start, rows(10));
        let page = rule.there(storage.load_page("pages", request).await);
        let readable: Vec<u64> = (start..start + 10)
            .filter(|index| ![3, 40, 59].contains(index))
            .collect();
        let next = Some(start + 10).filter(|next| *next < 100);
        let unreadable = 10 - readable.len();
        rule.same(
            (indices(&page.events), page.unreadable as usize, page.next),
            (readable, unreadable, next),
        );
        from = page.next;
    }

    let rule = Rule("a page may hold unreadable records only, and begin the next at one");
    let page = async |from: u64| {
        let request = PageRequest::new(from, rows(1));
        rule.there(storage.load_page("pages", request).await)
    };
    let expected = |unreadable: u32, next: u64| {
        let mut page = EventPage::default();
        (page.unreadable, page.next) = (unreadable, Some(next));
        page
    };
    rule.same(page(3).await, expected(1, 4));
    let before = page(2).await;
    rule.same((before.unreadable, before.next), (0, Some(3)));
}

async fn the_last<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("an unreadable last record keeps its index: last_index and pages tell of it");
    rule.write_session(storage, "last", "title", 1).await;
    rule.got(storage.append("last", &[user_message(7, "seven")]).await);
    spoil("last", 7).await;
    let log = rule.there(storage.load("last").await);
    rule.same(
        (indices(&log.events), log.unreadable, log.last_index),
        (vec![0, 1], 1, Some(7)),
    );
    let request = PageRequest::new(0, rows(2));
    let page = rule.there(storage.load_page("last", request).await);
    rule.same((indices(&page.events), page.next), (vec![0, 1], Some(7)));
    let request = PageRequest::new(2, rows(10));
    let page = rule.there(storage.load_page("last", request).await);
    rule.same(
        (page.events.len(), page.unreadable, page.next),
        (0, 1, None),
    );
}

async fn never_written_over<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("an unreadable record is never written over, and its batch is refused whole");
    rule.write_session(storage, "kept", "title", 1).await;
    rule.got(storage.append("kept", &[user_message(2, "two")]).await);
    spoil("kept", 2).await;
    let before = rule.there(storage.load("kept").await);
    let row = rule.there(storage.summary("kept").await);
    let batches = [
        vec![at(9, user_message(2, "over"))],
        vec![
            at(9, user_message(2, "over")),
            at(9, user_message(3, "behind")),
        ],
        vec![
            at(9, user_message(3, "behind")),
            at(9, user_message(2, "over")),
        ],
    ];
    for batch in batches {
        rule.conflict(storage.append("kept", &batch).await);
        rule.same(rule.there(storage.load("kept").await), before.clone());
        rule.same(rule.there(storage.summary("kept").await), row.clone());
    }
}

async fn of_the_head<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("a move of the head that cannot be read is left out; all others are given");
    let moved = |index: u64| metadata(index, SessionMetadata::HeadMoved { to: Some(0) });
    rule.write_session(storage, "moves", "title", 1).await;
    rule.got(
        storage
            .append("moves", &[moved(2), moved(3), moved(4)])
            .await,
    );
    spoil("moves", 3).await;
    let expected = [2, 4].map(|index| HeadMove { index, to: Some(0) });
    rule.same(
        rule.got(storage.head_moves("moves").await),
        expected.to_vec(),
    );
}

async fn all_of_them<S: SessionStorage>(storage: &S, spoil: &impl AsyncFn(&str, u64)) {
    let rule = Rule("a session of which no record can be read is there, with its row");
    rule.write_session(storage, "lost", "标题", 1).await;
    let row = rule.there(storage.summary("lost").await);
    spoil("lost", 0).await;
    spoil("lost", 1).await;
    let log = rule.there(storage.load("lost").await);
    rule.same(
        (indices(&log.events), log.unreadable, log.last_index),
        (Vec::new(), 2, Some(1)),
    );
    rule.same(rule.there(storage.summary("lost").await), row.clone());
    rule.same(rule.got(storage.find("标题").await), vec![row]);
    rule.same(rule.got(storage.delete("lost").await), true);
    rule.same(rule.got(storage.load("lost").await), None);
}

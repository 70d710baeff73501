//! Parts of a session: pages of its events, and the moves of its head.

use super::rule::{Rule, indices, rows};
use crate::testing::{at, metadata, user_message};
use crate::{EventPage, HeadMove, PageRequest, SessionEvent, SessionMetadata, SessionStorage};

pub(super) async fn requests<S: SessionStorage>(storage: S) {
    let rule = Rule("load_page gives what the request asks for, in order, and where to go on");
    let events: Vec<SessionEvent> = [0, 1, 2, 5, 9, 10, 11]
        .map(|index| user_message(index, "text"))
        .to_vec();
    rule.got(storage.append("s1", &events).await);
    rule.write_session(&storage, "s2", "another session", 1)
        .await;
    type Case<'a> = (u64, Option<u64>, usize, &'a [u64], Option<u64>);
    let cases: [Case<'_>; 14] = [
        (0, None, 3, &[0, 1, 2], Some(5)),
        (1, None, 1, &[1], Some(2)),
        (3, None, 3, &[5, 9, 10], Some(11)),
        (8, None, 100, &[9, 10, 11], None),
        // Full, and the last: nothing follows.
        (9, None, 3, &[9, 10, 11], None),
        (12, None, 3, &[], None),
        (u64::MAX, None, 3, &[], None),
        (0, None, usize::MAX, &[0, 1, 2, 5, 9, 10, 11], None),
        (0, Some(6), 4, &[0, 1, 2, 5], None),
        (0, Some(6), 3, &[0, 1, 2], Some(5)),
        (0, Some(5), 3, &[0, 1, 2], None),
        (6, Some(9), 3, &[], None),
        (9, Some(u64::MAX), 3, &[9, 10, 11], None),
        // A range that ends before it begins is empty, no error.
        (9, Some(5), 3, &[], None),
    ];
    for (from, until, limit, expected, next) in cases {
        let mut request = PageRequest::new(from, rows(limit));
        request.until = until;
        let page = rule.there(storage.load_page("s1", request).await);
        let found = (indices(&page.events), page.unreadable, page.next);
        rule.same((request, found), (request, (expected.to_vec(), 0, next)));
    }
    let all = PageRequest::new(0, rows(100));
    let page = rule.there(storage.load_page("s1", all).await);
    rule.same(page.events, events);
}

pub(super) async fn sizes<S: SessionStorage>(storage: S) {
    let rule = Rule("a page ends with the record that passes max_bytes of JSON");
    // A little over 1,000 bytes each.
    let events: Vec<SessionEvent> = (0..9)
        .map(|index| user_message(index, &"x".repeat(1_000)))
        .collect();
    rule.got(storage.append("s1", &events).await);
    let page = async |max_bytes: u64, limit: usize| {
        let request = PageRequest::new(0, rows(limit)).max_bytes(max_bytes);
        let page = rule.there(storage.load_page("s1", request).await);
        (indices(&page.events), page.next)
    };
    for max_bytes in [0, 1, 1_000] {
        rule.same(page(max_bytes, 100).await, (vec![0], Some(1)));
    }
    rule.same(page(2_000, 100).await, (vec![0, 1], Some(2)));
    rule.same(page(4_500, 100).await, (vec![0, 1, 2, 3, 4], Some(5)));
    rule.same(page(4_500, 2).await, (vec![0, 1], Some(2)));
    rule.same(page(u64::MAX, 100).await, ((0..9).collect(), None));

    let rule = Rule("a record larger than max_bytes ends its page and no earlier one");
    let large = user_message(9, &"频".repeat(100_000));
    rule.got(storage.append("s1", std::slice::from_ref(&large)).await);
    let request = PageRequest::new(8, rows(100)).max_bytes(5_000);
    let page = rule.there(storage.load_page("s1", request).await);
    rule.same((indices(&page.events), page.next), (vec![8, 9], None));
    rule.holds(page.events.get(1) == Some(&large), "it is not the same");
}

pub(super) async fn many<S: SessionStorage>(storage: S) {
    let rule = Rule("1,000 records come once each, page by page, while more are written");
    let batch = |from: u64, to: u64| -> Vec<SessionEvent> {
        (from..to)
            .map(|index| user_message(index, "text"))
            .collect()
    };
    rule.got(storage.append("s1", &batch(0, 1_000)).await);
    let mut seen = Vec::new();
    let mut from = Some(0);
    for round in 0..100 {
        let Some(start) = from else { break };
        let request = PageRequest::new(start, rows(64)).until(1_000);
        let EventPage { events, next, .. } = rule.there(storage.load_page("s1", request).await);
        seen.extend(indices(&events));
        from = next;
        rule.got(
            storage
                .append("s1", &[user_message(1_000 + round, "new")])
                .await,
        );
    }
    rule.same(seen, (0..1_000).collect());
}

pub(super) async fn head_moves<S: SessionStorage>(storage: S) {
    let rule = Rule("head_moves gives every move of the head, in order of index");
    let moved = |index: u64, to: Option<u64>| metadata(index, SessionMetadata::HeadMoved { to });
    rule.write_session(&storage, "s1", "title", 1).await;
    rule.same(rule.got(storage.head_moves("s1").await), Vec::new());
    // A message that quotes a move is none.
    let quote = r#"{"metadata":{"type":"headMoved","to":1}}"#;
    let batch = [user_message(9, quote), moved(10, Some(1)), moved(100, None)];
    rule.got(storage.append("s1", &batch).await);
    rule.got(
        storage
            .append("s1", &[moved(11, Some(9)), user_message(12, "x")])
            .await,
    );
    rule.got(storage.append("s2", &[moved(3, Some(2))]).await);
    let at_index = |index: u64, to: Option<u64>| HeadMove { index, to };
    rule.same(
        rule.got(storage.head_moves("s1").await),
        vec![
            at_index(10, Some(1)),
            at_index(11, Some(9)),
            at_index(100, None),
        ],
    );
    rule.same(
        rule.got(storage.head_moves("s2").await),
        vec![at_index(3, Some(2))],
    );

    let rule = Rule("a replaced event moves the head as it is now");
    let replaced = [
        at(2, moved(10, Some(0))),
        user_message(11, "x"),
        moved(12, None),
    ];
    rule.got(storage.append("s1", &replaced).await);
    rule.same(
        rule.got(storage.head_moves("s1").await),
        vec![
            at_index(10, Some(0)),
            at_index(12, None),
            at_index(100, None),
        ],
    );
}

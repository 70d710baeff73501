//! What the list says of a session, and the pages it comes in.

use std::collections::BTreeSet;

use super::rule::{Rule, ids, rows};
use crate::testing::{
    assistant_message, at, metadata, session_created, text_part, tool_call_stored,
    tool_result_stored, user_message,
};
use crate::{SessionEvent, SessionEventKind, SessionMetadata, SessionStorage, SessionSummary};

pub(super) async fn summary<S: SessionStorage>(storage: S) {
    let rule = Rule("a row has the session's id, title, times and count of messages");
    rule.write_session(&storage, "s1", "标题 'x' %", 1_000)
        .await;
    rule.got(
        storage
            .append("s1", &[at(5_000, user_message(2, "more"))])
            .await,
    );
    let expected = SessionSummary {
        session_id: "s1".to_owned(),
        title: "标题 'x' %".to_owned(),
        created_at: 1_000,
        updated_at: 5_000,
        message_count: 2,
    };
    rule.same(rule.listed(&storage, 10).await, vec![expected.clone()]);
    rule.same(rule.got(storage.find("s1").await), vec![expected]);
}

pub(super) async fn times<S: SessionStorage>(storage: S) {
    let rule = Rule("updated_at is the newest timestamp written and never decreases");
    rule.write_session(&storage, "s1", "title", 1_000).await;
    rule.got(
        storage
            .append("s1", &[at(3_000, user_message(2, "new"))])
            .await,
    );
    rule.got(
        storage
            .append("s1", &[at(2_000, user_message(3, "clock set back"))])
            .await,
    );
    rule.same(
        rule.row(&rule.listed(&storage, 10).await, "s1").updated_at,
        3_000,
    );
    rule.got(
        storage
            .append("s1", &[at(500, user_message(2, "replaced"))])
            .await,
    );
    rule.same(
        rule.row(&rule.listed(&storage, 10).await, "s1").updated_at,
        3_000,
    );

    let rule = Rule("created_at is the first timestamp written");
    rule.same(
        rule.row(&rule.listed(&storage, 10).await, "s1").created_at,
        1_000,
    );
}

fn empty_answer(index: u64) -> SessionEvent {
    assistant_message(index, [])
}

pub(super) async fn counting<S: SessionStorage>(storage: S) {
    let rule = Rule("only user messages and answers with anything in them count as messages");
    let note = SessionEvent {
        kind: SessionEventKind::SystemMessage {
            text: "note".into(),
        },
        ..user_message(7, "")
    };
    let events = [
        session_created(0, "title", "m1"),
        user_message(1, "one"),
        assistant_message(2, [text_part("two")]),
        tool_call_stored(3, "c1", "t", serde_json::json!({})),
        tool_result_stored(4, "c1", "t", "out"),
        empty_answer(5),
        metadata(6, SessionMetadata::TurnEndedSilently { stop_reason: None }),
        note,
    ];
    rule.got(storage.append("s1", &events).await);
    let count = async || {
        rule.row(&rule.listed(&storage, 10).await, "s1")
            .message_count
    };
    rule.same(count().await, 2);

    let rule = Rule("a replaced event counts as what it is now");
    rule.got(
        storage
            .append("s1", &[assistant_message(5, [text_part("three")])])
            .await,
    );
    rule.same(count().await, 3);
    rule.got(storage.append("s1", &[empty_answer(5)]).await);
    rule.same(count().await, 2);
}

pub(super) async fn without_messages<S: SessionStorage>(storage: S) {
    let rule = Rule("a session without any message is neither listed nor found, but is there");
    rule.got(
        storage
            .append("s1", &[session_created(0, "hidden", "m1"), empty_answer(1)])
            .await,
    );
    rule.same(rule.listed(&storage, 10).await, Vec::new());
    rule.same(rule.got(storage.find("s1").await), Vec::new());
    rule.same(rule.got(storage.find("hidden").await), Vec::new());
    rule.same(rule.there(storage.load("s1").await).events.len(), 2);
    rule.same(rule.got(storage.rename("s1", "renamed").await), true);
    rule.got(
        storage
            .append("s1", &[at(9, user_message(2, "hello"))])
            .await,
    );
    rule.same(
        rule.row(&rule.listed(&storage, 10).await, "s1")
            .title
            .as_str(),
        "renamed",
    );

    let rule = Rule("a session without any message does not hide those that fit less well");
    rule.got(
        storage
            .append("abc", &[session_created(0, "empty", "m1")])
            .await,
    );
    rule.write_session(&storage, "abcd", "full", 1).await;
    rule.same(ids(&rule.got(storage.find("abc").await)), vec!["abcd"]);
}

pub(super) async fn one_row<S: SessionStorage>(storage: S) {
    let rule = Rule("summary gives the row that the list has of a session");
    rule.write_session(&storage, "s1", "first", 1_000).await;
    rule.write_session(&storage, "s2", "标题 \u{0} end", 2_000)
        .await;
    rule.got(
        storage
            .append("s1", &[at(3_000, user_message(2, "more"))])
            .await,
    );
    for row in rule.listed(&storage, 10).await {
        let summary = storage.summary(&row.session_id).await;
        rule.same(rule.there(summary), row);
    }
    for part_of_an_id in ["s", "S1", "s1 ", ""] {
        let summary = storage.summary(part_of_an_id).await;
        rule.same((part_of_an_id, rule.got(summary)), (part_of_an_id, None));
    }

    let rule = Rule("summary gives the row of a session without any message, too");
    let created = at(4_000, session_created(0, "hidden", "m1"));
    rule.got(storage.append("s3", &[created]).await);
    let row = |title: &str| SessionSummary::new("s3", title, 4_000, 4_000, 0);
    rule.same(rule.there(storage.summary("s3").await), row("hidden"));
    rule.same(rule.got(storage.rename("s3", "renamed").await), true);
    rule.same(rule.there(storage.summary("s3").await), row("renamed"));
}

pub(super) async fn renaming<S: SessionStorage>(storage: S) {
    let rule = Rule("a new title is listed and found; updated_at and the events stay");
    rule.write_session(&storage, "s1", "old", 1_000).await;
    rule.write_session(&storage, "s2", "other", 2_000).await;
    let before = rule.there(storage.load("s1").await);
    rule.same(rule.got(storage.rename("s1", "新标题 👍").await), true);
    let rows = rule.listed(&storage, 10).await;
    rule.same(ids(&rows), vec!["s2", "s1"]);
    let row = rule.row(&rows, "s1");
    rule.same((row.title.as_str(), row.updated_at), ("新标题 👍", 1_000));
    rule.same(ids(&rule.got(storage.find("新标题").await)), vec!["s1"]);
    rule.same(ids(&rule.got(storage.find("old").await)), Vec::new());
    rule.same(rule.there(storage.load("s1").await), before.clone());

    let rule = Rule("a title that was changed survives a repeated write of the first events");
    rule.got(storage.append("s1", &before.events).await);
    let row = rule.row(&rule.listed(&storage, 10).await, "s1");
    rule.same(row.title.as_str(), "新标题 👍");
}

pub(super) async fn order<S: SessionStorage>(storage: S) {
    let rule = Rule("the list is sorted by updated_at, newest first, then by id");
    for (id, time) in [
        ("b", 5),
        ("a", 5),
        ("old", 1),
        ("new", 9),
        ("c", 5),
        ("B", 5),
    ] {
        rule.write_session(&storage, id, id, time).await;
    }
    let all = vec!["new", "B", "a", "b", "c", "old"];
    rule.same(ids(&rule.listed(&storage, 100).await), all.clone());
    for limit in 1..=6 {
        rule.same(ids(&rule.listed(&storage, limit).await), all.clone());
    }
    rule.got(
        storage
            .append("old", &[at(10, user_message(2, "again"))])
            .await,
    );
    rule.same(
        ids(&rule.listed(&storage, 2).await),
        vec!["old", "new", "B", "a", "b", "c"],
    );
}

pub(super) async fn equal_times<S: SessionStorage>(storage: S) {
    let rule =
        Rule("200 sessions of the same time come once each, in 10 pages of 20, always alike");
    let mut expected: Vec<String> = (0..200).map(|n| format!("session-{n}")).collect();
    for id in &expected {
        rule.write_session(&storage, id, "same", 1_000).await;
    }
    expected.sort();
    for _ in 0..2 {
        let mut cursor: Option<String> = None;
        let mut seen = Vec::new();
        for page_number in 1..=10 {
            let page = rule.got(storage.list(cursor.as_deref(), rows(20)).await);
            rule.same((page_number, page.sessions.len()), (page_number, 20));
            seen.extend(page.sessions.into_iter().map(|row| row.session_id));
            cursor = page.next_cursor;
            rule.holds(
                cursor.is_some() == (page_number < 10),
                &format!("page {page_number} is wrong about whether it is the last"),
            );
        }
        rule.same(seen, expected.clone());
    }
}

pub(super) async fn changes_while_paging<S: SessionStorage>(storage: S) {
    let rule = Rule("sessions that are added while paging neither repeat nor hide any row");
    let old: BTreeSet<String> = (10..40).map(|n| format!("old-{n}")).collect();
    for id in &old {
        rule.write_session(&storage, id, "old", 1_000).await;
    }
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    for round in 0..100 {
        let page = rule.got(storage.list(cursor.as_deref(), rows(7)).await);
        seen.extend(page.sessions.into_iter().map(|row| row.session_id));
        // One at the top, one at the very time of the others.
        rule.write_session(&storage, &format!("new-{round}"), "new", 2_000)
            .await;
        rule.write_session(&storage, &format!("a-{round}"), "new", 1_000)
            .await;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let distinct: BTreeSet<String> = seen.iter().cloned().collect();
    rule.same(seen.len(), distinct.len());
    let missing: Vec<&String> = old.difference(&distinct).collect();
    rule.same(missing, Vec::new());

    let rule = Rule("a page follows the one before though its last session was deleted");
    let first = rule.got(storage.list(None, rows(3)).await);
    let all = rule.listed(&storage, 100).await;
    if let Some(last) = first.sessions.last() {
        rule.same(rule.got(storage.delete(&last.session_id).await), true);
    }
    let second = rule.got(storage.list(first.next_cursor.as_deref(), rows(3)).await);
    let expected: Vec<&SessionSummary> = all.iter().skip(3).take(3).collect();
    rule.same(second.sessions.iter().collect(), expected);
}

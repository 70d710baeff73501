//! What is written is read back: order, replacing, batches, sizes, concurrency.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::json;

use super::rule::{Rule, rows, session};
use crate::testing::{
    assistant_message, at, call_part, cut_message, metadata, session_created, text_part,
    tool_call_stored, tool_result_stored, user_message,
};
use crate::{
    AssistantPart, ContentBlock, Interruption, PageRequest, ProviderData, SessionEvent,
    SessionEventKind, SessionMetadata, SessionStorage, Usage,
};

/// Longest integer that every JSON reader keeps.
const FAR_FUTURE: u64 = (1 << 53) - 1;

/// Text that has broken storages: other scripts, joined emoji, quotes, control characters.
const AWKWARD: &str =
    "频道 👩‍👩‍👧 e\u{301} \u{202e}rtl\u{202c} 'q' \"q\" \\ %_ \u{0} \u{2028} \r\n\ttail ";

pub(super) async fn unknown_session<S: SessionStorage>(storage: S) {
    let rule = Rule("a session that was never written does not exist");
    rule.same(rule.got(storage.load("nobody").await), None);
    let page = storage.load_page("nobody", PageRequest::new(0, rows(10)));
    rule.same(rule.got(page.await), None);
    rule.same(rule.got(storage.head_moves("nobody").await), Vec::new());
    rule.same(rule.got(storage.summary("nobody").await), None);
    rule.same(rule.got(storage.rename("nobody", "title").await), false);
    rule.same(rule.got(storage.delete("nobody").await), false);
    rule.same(rule.got(storage.load("nobody").await), None);
    rule.same(rule.listed(&storage, 10).await, Vec::new());
}

/// One event of each kind, with every optional field used somewhere.
fn every_kind() -> Vec<SessionEvent> {
    let reasoning = AssistantPart::Reasoning {
        text: AWKWARD.into(),
        provider_data: Some(ProviderData("sig==\u{0}".into())),
    };
    let mixed = SessionEventKind::UserMessage {
        content: vec![
            ContentBlock::text(AWKWARD),
            ContentBlock::image("image/png", "iVBORw0KGgo="),
            ContentBlock::file("名字.txt", ""),
        ],
        skill: Some("提交".into()),
        steering: true,
    };
    let arguments = json!({ "路径": AWKWARD, "n": FAR_FUTURE, "deep": [null, { "x": 1.5 }] });
    let call = call_part("c1", "write", arguments.clone());
    let mut events = vec![
        session_created(0, AWKWARD, "m1"),
        user_message(1, AWKWARD),
        assistant_message(2, [reasoning, text_part(AWKWARD), call]),
        tool_call_stored(3, "c1", "write", arguments),
        tool_result_stored(4, "c1", "write", AWKWARD),
        metadata(
            5,
            SessionMetadata::MemoryCheckpoint {
                through: 4,
                usage: Some(Usage::new(1, 2)),
            },
        ),
        cut_message(6, "half", Interruption::Cancelled),
        metadata(7, SessionMetadata::ImagesRefused { indices: vec![1] }),
        at(FAR_FUTURE, user_message(8, "last")),
    ];
    let template = user_message(9, "");
    events.push(SessionEvent {
        kind: mixed,
        ..template.clone()
    });
    events.push(SessionEvent {
        index: 10,
        turn_id: "".into(),
        kind: SessionEventKind::SystemMessage {
            text: "note".into(),
        },
        ..template
    });
    events
}

pub(super) async fn round_trip<S: SessionStorage>(storage: S) {
    let rule = Rule("load gives the events back as they were written, in order of index");
    let events = every_kind();
    rule.got(storage.append("s1", &events).await);
    let log = rule.there(storage.load("s1").await);
    // One by one, so that a difference can be seen.
    for (found, expected) in log.events.iter().zip(&events) {
        rule.same(found, expected);
    }
    rule.same((log.events.len(), log.unreadable), (events.len(), 0));
    rule.same(log.last_index, Some(10));
}

pub(super) async fn order<S: SessionStorage>(storage: S) {
    let rule = Rule("events are in order of index, whatever the order of writing, gaps allowed");
    let event = |index: u64| user_message(index, &format!("message {index}"));
    // As numbers, not as texts: 9, 10, 100.
    rule.got(storage.append("s1", &[event(100), event(9)]).await);
    rule.got(storage.append("s1", &[event(10)]).await);
    let log = rule.there(storage.load("s1").await);
    rule.same(log.events, vec![event(9), event(10), event(100)]);
}

pub(super) async fn session_ids<S: SessionStorage>(storage: S) {
    let rule = Rule("sessions are told apart by their exact ids");
    let ids = ["a", "A", "a ", "a%", "a_", "a/../b", "'a'", "会话", ".."];
    for id in ids {
        rule.got(
            storage
                .append(id, &session(&format!("title of {id}"), 1))
                .await,
        );
    }
    for id in ids {
        let log = rule.there(storage.load(id).await);
        rule.same(log.events, session(&format!("title of {id}"), 1).to_vec());
    }
    rule.same(rule.listed(&storage, 100).await.len(), ids.len());
}

pub(super) async fn replacing<S: SessionStorage>(storage: S) {
    let rule = Rule("writing an index that is there already replaces the event");
    rule.write_session(&storage, "s1", "title", 10).await;
    rule.got(
        storage
            .append("s1", &[at(11, cut_message(2, "ha", Interruption::Failed))])
            .await,
    );
    let whole = at(12, assistant_message(2, [text_part("half")]));
    rule.got(
        storage
            .append("s1", &[whole.clone(), at(12, user_message(3, "more"))])
            .await,
    );
    rule.got(storage.append("s1", std::slice::from_ref(&whole)).await);
    let log = rule.there(storage.load("s1").await);
    rule.same(log.events.len(), 4);
    rule.same(log.events.get(2), Some(&whole));
    let row = rule.row(&rule.listed(&storage, 10).await, "s1");
    rule.same((row.message_count, row.updated_at), (3, 12));

    let rule = Rule("repeating a batch changes nothing");
    let before = rule.there(storage.load("s1").await);
    rule.got(storage.append("s1", &before.events).await);
    rule.same(rule.there(storage.load("s1").await), before);
    rule.same(rule.row(&rule.listed(&storage, 10).await, "s1"), row);
}

pub(super) async fn abandoned_batch<S: SessionStorage>(storage: S) {
    let rule = Rule("a batch is written whole or not at all, also when the caller gives up on it");
    let batch: Vec<SessionEvent> = (0..200).map(|index| user_message(index, "text")).collect();
    // Polled once and dropped, as a time limit does it.
    let _ = storage.append("s1", &batch).now_or_never();
    let written = rule
        .got(storage.load("s1").await)
        .map_or(0, |log| log.events.len());
    rule.holds(
        written == 0 || written == batch.len(),
        &format!("{written} of {} events were written", batch.len()),
    );
    rule.got(storage.append("s1", &batch).await);
    rule.same(rule.there(storage.load("s1").await).events, batch);
}

pub(super) async fn large_event<S: SessionStorage>(storage: S) {
    let rule = Rule("an event of 5 MB comes back whole");
    // 3 bytes each.
    let large = tool_result_stored(2, "c1", "read", &"频".repeat(5_000_000 / 3));
    rule.write_session(&storage, "s1", "title", 1).await;
    rule.got(storage.append("s1", std::slice::from_ref(&large)).await);
    let log = rule.there(storage.load("s1").await);
    rule.holds(log.events.get(2) == Some(&large), "it is not the same");
}

pub(super) async fn deleting<S: SessionStorage>(storage: S) {
    let rule = Rule("a deleted session is gone with all its events, and no other");
    rule.write_session(&storage, "s1", "first", 1).await;
    let moved = metadata(2, SessionMetadata::HeadMoved { to: Some(0) });
    rule.got(storage.append("s1", &[moved]).await);
    rule.write_session(&storage, "s2", "second", 2).await;
    rule.same(rule.got(storage.delete("s1").await), true);
    rule.same(rule.got(storage.load("s1").await), None);
    let page = storage.load_page("s1", PageRequest::new(0, rows(10)));
    rule.same(rule.got(page.await), None);
    rule.same(rule.got(storage.head_moves("s1").await), Vec::new());
    rule.same(rule.got(storage.summary("s1").await), None);
    rule.same(rule.got(storage.find("first").await), Vec::new());
    rule.same(rule.got(storage.rename("s1", "title").await), false);
    rule.same(rule.got(storage.delete("s1").await), false);
    rule.same(rule.listed(&storage, 10).await.len(), 1);
    rule.same(rule.there(storage.load("s2").await).events.len(), 2);

    let rule = Rule("a session written after it was deleted is a new one");
    let again = [
        at(9, session_created(0, "again", "m1")),
        at(9, user_message(5, "hi")),
    ];
    rule.got(storage.append("s1", &again).await);
    rule.same(rule.there(storage.load("s1").await).events, again.to_vec());
    let row = rule.row(&rule.listed(&storage, 10).await, "s1");
    rule.same(
        (row.title.as_str(), row.created_at, row.message_count),
        ("again", 9, 1),
    );
}

#[expect(
    clippy::panic,
    reason = "a broken rule fails the test that runs the kit"
)]
pub(super) async fn two_sessions_at_once<S: SessionStorage>(storage: S) {
    let rule = Rule("sessions that are written at the same time do not disturb each other");
    let storage = Arc::new(storage);
    let writers = ["s1", "s2", "s3", "s4"].map(|id| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            rule.write_session(&*storage, id, id, 1).await;
            for index in 2..50 {
                rule.got(
                    storage
                        .append(id, &[at(index, user_message(index, id))])
                        .await,
                );
                rule.got(storage.list(None, rows(10)).await);
            }
        })
    });
    for writer in writers {
        if let Err(stopped) = writer.await {
            match stopped.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(stopped) => panic!("rule broken: {}: a writer was stopped: {stopped}", rule.0),
            }
        }
    }
    for id in ["s1", "s2", "s3", "s4"] {
        let log = rule.there(storage.load(id).await);
        let texts = log
            .events
            .iter()
            .skip(2)
            .filter(|event| event.kind == user_message(0, id).kind);
        rule.same((log.events.len(), texts.count()), (50, 48));
        let row = rule.row(&rule.listed(&*storage, 10).await, id);
        rule.same((row.message_count, row.updated_at), (49, 49));
    }
}

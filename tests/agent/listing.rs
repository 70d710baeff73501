//! Chapter 3.6: lists, queries and pages.

use std::num::NonZeroUsize;
use youyou_agent::testing::{InMemorySessions, at, done, session_created, text, user_message};

use crate::histories::{STORED, marked_turns, storage_with};
use crate::rig::{MODEL, Rig, config, provider};

#[tokio::test(start_paused = true)]
async fn sessions_of_one_moment_are_each_listed_once() {
    // D9
    let storage = InMemorySessions::new();
    for n in 0..200 {
        let id = format!("s{:03}", (n * 37) % 200);
        storage.preload(
            &id,
            [
                at(5, session_created(0, "t", MODEL)),
                at(5, user_message(1, "q")),
            ],
        );
    }
    storage.preload("empty", [at(9, session_created(0, "no message", MODEL))]);
    let wrapped = storage.clone();
    let rig = Rig::over(provider(), config(), storage, wrapped, |builder| builder).await;
    for _ in 0..2 {
        let mut ids = Vec::new();
        let mut cursor = None;
        let mut pages = 0;
        loop {
            let page = rig
                .agent
                .list_sessions(cursor.as_deref(), NonZeroUsize::new(20))
                .await
                .unwrap();
            pages += 1;
            ids.extend(page.sessions.into_iter().map(|row| row.session_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, 10);
        assert_eq!(
            ids,
            (0..200).map(|n| format!("s{n:03}")).collect::<Vec<_>>()
        );
    }
    assert!(
        rig.agent
            .list_sessions(Some("nonsense"), NonZeroUsize::new(20))
            .await
            .is_err()
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn all_sessions_that_a_query_fits_are_found_the_closest_kind_first() {
    // D11
    let storage = InMemorySessions::new();
    for (time, id, title) in [
        (1, "abc1", "first"),
        (2, "abc2", "second"),
        (3, "abc", "third"),
        (4, "zzz", "abd"),
        (5, "abd7", "100% _sure_"),
        (6, "yyy", "修复登录"),
        (7, "xxx", "修复登录"),
    ] {
        storage.preload(
            id,
            [
                at(time, session_created(0, title, MODEL)),
                at(time, user_message(1, "q")),
            ],
        );
    }
    let wrapped = storage.clone();
    let rig = Rig::over(provider(), config(), storage, wrapped, |builder| builder).await;
    for (query, expected) in [
        ("abc", vec!["abc"]),
        ("ab", vec!["abd7", "abc", "abc2", "abc1"]),
        ("abc1", vec!["abc1"]),
        ("abd", vec!["zzz"]),
        ("修复登录", vec!["xxx", "yyy"]),
        ("复登", vec!["xxx", "yyy"]),
        ("% _", vec!["abd7"]),
        ("%", vec!["abd7"]),
        ("a*", vec![]),
        ("", vec![]),
        ("  ", vec![]),
        ("\n", vec![]),
    ] {
        let found = rig.agent.find_sessions(query).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|row| row.session_id.as_str()).collect();
        assert_eq!(ids, expected, "{query:?}");
    }
    assert_eq!(
        rig.agent.current_session().unwrap().id(),
        rig.session.id(),
        "none is opened"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_history_is_paged_whole() {
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(
        provider,
        config(),
        storage_with(marked_turns(25, 10)),
        STORED,
        |b| b,
    )
    .await;
    let mut indices = Vec::new();
    let mut after = None;
    loop {
        let page = rig
            .agent
            .session_history(STORED, after, NonZeroUsize::new(7))
            .await
            .unwrap();
        assert!(page.events.len() <= 7);
        indices.extend(page.events.iter().map(|event| event.index));
        after = page.next_cursor;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(indices, Vec::from_iter(0..=50));
    let all = rig.agent.session_history(STORED, None, None).await.unwrap();
    assert_eq!((all.events.len(), all.next_cursor), (51, None));
    rig.epilogue().await;
}

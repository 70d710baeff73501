//! Chapter 3.6: a storage that fails at its first write, its second, at every n-th: once or from
//! then on, and in every way.

use std::num::NonZeroUsize;
use youyou_agent::testing::{
    InMemorySessions, RecordingTool, SessionOperation, Step, When, call, done, error, text, text_of,
};
use youyou_agent::{ChatRequest, ProviderErrorKind, SessionConfig};

use crate::histories::{asks_for_summary, compacting};
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::storage_faults::{every_fault, faulty, storage_errors, was_not_begun};

/// Answers by what was said last, so that a turn that fails shifts nothing.
fn by_the_last_word(request: &ChatRequest) -> Vec<Step> {
    if asks_for_summary(request) {
        return vec![text("SUMMARY"), done()];
    }
    let lines = said(request);
    let last = lines.last().unwrap().as_str();
    match last {
        "user: tools" => vec![
            text("first"),
            call("", "ro_echo", "{}"),
            call("", "mu_write", "{}"),
            done(),
        ],
        "user: at once" => vec![
            call("", "ro_echo", "{}"),
            call("", "ro_echo", "{}"),
            call("", "nothing", "{}"),
            done(),
        ],
        "user: fail" => vec![text("par"), error(ProviderErrorKind::Other, "broken")],
        "user: quiet" => vec![done()],
        _ => vec![text("answer"), done()],
    }
}

const STEPS: [&str; 8] = [
    "hello", "tools", "fail", "quiet", "compact", "at once", "fail", "bye",
];

/// Goes through all steps. Answers the pieces of text that turns showed which began.
async fn go_through(rig: &Rig) -> Vec<String> {
    let mut shown = Vec::new();
    for step in STEPS {
        if step == "compact" {
            // A failure of the storage is told here, too; the session goes on.
            let _outcome = rig.session.compact().await;
            continue;
        }
        let events = rig.send(step).await;
        assert!(storage_errors(&events) <= 1, "told once: {events:#?}");
        if !was_not_begun(&events) {
            shown.extend(
                events
                    .iter()
                    .map(|event| text_of(std::slice::from_ref(event))),
            );
        }
    }
    shown.retain(|text| !text.is_empty());
    shown
}

async fn writes_of_all_steps() -> usize {
    let (rig, faults) = faulty(provider().always(by_the_last_word)).await;
    go_through(&rig).await;
    faults.count(SessionOperation::Append)
}

#[tokio::test(start_paused = true)]
async fn whichever_write_fails_and_however_nothing_that_was_shown_is_lost() {
    // D7, D8: every n-th write, once and from then on, and every kind of failure
    let writes = writes_of_all_steps().await;
    assert!(writes > 15, "{writes}");
    for n in 1..=writes {
        for fault in every_fault() {
            for when in [When::Nth(n), When::From(n)] {
                let (mut rig, faults) = faulty(provider().always(by_the_last_word)).await;
                faults.inject(SessionOperation::Append, when, fault.clone());
                let shown = go_through(&rig).await;
                faults.heal();
                rig.send("live").await;
                let live = said(&rig.provider.last_request().unwrap());
                rig.reopen().await;
                rig.send("resumed").await;
                let resumed = said(&rig.provider.last_request().unwrap());
                assert_eq!(resumed[..live.len()], live, "{when:?} {fault:?}");
                let stored = stored_lines(&rig.stored()).join("\n");
                for text in shown {
                    assert!(stored.contains(&text), "{when:?} {fault:?}: lost {text:?}");
                }
                rig.epilogue().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_a_storage_holds_when_it_went_down_can_be_resumed() {
    // The process ends while the storage is down: what it got is a session all the same.
    let writes = writes_of_all_steps().await;
    for n in 1..=writes {
        for fault in every_fault() {
            let (rig, faults) = faulty(provider().always(by_the_last_word)).await;
            faults.inject(SessionOperation::Append, When::From(n), fault.clone());
            go_through(&rig).await;
            let id = rig.session.id().to_owned();
            let storage = rig.storage.clone();
            drop(rig);
            let known = storage.session_ids();
            let provider = provider().always(by_the_last_word);
            if known.is_empty() {
                assert!(n == 1, "{n} {fault:?}");
                continue;
            }
            let rig = Rig::resumed(provider, compacting(), storage, &id, |builder| builder).await;
            let listed = rig
                .agent
                .list_sessions(None, NonZeroUsize::new(10))
                .await
                .unwrap()
                .sessions;
            assert_eq!(listed.len(), 1, "{n} {fault:?}: it is listed");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_in_memory_alone_goes_through_all_of_it() {
    let provider = provider().always(by_the_last_word);
    let agent = youyou_agent::AgentBuilder::new(config())
        .provider(provider.clone())
        .tool(RecordingTool::read_only("ro_echo").echo())
        .tool(RecordingTool::mutating("mu_write"))
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let rig = Rig {
        agent,
        provider,
        storage: InMemorySessions::new(),
        session,
    };
    let shown = go_through(&rig).await;
    assert_eq!(
        shown,
        [
            "answer", "first", "answer", "par", "answer", "par", "answer"
        ]
    );
    assert_eq!(rig.provider.violations(), Vec::<String>::new());
    rig.session.close().await.unwrap();
}

//! Requests that a page repeats, and cancelling by request.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use youyou_agent::testing::{Gate, done, gate, text, wait};
use youyou_agent::{HookOutcome, HookRegistry, Plugin, PluginError, SessionStart};

use crate::harness::{Harness, on, text_of};

#[test]
fn a_cancel_by_request_stops_the_turn_that_the_request_started() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.queue([text("x"), wait()]);
    let send = json!({
        "sessionId": session, "content": "hi", "requestId": "r", "onEvent": on(1),
    });
    page.get("send_message", send);
    assert_eq!(page.get("cancel", json!({ "requestId": "r" })), true);
    assert_eq!(
        harness.whole_turn(1).last().unwrap().kind(),
        "turnCancelled"
    );
    assert_eq!(page.get("cancel", json!({ "requestId": "r" })), false);
}

#[test]
fn a_cancel_that_overtakes_its_request_still_cancels_the_turn() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    assert_eq!(page.get("cancel", json!({ "requestId": "r" })), false);
    harness.provider.queue([wait()]);
    let send = json!({
        "sessionId": session, "content": "hi", "requestId": "r", "onEvent": on(1),
    });
    page.get("send_message", send);
    assert_eq!(
        harness.whole_turn(1).last().unwrap().kind(),
        "turnCancelled"
    );
}

#[test]
fn a_compaction_is_cancelled_by_its_request_and_no_turn_with_it() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness
        .provider
        .fall_back(|_| [text("x".repeat(2_000)), done()]);
    for channel in 1..=6 {
        page.send(&session, "hi", channel);
        harness.whole_turn(channel);
    }
    let compact =
        |id: &str| page.begin("compact", json!({ "sessionId": session, "requestId": id }));
    let cancel = |id: &str| page.get("cancel", json!({ "requestId": id }));
    for ahead in [false, true] {
        let id = format!("ahead: {ahead}");
        harness.provider.queue([wait()]);
        let answer = if ahead {
            assert_eq!(cancel(&id), false);
            compact(&id)
        } else {
            let answer = compact(&id);
            tauri::async_runtime::block_on(harness.provider.asked(7));
            assert_eq!(cancel(&id), true);
            answer
        };
        let error = answer.recv().unwrap().unwrap_err();
        assert_eq!(error["code"], "REQUEST_CANCELLED", "{id}");
        harness.provider.forget_scripts();
    }
    let opened = Gate::closed();
    harness
        .provider
        .queue([gate(&opened), text("SUMMARY"), done()]);
    let first = compact("whole");
    tauri::async_runtime::block_on(harness.provider.asked(8));
    let again = compact("whole");
    opened.open();
    let whole = first.recv().unwrap().unwrap();
    assert_eq!(
        again.recv().unwrap().unwrap(),
        whole,
        "a repeat joins the first"
    );
    assert_eq!(compact("whole").recv().unwrap().unwrap(), whole);
    assert!(
        whole["tokensAfter"].as_u64() < whole["tokensBefore"].as_u64(),
        "{whole}"
    );
    harness.provider.queue([wait()]);
    page.send(&session, "hi", 7);
    assert_eq!(
        cancel("whole"),
        false,
        "it is over, and a turn is not meant"
    );
    assert_eq!(page.cancel(), true);
    assert_eq!(
        harness.whole_turn(7).last().unwrap().kind(),
        "turnCancelled"
    );
}

#[test]
fn a_repeated_request_answers_the_same_turn_and_shows_it_from_its_start() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let opened = Gate::closed();
    harness
        .provider
        .queue([text("once "), gate(&opened), text("only"), done()]);
    let send = |channel| {
        let accepted = page.get(
            "send_message",
            json!({
                "sessionId": session, "content": "hi", "requestId": "r",
                "onEvent": on(channel),
            }),
        );
        accepted["turnId"].clone()
    };
    let first = send(1);
    harness.text(1, "once ");
    page.reload();
    assert_eq!(send(2), first);
    harness.text(2, "once ");
    opened.open();
    assert_eq!(text_of(&harness.whole_turn(2)), "once only");
    assert_eq!(text_of(&harness.arrived(1)), "once ");
    // When it is over, too.
    assert_eq!(send(3), first);
    assert_eq!(text_of(&harness.whole_turn(3)), "once only");
    assert_eq!(harness.provider.request_count(), 1);
}

#[test]
fn a_repeat_after_the_events_are_gone_still_answers_the_same_turn() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.fall_back(|_| [done()]);
    let send = |id: &str, channel| {
        let send = json!({
            "sessionId": session, "content": "hi", "requestId": id, "onEvent": on(channel),
        });
        let turn = page.get("send_message", send)["turnId"].clone();
        turn.as_str().unwrap().to_owned()
    };
    let first = send("r0", 100);
    harness.whole_turn(100);
    for number in 1..=9 {
        let turn = send(&format!("r{number}"), 100 + number);
        page.get("wait_turn", json!({ "turnId": turn }));
    }
    assert_eq!(send("r0", 200), first);
    harness.subscriptions(0);
    assert!(harness.arrived(200).is_empty());
}

// X7
#[test]
fn the_same_request_id_from_another_window_is_another_request() {
    let harness = Harness::new();
    let (one, two) = (harness.page("one"), harness.page("two"));
    let session = one.session();
    let opened = Gate::closed();
    harness
        .provider
        .queue([text("for "), gate(&opened), text("one"), done()]);
    let send = |content: &str, channel| {
        json!({
            "sessionId": session, "content": content, "requestId": "1", "onEvent": on(channel),
        })
    };
    one.get("send_message", send("secret", 1));
    harness.text(1, "for ");
    assert_eq!(
        two.refused("send_message", send("other words", 2)),
        "SESSION_BUSY"
    );
    assert_eq!(
        two.refused("send_message", send("secret", 3)),
        "SESSION_BUSY"
    );
    assert_eq!(
        one.refused("send_message", send("other words", 4)),
        "INVALID_INPUT",
        "the id is taken by another content"
    );
    assert_eq!(two.get("cancel", json!({ "requestId": "1" })), false);
    opened.open();
    assert_eq!(text_of(&harness.whole_turn(1)), "for one");
    for channel in 2..=4 {
        assert!(harness.arrived(channel).is_empty(), "channel {channel}");
    }
    assert_eq!(harness.provider.request_count(), 1);
}

// X7
#[test]
fn an_id_of_more_than_128_characters_is_refused() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.queue([done()]);
    for (characters, expected) in [(129, Some("INVALID_INPUT")), (128, None)] {
        let id = "频".repeat(characters);
        let send = json!({
            "sessionId": session, "content": "hi", "requestId": id, "onEvent": on(1),
        });
        let answer = page.invoke("send_message", send);
        let code = answer
            .as_ref()
            .err()
            .and_then(|error| error["code"].as_str());
        assert_eq!(code, expected, "{characters} characters");
    }
    let long = json!({ "requestId": "x".repeat(129) });
    assert_eq!(page.refused("cancel", long.clone()), "INVALID_INPUT");
    assert_eq!(page.refused("create_session", long), "INVALID_INPUT");
    harness.whole_turn(1);
}

// C34
#[test]
fn a_running_request_is_still_known_after_200_refused_ones() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.queue([text("x"), wait()]);
    let send = |id: &str, channel| json!({ "sessionId": session, "content": "hi", "requestId": id, "onEvent": on(channel) });
    let first = page.get("send_message", send("running", 1));
    harness.text(1, "x");
    for number in 0..200 {
        let refused = send(&format!("refused {number}"), 1_000 + number);
        assert_eq!(page.refused("send_message", refused), "SESSION_BUSY");
    }
    let again = page.get("send_message", send("running", 2));
    assert_eq!(again["turnId"], first["turnId"]);
    harness.text(2, "x");
    assert_eq!(page.get("cancel", json!({ "requestId": "running" })), true);
    harness.whole_turn(2);
    assert_eq!(harness.provider.request_count(), 1);
}

/// Holds the start of a session until the gate opens.
struct SlowStart(Gate);

#[async_trait]
impl Plugin for SlowStart {
    fn id(&self) -> &str {
        "slow-start"
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        let gate = Arc::new(self.0.clone());
        hooks.session_start("hold", move |_: SessionStart| {
            let gate = Arc::clone(&gate);
            async move {
                gate.pass().await;
                Ok(HookOutcome::Continue)
            }
        });
        Ok(())
    }
}

#[test]
fn a_request_repeated_while_the_first_is_under_way_creates_one_session() {
    let opened = Gate::closed();
    let plugin = SlowStart(opened.clone());
    let harness = Harness::with(|agent| agent.plugin(plugin), |plugin| plugin);
    let page = harness.page("main");
    let create = || page.begin("create_session", json!({ "requestId": "r" }));
    let (first, second) = (create(), create());
    tauri::async_runtime::block_on(opened.arrived(1));
    opened.open();
    let answers = [first, second].map(|answer| answer.recv().unwrap().unwrap());
    let [first, second] = answers.map(|info| info["sessionId"].clone());
    assert_eq!(first, second);
    assert_eq!(
        page.get("create_session", json!({ "requestId": "r" }))["sessionId"],
        first
    );
    assert_eq!(page.refused("create_session", json!({})), "SESSION_BUSY");
}

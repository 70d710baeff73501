//! Attaching, reloading, windows that go away.

use serde_json::{Value, json};
use youyou_agent::AgentExt as _;
use youyou_agent::testing::{Gate, done, gate, text, wait};

use crate::harness::{Harness, kinds, on, text_of};

/// A session with a running turn that has said "one " and waits at the gate for "two".
fn running(harness: &Harness, opened: &Gate) {
    harness
        .provider
        .queue([text("one "), gate(opened), text("two"), done()]);
}

// F4, F20
#[test]
fn a_page_that_reloads_attaches_again_without_gap_or_double() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let opened = Gate::closed();
    running(&harness, &opened);
    let (turn, _) = page.send(&session, "hi", 1);
    harness.text(1, "one ");
    page.reload();
    harness.subscriptions(0);

    let attached = page.attach(&session, None, 2);
    assert_eq!(attached["state"], "running");
    assert_eq!(attached["turnId"], turn.as_str());
    harness.text(2, "one ");
    let seen = harness.arrived(2).last().unwrap().sequence();
    assert_eq!(attached["lastSequence"], seen);
    opened.open();
    let messages = harness.whole_turn(2);
    assert_eq!(text_of(&messages), "one two");
    assert!(messages.is_sorted_by(|a, b| a.sequence() < b.sequence()));
    assert_eq!(
        text_of(&harness.arrived(1)),
        "one ",
        "the old page gets nothing more"
    );
}

// F4
#[test]
fn attaching_after_an_event_gives_only_what_came_later() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let opened = Gate::closed();
    running(&harness, &opened);
    page.send(&session, "hi", 1);
    harness.text(1, "one ");
    let seen = harness.arrived(1).last().unwrap().sequence();
    page.attach(&session, Some(seen), 2);
    opened.open();
    assert_eq!(kinds(&harness.whole_turn(2)), ["textDelta", "turnComplete"]);
    // Also when the turn is over.
    page.attach(&session, Some(seen), 3);
    assert_eq!(text_of(&harness.whole_turn(3)), "two");
}

#[test]
fn an_attached_window_sees_turns_of_other_windows_until_it_detaches() {
    let harness = Harness::new();
    let (one, two) = (harness.page("one"), harness.page("two"));
    let session = one.session();
    let attached = two.attach(&session, None, 20);
    assert_eq!(attached["state"], "idle");
    assert_eq!(attached["turnId"], Value::Null);
    for (channel, said) in [(1, "a"), (2, "b")] {
        harness.provider.queue([text(said), done()]);
        one.send(&session, "hi", channel);
        harness.whole_turn(channel);
    }
    let both = harness.until(|messages| {
        let messages: Vec<_> = messages
            .iter()
            .filter(|m| m.channel == 20)
            .cloned()
            .collect();
        (messages.iter().filter(|m| m.is_last()).count() == 2).then_some(messages)
    });
    assert_eq!(text_of(&both), "ab");
    assert!(both.iter().all(|message| message.page == "two"));

    let subscription = &attached["subscription"];
    // Only its own page can end it.
    one.get("detach", json!({ "subscription": subscription }));
    assert_eq!(
        two.get(
            "ack",
            json!({ "subscription": subscription, "sequence": 1 })
        ),
        true
    );
    two.get("detach", json!({ "subscription": subscription }));
    assert_eq!(
        two.get(
            "ack",
            json!({ "subscription": subscription, "sequence": 1 })
        ),
        false
    );
    harness.subscriptions(0);
}

#[test]
fn a_closed_session_ends_its_subscriptions() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    page.attach(&session, None, 1);
    page.get("close_session", json!({ "sessionId": session }));
    harness.subscriptions(0);
    let attach = json!({ "sessionId": session, "onEvent": on(2) });
    assert_eq!(page.refused("attach", attach), "SESSION_NOT_FOUND");
}

#[test]
fn an_ack_of_an_unknown_subscription_or_of_another_page_is_answered_with_false() {
    let harness = Harness::new();
    let (one, two) = (harness.page("one"), harness.page("two"));
    let session = one.session();
    let subscription = one.attach(&session, None, 1)["subscription"].clone();
    let ack = json!({ "subscription": subscription, "sequence": 1 });
    assert_eq!(two.get("ack", ack.clone()), false);
    assert_eq!(one.get("ack", ack.clone()), true);
    assert_eq!(
        one.get("ack", json!({ "subscription": 4_000, "sequence": 1 })),
        false
    );
    one.reload();
    assert_eq!(one.get("ack", ack), false);
}

// F5, F7
#[test]
fn by_default_a_turn_goes_on_and_is_stored_when_its_window_is_gone() {
    let harness = Harness::new();
    let (page, other) = (harness.page("main"), harness.page("other"));
    let session = page.session();
    let opened = Gate::closed();
    running(&harness, &opened);
    let (turn, _) = page.send(&session, "hi", 1);
    harness.text(1, "one ");
    page.destroy();
    harness.subscriptions(0);
    opened.open();
    let outcome = other.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "completed");
    assert_eq!(outcome["assistantOutput"], "one two");
    assert!(!harness.sessions.events(&session).is_empty());
}

fn cancelling() -> Harness {
    Harness::with(|agent| agent, |plugin| plugin.cancel_when_unwatched(true))
}

// F7
#[test]
fn with_the_option_the_end_of_the_last_window_that_watched_cancels_the_turn() {
    let harness = cancelling();
    let (one, two, other) = (
        harness.page("one"),
        harness.page("two"),
        harness.page("other"),
    );
    let session = one.session();
    two.attach(&session, None, 20);
    harness.provider.queue([text("kept"), wait()]);
    let (turn, _) = one.send(&session, "hi", 1);
    harness.text(1, "kept");
    one.destroy();
    let info = other.get("current_session", json!({}));
    assert_eq!(info["state"], "running", "one of two is still there");
    two.destroy();
    let outcome = other.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "cancelled");
    let history = other.get("session_history", json!({ "sessionId": session }));
    assert!(history.to_string().contains("kept"));
}

// F7
#[test]
fn with_the_option_neither_a_reload_nor_a_window_that_never_watched_cancels() {
    let harness = cancelling();
    let (page, stranger) = (harness.page("main"), harness.page("stranger"));
    let session = page.session();
    let opened = Gate::closed();
    running(&harness, &opened);
    let (turn, _) = page.send(&session, "hi", 1);
    harness.text(1, "one ");
    page.reload();
    stranger.destroy();
    opened.open();
    let outcome = page.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "completed");
}

// F7
#[test]
fn with_the_option_a_window_that_closes_right_after_a_reload_cancels() {
    let harness = cancelling();
    let (page, other) = (harness.page("main"), harness.page("other"));
    let session = page.session();
    harness.provider.queue([text("kept"), wait()]);
    let (turn, _) = page.send(&session, "hi", 1);
    harness.text(1, "kept");
    page.reload();
    page.destroy();
    let outcome = other.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "cancelled");
}

// F7
#[test]
fn with_the_option_a_turn_started_in_rust_is_cancelled_with_the_last_attached_window() {
    let harness = cancelling();
    let (page, other) = (harness.page("main"), harness.page("other"));
    let session = page.session();
    page.attach(&session, None, 1);
    harness.provider.queue([text("kept"), wait()]);
    let open = harness.app.agent().current_session().unwrap();
    let turn = open.send("hi").unwrap();
    harness.text(1, "kept");
    page.destroy();
    let outcome = other.get("wait_turn", json!({ "turnId": turn.id() }));
    assert_eq!(outcome["status"], "cancelled");
}

// C34
#[test]
fn with_the_option_a_late_repeat_is_no_watcher_of_the_running_turn() {
    let harness = cancelling();
    let (page, other) = (harness.page("main"), harness.page("other"));
    let session = page.session();
    let send = |id: &str, channel| json!({ "sessionId": session, "content": "hi", "requestId": id, "onEvent": on(channel) });
    harness.provider.queue([done()]);
    other.get("send_message", send("old", 1));
    harness.whole_turn(1);
    harness.provider.queue([text("kept"), wait()]);
    let turn = page.get("send_message", send("new", 2))["turnId"].clone();
    harness.text(2, "kept");
    // Nobody has a subscription any more, but one window has watched.
    page.reload();
    other.get("send_message", send("old", 3));
    harness.whole_turn(3);
    other.destroy();
    let info = page.get("current_session", json!({}));
    assert_eq!(info["state"], "running");
    let last = harness.page("last");
    page.destroy();
    let outcome = last.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "cancelled");
}

// X12
#[test]
fn numbers_that_no_page_can_have_are_refused() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let too_large = [
        json!(u64::MAX),
        json!(1_u64 << 53),
        json!(-1),
        json!(1.5),
        json!("1"),
    ];
    for number in too_large {
        for (command, arguments) in [
            (
                "attach",
                json!({ "sessionId": session, "afterSequence": number, "onEvent": on(1) }),
            ),
            ("ack", json!({ "subscription": 1, "sequence": number })),
            (
                "session_history",
                json!({ "sessionId": session, "cursor": number }),
            ),
        ] {
            let error = page.invoke(command, arguments).expect_err(command);
            let error = error.as_str().unwrap_or_default();
            assert!(
                error.contains("invalid args"),
                "{command} {number}: {error}"
            );
        }
    }
    for number in [json!(u64::MAX), json!(1_u64 << 32), json!(-1)] {
        for command in ["ack", "detach"] {
            let arguments = json!({ "subscription": number, "sequence": 1 });
            assert!(
                page.invoke(command, arguments).is_err(),
                "{command} {number}"
            );
        }
    }
    assert!(harness.arrived(1).is_empty());
}

// X12
#[test]
fn a_number_above_the_newest_event_means_from_now_on() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.queue([text("a"), done()]);
    page.send(&session, "hi", 1);
    let newest = harness.whole_turn(1).last().unwrap().sequence();
    let largest = (1 << 53) - 1;
    let attached = page.attach(&session, Some(largest), 2);
    assert_eq!(attached["lastSequence"], newest);
    harness.provider.queue([text("b"), done()]);
    page.send(&session, "hi", 3);
    assert_eq!(text_of(&harness.whole_turn(2)), "b");
}

// X12
#[test]
fn a_page_has_at_most_1024_subscriptions() {
    let harness = Harness::new();
    let (page, other) = (harness.page("main"), harness.page("other"));
    let session = page.session();
    let attach = |channel| json!({ "sessionId": session, "onEvent": on(channel) });
    let mut first = None;
    for channel in 0..1_024 {
        let attached = page.get("attach", attach(channel));
        first.get_or_insert(attached["subscription"].clone());
    }
    assert_eq!(page.refused("attach", attach(2_000)), "INVALID_INPUT");
    let send = json!({ "sessionId": session, "content": "hi", "onEvent": on(2_001) });
    assert_eq!(page.refused("send_message", send), "INVALID_INPUT");
    harness.subscriptions(1_024);
    assert_eq!(harness.provider.request_count(), 0, "no turn was started");
    other.get("attach", attach(3_000));
    page.get("detach", json!({ "subscription": first }));
    page.get("attach", attach(2_000));
    assert_eq!(page.refused("attach", attach(2_002)), "INVALID_INPUT");
    page.reload();
    harness.subscriptions(1);
    page.get("attach", attach(1));
}

#[test]
fn a_page_that_acknowledged_hears_that_a_silent_turn_runs() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let opened = Gate::closed();
    running(&harness, &opened);
    let (turn, subscription) = page.send(&session, "hi", 1);
    harness.text(1, "one ");
    let seen = harness.arrived(1).last().unwrap().sequence();
    let acknowledge = |subscription: &Value| {
        let ack = json!({ "subscription": subscription, "sequence": 0 });
        assert_eq!(page.get("ack", ack), true);
    };
    acknowledge(&json!(subscription));
    let attached = page.attach(&session, Some(seen), 2);
    acknowledge(&attached["subscription"]);
    page.attach(&session, Some(seen), 3);
    let from_now_on = page.attach(&session, Some((1 << 53) - 1), 4);
    acknowledge(&from_now_on["subscription"]);
    for channel in [1, 2, 4] {
        let heartbeat = harness.until(|messages| {
            let mut of_channel = messages.iter().filter(|message| message.channel == channel);
            of_channel.find(|message| message.is_heartbeat()).cloned()
        });
        assert_eq!(heartbeat.event["sessionId"], session.as_str());
        assert_eq!(heartbeat.event["turnId"], turn.as_str());
        assert_eq!(heartbeat.sequence(), seen);
    }
    assert!(harness.arrived(3).is_empty(), "that one never acknowledged");
    opened.open();
    assert_eq!(text_of(&harness.whole_turn(1)), "one two");
}

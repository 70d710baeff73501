//! Starting, cancelling and waiting for turns.

use serde_json::{Value, json};
use youyou_agent::ProviderErrorKind;
use youyou_agent::testing::{Gate, RecordingTool, call, done, error, gate, text, wait};

use crate::harness::{Harness, kinds, on, text_of};

#[test]
fn a_turn_comes_through_its_channel_in_order_and_wait_turn_tells_its_end() {
    let harness = Harness::with(
        |agent| agent.tool(RecordingTool::read_only("look").answering("seen")),
        |plugin| plugin,
    );
    let page = harness.page("main");
    harness
        .provider
        .queue([text("a"), call("c1", "look", "{}"), done()]);
    harness.provider.queue([text("b"), done()]);
    let session = page.session();
    let (turn, _) = page.send(&session, "hello", 7);
    let messages = harness.whole_turn(7);
    let expected = [
        "turnStarted",
        "textDelta",
        "toolCallStart",
        "toolCallEnd",
        "textDelta",
        "turnComplete",
    ];
    assert_eq!(kinds(&messages), expected);
    let indices: Vec<usize> = messages.iter().map(|message| message.index).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5]);
    assert!(messages.is_sorted_by(|a, b| a.sequence() < b.sequence()));
    assert!(
        messages
            .iter()
            .all(|message| message.event["turnId"] == turn.as_str())
    );
    let outcome = page.get("wait_turn", json!({ "turnId": turn }));
    assert_eq!(outcome["status"], "completed");
    assert_eq!(outcome["assistantOutput"], "b");
    assert_eq!(outcome["lastSequence"], messages.last().unwrap().sequence());
}

#[test]
fn wait_turn_answers_for_failed_and_cancelled_turns_and_names_unknown_ones() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness
        .provider
        .queue([error(ProviderErrorKind::Auth, "the key is wrong")]);
    let (failed, _) = page.send(&session, "one", 1);
    let outcome = page.get("wait_turn", json!({ "turnId": failed }));
    assert_eq!(outcome["status"], "failed");
    assert_eq!(outcome["error"]["code"], "PROVIDER_ERROR");
    harness.provider.queue([text("x"), wait()]);
    let (cancelled, _) = page.send(&session, "two", 2);
    let outcome = page.begin("wait_turn", json!({ "turnId": cancelled }));
    assert_eq!(page.cancel(), true);
    assert_eq!(outcome.recv().unwrap().unwrap()["status"], "cancelled");
    let error = page
        .invoke("wait_turn", json!({ "turnId": "nope" }))
        .unwrap_err();
    assert_eq!(error["code"], "INVALID_INPUT");
    assert!(error["message"].as_str().unwrap().contains("nope"));
}

// D14
#[test]
fn a_second_send_is_refused_and_leaves_the_running_turn_alone() {
    let harness = Harness::new();
    let (one, two) = (harness.page("one"), harness.page("two"));
    let session = one.session();
    let opened = Gate::closed();
    harness
        .provider
        .queue([text("a"), gate(&opened), text("b"), done()]);
    let (turn, _) = one.send(&session, "first", 1);
    let second = json!({ "sessionId": session, "content": "second", "onEvent": on(2) });
    assert_eq!(two.refused("send_message", second), "SESSION_BUSY");
    opened.open();
    let messages = harness.whole_turn(1);
    assert_eq!(text_of(&messages), "ab");
    assert!(
        messages
            .iter()
            .all(|message| message.event["turnId"] == turn.as_str())
    );
    assert!(harness.arrived(2).is_empty());
}

// A9
#[test]
fn a_late_cancel_for_an_old_turn_changes_nothing_and_says_so() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness.provider.queue([done()]);
    let (old, _) = page.send(&session, "one", 1);
    page.get("wait_turn", json!({ "turnId": old }));
    harness.provider.queue([text("x"), wait()]);
    let (running, _) = page.send(&session, "two", 2);
    assert_eq!(page.get("cancel", json!({ "turnId": old })), false);
    let info = page.get("current_session", json!({}));
    assert_eq!(info["state"], "running");
    assert_eq!(info["turnId"], running.as_str());
    assert_eq!(page.cancel(), true);
    assert_eq!(
        harness.whole_turn(2).last().unwrap().kind(),
        "turnCancelled"
    );
    assert_eq!(page.cancel(), false);
}

// A11
#[test]
fn cancelling_many_times_from_two_windows_is_one_cancellation() {
    let opened = Gate::closed();
    let tool = RecordingTool::mutating("slow").gated(&opened);
    let harness = Harness::with(|agent| agent.tool(tool), |plugin| plugin);
    let (one, two) = (harness.page("one"), harness.page("two"));
    let session = one.session();
    harness.provider.queue([call("c1", "slow", "{}"), done()]);
    one.send(&session, "go", 1);
    harness.until(|messages| {
        messages
            .iter()
            .find(|m| m.kind() == "toolCallStart")
            .map(|_| ())
    });
    for page in [&one, &two, &one, &two, &one] {
        assert_eq!(page.cancel(), true);
    }
    opened.open();
    let messages = harness.whole_turn(1);
    assert_eq!(
        kinds(&messages),
        [
            "turnStarted",
            "toolCallStart",
            "toolCallEnd",
            "turnCancelled"
        ]
    );
}

#[test]
fn a_failed_turn_can_be_run_again() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    harness
        .provider
        .queue([error(ProviderErrorKind::Auth, "no")]);
    page.send(&session, "hi", 1);
    assert_eq!(
        harness.whole_turn(1).last().unwrap().event["status"],
        "failed"
    );
    harness.provider.queue([text("yes"), done()]);
    let retry = json!({ "sessionId": session, "requestId": "r", "onEvent": on(2) });
    page.get("retry_turn", retry);
    assert_eq!(text_of(&harness.whole_turn(2)), "yes");
}

// F3
#[test]
fn no_subscription_of_a_finished_turn_is_left_and_attached_ones_stay() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    page.attach(&session, None, 0);
    for turn in 0..1_000 {
        // A turn that was cancelled early has left its script.
        harness.provider.forget_scripts();
        match turn % 10 {
            0 => harness.provider.queue([wait()]),
            1 => harness
                .provider
                .queue([error(ProviderErrorKind::Auth, "no")]),
            _ => harness.provider.queue([done()]),
        }
        let (id, _) = page.send(&session, "hi", 1 + turn);
        if turn % 10 == 0 {
            assert_eq!(page.cancel(), true);
        }
        page.get("wait_turn", json!({ "turnId": id }));
    }
    harness.subscriptions(1);
    let ended = |messages: &[crate::harness::Message]| {
        let attached = messages.iter().filter(|message| message.channel == 0);
        (attached.filter(|message| message.is_last()).count() == 1_000).then_some(())
    };
    harness.until(ended);
    assert_eq!(
        page.get("current_session", json!({}))["turnId"],
        Value::Null
    );
}

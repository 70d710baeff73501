//! What arrives when much comes at once: joining, size, flow control.

use serde_json::json;
use youyou_agent::testing::{RecordingTool, call, done, text};

use crate::harness::{Harness, text_of};

// F16
#[test]
fn a_burst_of_20_000_deltas_arrives_whole_in_few_messages() {
    let harness = Harness::new();
    let page = harness.page("main");
    let session = page.session();
    let script = (0..20_000).map(|_| text("x")).chain([done()]);
    harness.provider.queue(script.collect::<Vec<_>>());
    page.send(&session, "hi", 1);
    let messages = harness.whole_turn(1);
    assert_eq!(text_of(&messages), "x".repeat(20_000));
    let deltas = messages
        .iter()
        .filter(|message| message.kind() == "textDelta");
    assert!(deltas.clone().all(|message| message.bytes < 8_192));
    assert!(messages.len() < 1_000, "{} messages", messages.len());
    let mut next = None;
    for message in deltas {
        let first = message.event["firstSequence"].as_u64().unwrap();
        assert!(
            next.is_none_or(|next| next == first),
            "a gap before {first}"
        );
        next = Some(message.sequence() + 1);
    }
}

// F1
#[test]
fn a_large_tool_output_arrives_whole_between_the_small_events() {
    let tool = RecordingTool::read_only("big").big(200 * 1_024);
    let harness = Harness::with(|agent| agent.tool(tool), |plugin| plugin);
    let page = harness.page("main");
    let session = page.session();
    harness
        .provider
        .queue([text("a"), call("c1", "big", "{}"), done()]);
    harness.provider.queue([text("b"), done()]);
    page.send(&session, "hi", 1);
    let messages = harness.whole_turn(1);
    assert!(messages.is_sorted_by(|a, b| a.sequence() < b.sequence()));
    let end = messages
        .iter()
        .find(|message| message.kind() == "toolCallEnd")
        .unwrap();
    assert_eq!(end.event["output"].as_str().unwrap().len(), 200 * 1_024);
    assert_eq!(text_of(&messages), "ab");
}

#[test]
fn a_page_that_acknowledges_gets_32_messages_ahead_and_no_more() {
    let mut tool = RecordingTool::read_only("chatty");
    for _ in 0..100 {
        tool = tool.saying("on");
    }
    let harness = Harness::with(|agent| agent.tool(tool), |plugin| plugin);
    let page = harness.page("main");
    let session = page.session();
    let subscription = page.attach(&session, None, 20)["subscription"].clone();
    let ack = |sequence: u64| {
        let ack = json!({ "subscription": subscription, "sequence": sequence });
        assert_eq!(page.get("ack", ack), true);
    };
    ack(0);
    // Of the progress of a call the newest 32 are kept, so one call alone is too little.
    let calls = ["c1", "c2", "c3", "c4"].map(|id| call(id, "chatty", "{}"));
    harness
        .provider
        .queue(calls.into_iter().chain([done()]).collect::<Vec<_>>());
    harness.provider.queue([done()]);
    let (turn, _) = page.send(&session, "hi", 1);
    page.get("wait_turn", json!({ "turnId": turn }));
    harness.whole_turn(1);
    let mut expected = 32;
    loop {
        let arrived = harness.until(|messages| {
            let of_channel = messages.iter().filter(|message| message.channel == 20);
            let arrived: Vec<_> = of_channel.cloned().collect();
            let complete = arrived.last().is_some_and(|message| message.is_last());
            (arrived.len() >= expected || complete).then_some(arrived)
        });
        assert!(
            arrived.len() <= expected,
            "{} are on their way",
            arrived.len()
        );
        let last = arrived.last().unwrap();
        if last.is_last() {
            break;
        }
        expected += 32;
        ack(last.sequence());
    }
    // How much progress a reader sees depends on how fast it is; of all else it sees everything.
    let all_else = |channel| {
        let mut messages = harness.arrived(channel);
        assert!(messages.len() > 4 * 32, "{} messages", messages.len());
        messages.retain(|message| message.kind() != "toolProgress");
        messages
            .iter()
            .map(|message| (message.sequence(), message.kind().to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(all_else(20), all_else(1));
}

use std::sync::Arc;
use std::sync::Mutex;

use futures_util::stream;
use serde_json::Value;
use tauri::ipc::InvokeResponseBody;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::agent::provider::Usage;

/// What arrived in the page, and when.
type Arrived = Arc<Mutex<Vec<(Instant, Value, usize)>>>;

fn page() -> (Channel<ChannelMessage>, Arrived) {
    let arrived = Arrived::default();
    let sink = Arc::clone(&arrived);
    let channel = Channel::new(move |body| {
        let InvokeResponseBody::Json(json) = body else {
            panic!("events are JSON");
        };
        let value = serde_json::from_str(&json).unwrap();
        sink.lock()
            .unwrap()
            .push((Instant::now(), value, json.len()));
        Ok(())
    });
    (channel, arrived)
}

fn event(sequence: u64, kind: AgentEventKind) -> AgentEvent {
    AgentEvent {
        session_id: "s".into(),
        turn_id: "t".into(),
        timestamp: 0,
        sequence,
        kind,
    }
}

fn text(sequence: u64, delta: &str) -> AgentEvent {
    let kind = AgentEventKind::TextDelta {
        step: 0,
        delta: delta.into(),
        first_sequence: sequence,
    };
    event(sequence, kind)
}

fn reasoning(sequence: u64, delta: &str) -> AgentEvent {
    let kind = AgentEventKind::ReasoningDelta {
        step: 0,
        delta: delta.into(),
        first_sequence: sequence,
    };
    event(sequence, kind)
}

fn last(sequence: u64) -> AgentEvent {
    let kind = AgentEventKind::TurnCancelled {
        usage: Usage::default(),
    };
    event(sequence, kind)
}

/// A stream that the test feeds.
fn feed() -> (
    mpsc::UnboundedSender<AgentEvent>,
    impl Stream<Item = AgentEvent> + Unpin,
) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    (
        sender,
        stream::poll_fn(move |context| receiver.poll_recv(context)),
    )
}

fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn shown(arrived: &Arrived) -> Vec<(String, u64, u64, String)> {
    let arrived = arrived.lock().unwrap();
    let row = |(_, value, _): &(Instant, Value, usize)| {
        let sequence = field(value, "sequence").as_u64().unwrap();
        (
            field(value, "type").as_str().unwrap().to_owned(),
            field(value, "firstSequence").as_u64().unwrap_or(sequence),
            sequence,
            field(value, "delta")
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    arrived.iter().map(row).collect()
}

fn row(kind: &str, first: u64, sequence: u64, delta: &str) -> (String, u64, u64, String) {
    (kind.into(), first, sequence, delta.into())
}

fn never_acknowledges() -> (watch::Sender<Option<u64>>, watch::Receiver<Option<u64>>) {
    watch::channel(None)
}

// F16
#[tokio::test(start_paused = true)]
async fn neighbouring_deltas_of_one_kind_come_as_one_and_all_else_in_order() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let events = [
        event(1, AgentEventKind::TurnStarted),
        reasoning(2, "h"),
        reasoning(3, "m"),
        text(4, "a"),
        text(5, "b"),
        last(6),
    ];
    let ended = forward(stream::iter(events), channel, acks, None).await;
    assert_eq!(ended, Ended::Complete);
    let expected = [
        row("turnStarted", 1, 1, ""),
        row("reasoningDelta", 2, 3, "hm"),
        row("textDelta", 4, 5, "ab"),
        row("turnCancelled", 6, 6, ""),
    ];
    assert_eq!(shown(&arrived), expected);
}

// F16
#[tokio::test(start_paused = true)]
async fn a_number_that_is_missing_between_two_deltas_keeps_them_apart() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let events = [text(1, "a"), text(3, "b")];
    forward(stream::iter(events), channel, acks, None).await;
    assert_eq!(shown(&arrived).len(), 2);
}

// F16
#[tokio::test(start_paused = true)]
async fn the_first_delta_goes_at_once_and_a_steady_stream_at_most_65_times_a_second() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let (feed, events) = feed();
    let started = Instant::now();
    let forwarder = tokio::spawn(forward(events, channel, acks, None));
    for sequence in 1..=1_000 {
        feed.send(text(sequence, "x")).unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
        tokio::task::yield_now().await;
    }
    drop(feed);
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
    let arrived = arrived.lock().unwrap();
    assert!(
        arrived.len() <= 65,
        "{} messages in a second",
        arrived.len()
    );
    let (first, _, _) = arrived.first().unwrap();
    assert!(*first - started <= Duration::from_millis(1));
    let mut total = 0;
    for (at, value, _) in arrived.iter() {
        let from = field(value, "firstSequence").as_u64().unwrap();
        let delay = (*at - started).saturating_sub(Duration::from_millis(from));
        assert!(delay <= Duration::from_millis(50), "delayed by {delay:?}");
        total += field(value, "delta").as_str().unwrap().len();
    }
    assert_eq!(total, 1_000);
}

// F16, F1
#[tokio::test(start_paused = true)]
async fn a_burst_loses_nothing_and_no_delta_message_takes_the_slow_way() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let texts = ["a", "\"", "\n", "频", "\u{1}", "😀"];
    let deltas = (0..20_000).map(|at: u64| text(at + 1, texts.get((at % 6) as usize).unwrap()));
    let expected: String = (0..20_000)
        .filter_map(|at| texts.get(at % 6).copied())
        .collect();
    forward(stream::iter(deltas), channel, acks, None).await;
    let got: String = shown(&arrived)
        .into_iter()
        .map(|(.., delta)| delta)
        .collect();
    assert!(got == expected, "the text changed");
    let arrived = arrived.lock().unwrap();
    let longest = arrived.iter().map(|(_, _, bytes)| *bytes).max().unwrap();
    assert!(longest < 8_192, "a delta message has {longest} bytes");
    assert!(arrived.len() < 30, "{} messages", arrived.len());
}

// F1
#[tokio::test(start_paused = true)]
async fn a_large_event_arrives_whole_and_in_its_place() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let large = AgentEventKind::ToolCallEnd {
        step: 0,
        call_id: "c1".into(),
        tool_name: "big".into(),
        output: "x".repeat(200 * 1_024).into(),
        metadata: None,
        duration_ms: 1,
        success: true,
        error: None,
    };
    let events = [text(1, "a"), event(2, large), text(3, "b"), last(4)];
    forward(stream::iter(events), channel, acks, None).await;
    let sequences: Vec<u64> = shown(&arrived)
        .into_iter()
        .map(|(_, _, at, _)| at)
        .collect();
    assert_eq!(sequences, [1, 2, 3, 4]);
    let arrived = arrived.lock().unwrap();
    let (_, value, _) = arrived.get(1).unwrap();
    assert_eq!(field(value, "output").as_str().unwrap().len(), 200 * 1_024);
}

/// Tool progress: never joined, so that each event is a message.
fn progress(sequence: u64) -> AgentEvent {
    let kind = AgentEventKind::ToolProgress {
        call_id: "c1".into(),
        message: "on".into(),
    };
    event(sequence, kind)
}

#[tokio::test(start_paused = true)]
async fn a_page_that_acknowledges_has_at_most_32_messages_on_their_way() {
    let (channel, arrived) = page();
    let (acknowledge, acks) = watch::channel(Some(0));
    let (feed, events) = feed();
    let forwarder = tokio::spawn(forward(events, channel, acks, None));
    for sequence in 1..=100 {
        feed.send(progress(sequence)).unwrap();
    }
    drop(feed);
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::task::yield_now().await;
    assert_eq!(arrived.lock().unwrap().len(), 32);
    for (acknowledged, expected) in [(16, 48), (48, 80), (80, 100)] {
        acknowledge.send(Some(acknowledged)).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
        assert_eq!(arrived.lock().unwrap().len(), expected);
    }
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_goes_silent_with_a_full_window_is_given_up_after_30_seconds() {
    let (channel, arrived) = page();
    let (_page, acks) = watch::channel(Some(0));
    let started = Instant::now();
    let events = stream::iter((1..=100).map(progress));
    assert_eq!(forward(events, channel, acks, None).await, Ended::Silent);
    assert_eq!(started.elapsed(), PATIENCE);
    assert_eq!(arrived.lock().unwrap().len(), WINDOW);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_never_acknowledges_gets_everything() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let events = stream::iter((1..=3_000).map(progress));
    assert_eq!(forward(events, channel, acks, None).await, Ended::Complete);
    assert_eq!(arrived.lock().unwrap().len(), 3_000);
}

/// Kind and number of what arrived, and after how many milliseconds.
fn timed(arrived: &Arrived, started: Instant) -> Vec<(String, u64, u128)> {
    let arrived = arrived.lock().unwrap();
    let row = |(at, value, _): &(Instant, Value, usize)| {
        (
            field(value, "type").as_str().unwrap().to_owned(),
            field(value, "sequence").as_u64().unwrap(),
            (*at - started).as_millis(),
        )
    };
    arrived.iter().map(row).collect()
}

fn timed_row(kind: &str, sequence: u64, at: u128) -> (String, u64, u128) {
    (kind.into(), sequence, at)
}

fn running_after(sequence: u64) -> RunningTurn {
    RunningTurn {
        session_id: "s".into(),
        turn_id: "t".into(),
        sequence,
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_that_shows_nothing_sends_a_heartbeat_every_second() {
    let (channel, arrived) = page();
    let (_page, acks) = watch::channel(Some(0));
    let (feed, events) = feed();
    let started = Instant::now();
    let forwarder = tokio::spawn(forward(events, channel, acks, None));
    let wait = |milliseconds| sleep(Duration::from_millis(milliseconds));
    // Nothing runs yet.
    wait(2_500).await;
    feed.send(event(1, AgentEventKind::TurnStarted)).unwrap();
    wait(2_400).await;
    feed.send(progress(2)).unwrap();
    wait(1_400).await;
    feed.send(last(3)).unwrap();
    // Nothing runs any more.
    wait(10_000).await;
    drop(feed);
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
    let expected = [
        timed_row("turnStarted", 1, 2_500),
        timed_row("heartbeat", 1, 3_500),
        timed_row("heartbeat", 1, 4_500),
        timed_row("toolProgress", 2, 4_900),
        timed_row("heartbeat", 2, 5_900),
        timed_row("turnCancelled", 3, 6_300),
    ];
    assert_eq!(timed(&arrived, started), expected);
    let heartbeat = arrived.lock().unwrap().get(1).unwrap().1.clone();
    let timestamp = field(&heartbeat, "timestamp");
    let envelope = serde_json::json!({
        "type": "heartbeat", "sessionId": "s", "turnId": "t", "sequence": 1,
        "timestamp": timestamp,
    });
    assert_eq!(heartbeat, envelope);
    assert!(timestamp.is_u64());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ran_before_the_page_came_sends_heartbeats_with_the_number_the_page_has() {
    let (channel, arrived) = page();
    let (_page, acks) = watch::channel(Some(0));
    let (feed, events) = feed();
    let started = Instant::now();
    let forwarder = tokio::spawn(forward(events, channel, acks, Some(running_after(7))));
    sleep(Duration::from_millis(1_500)).await;
    feed.send(last(8)).unwrap();
    drop(feed);
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
    let expected = [
        timed_row("heartbeat", 7, 1_000),
        timed_row("turnCancelled", 8, 1_500),
    ];
    assert_eq!(timed(&arrived, started), expected);
}

#[tokio::test(start_paused = true)]
async fn what_happens_between_turns_or_was_skipped_is_no_turn_that_runs() {
    let (channel, arrived) = page();
    let (_page, acks) = watch::channel(Some(0));
    let (feed, events) = feed();
    let started = Instant::now();
    let forwarder = tokio::spawn(forward(events, channel, acks, None));
    feed.send(event(1, AgentEventKind::Skipped { events: 9 }))
        .unwrap();
    feed.send(AgentEvent {
        turn_id: "".into(),
        ..progress(2)
    })
    .unwrap();
    sleep(Duration::from_secs(60)).await;
    drop(feed);
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
    let expected = [timed_row("skipped", 1, 0), timed_row("toolProgress", 2, 0)];
    assert_eq!(timed(&arrived, started), expected);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_never_acknowledges_gets_no_heartbeat() {
    let (channel, arrived) = page();
    let (_page, acks) = never_acknowledges();
    let (feed, events) = feed();
    let started = Instant::now();
    let forwarder = tokio::spawn(forward(events, channel, acks, None));
    feed.send(event(1, AgentEventKind::TurnStarted)).unwrap();
    sleep(Duration::from_secs(60)).await;
    feed.send(last(2)).unwrap();
    drop(feed);
    assert_eq!(forwarder.await.unwrap(), Ended::Complete);
    let expected = [
        timed_row("turnStarted", 1, 0),
        timed_row("turnCancelled", 2, 60_000),
    ];
    assert_eq!(timed(&arrived, started), expected);
}

// F3
#[tokio::test(start_paused = true)]
async fn no_clone_of_a_channel_outlives_its_turn() {
    let counter = Arc::new(());
    for turn in 0..1_000 {
        let held = Arc::clone(&counter);
        let channel = Channel::new(move |_| {
            let _held = &held;
            Ok(())
        });
        let (_page, acks) = never_acknowledges();
        let events = [text(turn * 2 + 1, "a"), last(turn * 2 + 2)];
        forward(stream::iter(events), channel, acks, None).await;
    }
    assert_eq!(Arc::strong_count(&counter), 1);
}

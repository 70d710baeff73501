//! Requirements 7 and 12: what is kept of events has limits, and whoever misses some is told.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::json;
use youyou_agent::testing::{
    Gate, RecordingTool, ScriptedProvider, assert_event_invariants, call, collect, done, text, wait,
};
use youyou_agent::{
    AgentConfig, AgentEvent, AgentEventKind, SessionConfig, Subscription, ToolContext,
    ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput,
};

use crate::rig::{Rig, config, provider};
use crate::told::{read_until, told};

/// Says `count` times what it is at, in 4 KB each, and waits at the gate after each of the
/// numbers in `stops`.
struct Verbose {
    count: usize,
    stops: Vec<usize>,
    gate: Gate,
}

fn message(number: usize) -> String {
    // Padding by `format!` takes a hundred microseconds a message.
    let mut text = " ".repeat(4_090);
    text.push_str(&format!("{number:>6}"));
    text
}

#[async_trait::async_trait]
impl ToolHandler for Verbose {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("verbose", "Tells every step.", json!({"type": "object"}))
    }

    async fn call(&self, _: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        for number in 1..=self.count {
            context.progress(message(number));
            if self.stops.contains(&number) {
                self.gate.pass().await;
                self.gate.close();
            }
        }
        Ok("done".into())
    }
}

fn one_call() -> ScriptedProvider {
    provider()
        .reply([call("c1", "verbose", "{}"), done()])
        .reply([text("ok"), done()])
}

/// The numbers that the progress of a call tells, in order.
fn progress_of(events: &[AgentEvent], call: &str) -> Vec<usize> {
    let number = |event: &AgentEvent| match &event.kind {
        AgentEventKind::ToolProgress { call_id, message } if **call_id == *call => {
            Some(message.trim().parse().unwrap())
        }
        _ => None,
    };
    events.iter().filter_map(number).collect()
}

#[tokio::test(start_paused = true)]
async fn of_endless_progress_a_late_reader_gets_the_newest_of_the_call() {
    // C30
    let tool = Verbose {
        count: 20_000,
        stops: Vec::new(),
        gate: Gate::opened(),
    };
    let rig = Rig::with(one_call(), config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("hi").unwrap();
    turn.outcome().await;
    let events = collect(turn).await;
    assert_event_invariants(&events);
    assert_eq!(
        progress_of(&events, "c1"),
        (19_969..=20_000).collect::<Vec<_>>()
    );
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    let gap_then_rest: Vec<u64> = [1, 2].into_iter().chain(19_971..=20_005).collect();
    assert_eq!(
        numbers, gap_then_rest,
        "the numbers of dropped events are gaps"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_keeps_up_gets_all_progress_and_one_that_stops_goes_on_with_the_newest() {
    // C30
    let gate = Gate::closed();
    let tool = Verbose {
        count: 5_000,
        stops: vec![10, 1_000],
        gate: gate.clone(),
    };
    let rig = Rig::with(one_call(), config(), |builder| builder.tool(tool)).await;
    let mut turn = rig.session.send("hi").unwrap();
    let mut events = read_until(&mut turn, &format!("progress c1: {}", message(10))).await;
    assert_eq!(progress_of(&events, "c1"), (1..=10).collect::<Vec<_>>());
    gate.arrived(1).await;
    gate.open();
    gate.arrived(2).await;
    let missed = read_until(&mut turn, &format!("progress c1: {}", message(1_000))).await;
    assert_eq!(
        progress_of(&missed, "c1"),
        (969..=1_000).collect::<Vec<_>>()
    );
    gate.open();
    turn.outcome().await;
    let rest = collect(turn).await;
    assert_eq!(
        progress_of(&rest, "c1"),
        (4_969..=5_000).collect::<Vec<_>>()
    );
    events.extend(missed);
    events.extend(rest);
    assert_event_invariants(&events);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_says_much_takes_no_progress_from_another() {
    // C30
    let quiet = RecordingTool::read_only("quiet").saying("1").saying("2");
    let quiet_ended = quiet.log().clone();
    let tool = Verbose {
        count: 1_000,
        stops: vec![1_000],
        gate: Gate::opened(),
    };
    let provider = provider()
        .reply([
            call("c1", "quiet", "{}"),
            call("c2", "verbose", "{}"),
            call("c3", "verbose", "{}"),
            done(),
        ])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(quiet).tool(tool)).await;
    let turn = rig.session.send("hi").unwrap();
    turn.outcome().await;
    quiet_ended.ended(1).await;
    let events = collect(turn).await;
    assert_event_invariants(&events);
    assert_eq!(progress_of(&events, "c1"), [1, 2]);
    for verbose in ["c2", "c3"] {
        assert_eq!(
            progress_of(&events, verbose),
            (969..=1_000).collect::<Vec<_>>()
        );
    }
    rig.epilogue().await;
}

/// Turns of 10 KB, of which four and a bit are kept once they have ended.
async fn small_log() -> Rig {
    let config = AgentConfig {
        event_log_limit_bytes: 60_000,
        ..config()
    };
    let provider = provider().always(|_| [text("x".repeat(10_000)), done()]);
    Rig::with(provider, config, |builder| builder).await
}

fn there(subscription: &mut Subscription) -> Vec<AgentEvent> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

/// What stands for turns that were dropped.
fn skipped(turns: &[Vec<AgentEvent>]) -> AgentEvent {
    let events = turns.iter().map(|turn| turn.len() as u64).sum();
    AgentEvent {
        kind: AgentEventKind::Skipped { events },
        ..turns.last().unwrap().last().unwrap().clone()
    }
}

/// `Skipped`, then the turns from the first that is kept. There are some of both.
#[track_caller]
fn assert_skips(events: &[AgentEvent], turns: &[Vec<AgentEvent>]) {
    let (first, rest) = events.split_first().expect("there are events");
    let kept = turns
        .iter()
        .position(|turn| turn.first() == rest.first())
        .expect("a whole turn follows");
    assert!(
        (1..turns.len()).contains(&kept),
        "{kept} turns were dropped"
    );
    assert_eq!(*first, skipped(&turns[..kept]));
    assert_eq!(rest, turns[kept..].concat());
    assert_event_invariants(events);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_reads_nothing_is_told_how_much_it_missed() {
    // C32, X4
    let rig = small_log().await;
    let mut everything = rig.agent.subscribe();
    let mut of_session = rig.session.subscribe(None);
    let mut turns = Vec::new();
    for number in 0..100 {
        turns.push(rig.send(format!("{number}")).await);
    }
    let events = there(&mut everything);
    assert_skips(&events, &turns);
    assert!(events.len() > 4 && events.len() < 40, "{}", events.len());
    assert_eq!(there(&mut of_session), events);
    // From then on nothing is missed by who keeps up.
    for number in 0..20 {
        let turn = rig.send(format!("{number}")).await;
        assert_eq!(there(&mut everything), turn);
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_is_slow_misses_nothing_within_the_limit() {
    // C32: more than the last eight turns, for whoever has not come to them.
    let rig = Rig::new(provider().always(|_| [text("short"), done()])).await;
    let mut everything = rig.agent.subscribe();
    let mut turns = Vec::new();
    for number in 0..30 {
        turns.push(rig.send(format!("{number}")).await);
    }
    assert_eq!(there(&mut everything), turns.concat());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_subscriber_has_begun_it_reads_to_the_end() {
    // C32
    let rig = small_log().await;
    let mut subscription = rig.session.subscribe(None);
    let mut turns = vec![rig.send("begun").await];
    let begun = subscription.try_next().unwrap();
    for number in 0..20 {
        turns.push(rig.send(format!("{number}")).await);
    }
    let mut events = vec![begun];
    for _ in 1..turns[0].len() {
        events.push(subscription.try_next().unwrap());
    }
    assert_eq!(events, turns.remove(0));
    assert_skips(&there(&mut subscription), &turns);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_subscriber_is_told_of_its_own_session_only_and_ends_with_it() {
    // C32
    let rig = small_log().await;
    let old_id = rig.session.id().to_owned();
    let mut old = rig.session.subscribe(None);
    let turns = [rig.send("1").await, rig.send("2").await];
    let config = SessionConfig {
        replace: true,
        ..SessionConfig::default()
    };
    let session = rig.agent.create_session(config).await.unwrap();
    let rig = Rig { session, ..rig };
    let mut new = rig.session.subscribe(None);
    let mut idle = rig.session.subscribe(None);
    for number in 0..20 {
        let turn = rig.send(format!("{number}")).await;
        assert_eq!(there(&mut new), turn, "who keeps up is told nothing else");
    }
    assert_eq!(&*turns[0][0].session_id, old_id);
    assert_eq!(there(&mut old), [skipped(&turns)]);
    assert_eq!(old.next().await, None);
    assert_eq!(told(&there(&mut idle)[..1]).len(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_whose_session_was_closed_is_not_told_of_what_its_next_opening_lost() {
    // C32
    let mut rig = small_log().await;
    let turns = [rig.send("1").await, rig.send("2").await];
    let mut subscription = rig.session.subscribe(Some(0));
    rig.reopen().await;
    for number in 0..20 {
        rig.send(format!("{number}")).await;
    }
    assert_eq!(there(&mut subscription), [skipped(&turns)]);
    assert_eq!(subscription.next().await, None);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn past_turns_are_forgotten_by_their_size_and_a_running_one_never() {
    // X4
    let rig = small_log().await;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(rig.send(format!("{number}")).await[0].turn_id.clone());
    }
    rig.provider.queue([text("y".repeat(200_000)), wait()]);
    let mut running = rig.session.send("much").unwrap();
    while running
        .next()
        .await
        .is_some_and(|event| event.sequence < 40)
    {}
    let known = |id: &Arc<str>| rig.agent.turn(id).is_some();
    assert!(
        !known(&ids[0]) && known(&ids[5]),
        "the newest ended ones stay"
    );
    assert!(rig.agent.turn(running.id()).is_some());
    assert!(running.cancel());
    let running_id: Arc<str> = running.id().into();
    let events = collect(running).await;
    // It is over now, and by itself beyond the limit.
    assert!(known(&running_id));
    rig.send("next").await;
    assert!(!known(&running_id));
    assert_eq!(told(&events).last().unwrap(), "cancelled");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn any_number_is_a_place_to_go_on_from() {
    // X12, X13
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    rig.send("1").await;
    for beyond in [0, 1, 1 << 53, u64::MAX - 1, u64::MAX] {
        let after = rig.session.info().last_sequence.saturating_add(beyond);
        let mut subscription = rig.session.subscribe(Some(after));
        assert_eq!(there(&mut subscription), [], "after {after}");
        let next = rig.send("next").await;
        assert_eq!(there(&mut subscription), next, "after {after}");
    }
    rig.epilogue().await;
}

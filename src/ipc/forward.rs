//! From a cursor into a channel: pacing, size of messages, flow control.
//!
//! `Channel::send` never blocks and says Ok even if nobody listens, so a forwarder decides
//! by itself when to send. It never decides what: events come in the order of the log, and
//! neighbouring deltas of one kind come as one. Where a running turn shows nothing, a page
//! that acknowledges gets heartbeats, by which it tells silence from a lost message.

use std::collections::VecDeque;
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::future::poll_immediate;
use tauri::ipc::Channel;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::message::{ChannelMessage, RunningTurn};
use crate::agent::event::{AgentEvent, AgentEventKind};
use crate::agent::event_log::size::{PART_JSON_BYTES, json_bytes};

/// Pause after a delta: one frame at 60 Hz. What comes meanwhile is joined.
const FRAME: Duration = Duration::from_millis(16);

/// Silence of a running turn after which a heartbeat is sent.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Messages that may be on their way, once the page acknowledges.
const WINDOW: usize = 32;

/// How long a page may be silent with a full window.
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbers kept for a page that never acknowledges.
const REMEMBERED: usize = 1_024;

/// Why forwarding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// There is nothing more to come.
    Complete,
    /// The channel is broken.
    Broken,
    /// The page stopped acknowledging.
    Silent,
}

/// Sends events into the channel until there are no more.
///
/// `running` is the turn that runs while no event of it was sent yet. The number of the
/// newest message that arrived comes through `acks`.
///
/// # Order
/// This task is the only one that sends into the channel: Tauri numbers messages per send.
pub(super) async fn forward(
    mut events: impl Stream<Item = AgentEvent> + Unpin,
    channel: Channel<ChannelMessage>,
    acks: watch::Receiver<Option<u64>>,
    mut running: Option<RunningTurn>,
) -> Ended {
    let mut flow = Flow::new(acks);
    let mut next = None;
    loop {
        let heard = match next.take() {
            Some(event) => Ok(Some(event)),
            None => listen(&mut events, running.is_some()).await,
        };
        let event = match heard {
            Ok(Some(event)) => event,
            Ok(None) => return Ended::Complete,
            Err(Silence) => {
                if let Some(turn) = running.as_ref().filter(|_| flow.is_acknowledged()) {
                    let heartbeat = ChannelMessage::Heartbeat(turn.heartbeat());
                    if channel.send(heartbeat).is_err() {
                        return Ended::Broken;
                    }
                }
                continue;
            }
        };
        if !flow.has_room().await {
            return Ended::Silent;
        }
        let (event, following) = join_ready(event, &mut events).await;
        let pause = following.is_none() && delta_of(&event.kind).is_some();
        next = following;
        flow.sent(event.sequence);
        if is_of_a_turn(&event) {
            running = RunningTurn::after(&event);
        }
        if channel.send(ChannelMessage::Event(event)).is_err() {
            return Ended::Broken;
        }
        if pause {
            sleep(FRAME).await;
        } else {
            // A long replay must not keep the thread from other tasks.
            tokio::task::consume_budget().await;
        }
    }
}

/// Whether an event tells something of the turn that runs: what was skipped lies before it,
/// and what happens between turns has no turn id.
fn is_of_a_turn(event: &AgentEvent) -> bool {
    !event.turn_id.is_empty() && !matches!(event.kind, AgentEventKind::Skipped { .. })
}

/// A turn runs, and it is time for a heartbeat.
struct Silence;

/// Waits for the next event; while a turn runs, no longer than until a heartbeat is due.
async fn listen(
    events: &mut (impl Stream<Item = AgentEvent> + Unpin),
    turn_runs: bool,
) -> Result<Option<AgentEvent>, Silence> {
    if !turn_runs {
        return Ok(events.next().await);
    }
    timeout(HEARTBEAT, events.next()).await.map_err(|_| Silence)
}

/// Joins a delta with its neighbours that are there already. Also gives the event that was
/// read and did not fit.
async fn join_ready(
    mut event: AgentEvent,
    events: &mut (impl Stream<Item = AgentEvent> + Unpin),
) -> (AgentEvent, Option<AgentEvent>) {
    let Some((_, _, text)) = delta_of(&event.kind) else {
        return (event, None);
    };
    let mut bytes = json_bytes(text);
    while bytes < PART_JSON_BYTES {
        let Some(Some(next)) = poll_immediate(events.next()).await else {
            return (event, None);
        };
        match joined_bytes(&event, &next, bytes) {
            Some(sum) => {
                bytes = sum;
                append(&mut event, next);
            }
            None => return (event, Some(next)),
        }
    }
    (event, None)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

/// Kind, step and text of a delta.
fn delta_of(kind: &AgentEventKind) -> Option<(Kind, u32, &str)> {
    if let AgentEventKind::TextDelta { step, delta, .. } = kind {
        return Some((Kind::Text, *step, delta));
    }
    if let AgentEventKind::ReasoningDelta { step, delta, .. } = kind {
        return Some((Kind::Reasoning, *step, delta));
    }
    None
}

/// The size of both texts in one message, if they may be one.
fn joined_bytes(event: &AgentEvent, next: &AgentEvent, bytes: usize) -> Option<usize> {
    let (kind, step, _) = delta_of(&event.kind)?;
    let (next_kind, next_step, text) = delta_of(&next.kind)?;
    let neighbours = event.turn_id == next.turn_id
        && kind == next_kind
        && step == next_step
        && first_sequence(next) == event.sequence + 1;
    let sum = bytes + json_bytes(text);
    (neighbours && sum <= PART_JSON_BYTES).then_some(sum)
}

fn first_sequence(event: &AgentEvent) -> u64 {
    if let AgentEventKind::TextDelta { first_sequence, .. }
    | AgentEventKind::ReasoningDelta { first_sequence, .. } = &event.kind
    {
        return *first_sequence;
    }
    event.sequence
}

fn append(event: &mut AgentEvent, next: AgentEvent) {
    event.sequence = next.sequence;
    event.timestamp = next.timestamp;
    if let (
        AgentEventKind::TextDelta { delta, .. } | AgentEventKind::ReasoningDelta { delta, .. },
        AgentEventKind::TextDelta { delta: more, .. }
        | AgentEventKind::ReasoningDelta { delta: more, .. },
    ) = (&mut event.kind, next.kind)
    {
        delta.push_str(&more);
    }
}

/// What is on its way to the page. It counts from the first acknowledgement on: a page that
/// never acknowledges gets pacing only.
struct Flow {
    acks: watch::Receiver<Option<u64>>,
    /// Numbers of messages that are not acknowledged, oldest first.
    on_their_way: VecDeque<u64>,
}

impl Flow {
    fn new(acks: watch::Receiver<Option<u64>>) -> Self {
        Self {
            acks,
            on_their_way: VecDeque::new(),
        }
    }

    /// Whether the page has ever acknowledged.
    fn is_acknowledged(&self) -> bool {
        self.acks.borrow().is_some()
    }

    /// Waits until one more message may be sent; false if the page went silent.
    async fn has_room(&mut self) -> bool {
        loop {
            let Some(acknowledged) = *self.acks.borrow_and_update() else {
                return true;
            };
            while self
                .on_their_way
                .front()
                .is_some_and(|sequence| *sequence <= acknowledged)
            {
                self.on_their_way.pop_front();
            }
            if self.on_their_way.len() < WINDOW {
                return true;
            }
            if !matches!(timeout(PATIENCE, self.acks.changed()).await, Ok(Ok(()))) {
                return false;
            }
        }
    }

    fn sent(&mut self, sequence: u64) {
        if self.on_their_way.len() == REMEMBERED {
            self.on_their_way.pop_front();
        }
        self.on_their_way.push_back(sequence);
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]
mod tests;

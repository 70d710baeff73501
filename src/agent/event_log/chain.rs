//! The turns of an agent's life, as long as somebody may still read them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::log::TurnLog;
use super::wakers::Wakers;
use crate::agent::event::{AgentEvent, AgentEventKind};

/// Logs of ended turns that stay for late subscribers and for `wait_turn`.
const RECENT_TURNS: usize = 8;

/// What a link counts for beside the events in it, in bytes.
const LINK_BYTES: usize = 1_024;

/// Turns and closes in order, oldest first, and who has read how far.
///
/// A link stays while a reader has not come to it, or as one of the last eight turns. All of
/// them together take at most `limit` bytes: above that the oldest ended turn goes, and the
/// readers it was kept for are told. A reader holds the turn that it is in by itself, so what
/// it has begun it can read to the end.
#[derive(Debug)]
pub(super) struct Chain {
    links: VecDeque<Link>,
    /// Number of the next link; numbers rise, with gaps where links were dropped.
    next_number: u64,
    /// How many of the links hold a turn.
    turns: usize,
    /// Numbers of the links that are not counted in `bytes` yet: their turns were running.
    uncounted: Vec<u64>,
    bytes: usize,
    limit: usize,
    readers: HashMap<u64, Reader>,
    last_reader: u64,
    /// Whether nothing is added any more.
    closed: bool,
    /// Readers that have read everything and wait for the next link.
    pub(super) waiting: Wakers,
}

#[derive(Debug)]
struct Link {
    number: u64,
    content: Content,
    /// What it takes; absent while its turn runs.
    bytes: Option<usize>,
}

#[derive(Debug)]
pub(super) enum Content {
    Turn(Arc<TurnLog>),
    SessionClosed(Arc<str>),
}

/// Where a reader is, and what it wants.
#[derive(Debug)]
pub(super) struct Reader {
    /// Number of the first link that it has not come to.
    next: u64,
    /// A close of its session with a lower number was of an earlier opening.
    since: u64,
    /// Only this session, if set.
    session_id: Option<Arc<str>>,
    /// Events up to this number are left out.
    after: u64,
    /// What was dropped before it came to it, as the event that tells so.
    skipped: Option<Box<AgentEvent>>,
    /// Whether its session was closed.
    ended: bool,
}

/// What a reader finds where it looks for the next turn.
pub(super) enum Found {
    Turn(Arc<TurnLog>),
    /// Something was dropped unread; this event tells.
    Skipped(Box<AgentEvent>),
    /// Nothing yet.
    Nothing,
    /// Nothing will follow.
    End,
}

impl Link {
    fn turn(&self) -> Option<&Arc<TurnLog>> {
        match &self.content {
            Content::Turn(log) => Some(log),
            Content::SessionClosed(_) => None,
        }
    }

    fn turn_of(&self, session_id: &Arc<str>) -> Option<&Arc<TurnLog>> {
        self.turn().filter(|log| log.session_id() == session_id)
    }
}

impl Reader {
    fn wants(&self, log: &TurnLog) -> bool {
        let wanted = self.session_id.as_ref();
        wanted.is_none_or(|wanted| wanted == log.session_id())
    }

    fn ends_at(&self, number: u64, closed: &Arc<str>) -> bool {
        number >= self.since && self.session_id.as_ref() == Some(closed)
    }

    fn waits_for(&self, link: &Link) -> bool {
        !self.ended
            && link.number >= self.next
            && match &link.content {
                Content::Turn(log) => self.wants(log),
                Content::SessionClosed(closed) => self.ends_at(link.number, closed),
            }
    }

    /// Notes that a link is dropped which the reader has not come to.
    fn lose(&mut self, link: &Link) {
        match &link.content {
            Content::SessionClosed(_) => self.ended = true,
            Content::Turn(log) => {
                let Some((mut last, mut events)) = log.unread_after(self.after) else {
                    return;
                };
                if let Some(AgentEventKind::Skipped { events: before }) =
                    self.skipped.as_ref().map(|event| &event.kind)
                {
                    events = events.saturating_add(*before);
                }
                last.kind = AgentEventKind::Skipped { events };
                self.skipped = Some(Box::new(last));
            }
        }
    }
}

impl Chain {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            links: VecDeque::new(),
            next_number: 0,
            turns: 0,
            uncounted: Vec::new(),
            bytes: 0,
            limit,
            readers: HashMap::new(),
            last_reader: 0,
            closed: false,
            waiting: Wakers::default(),
        }
    }

    /// Adds a link. Returns who waits for it, to be woken once the chain is unlocked.
    #[must_use = "readers wait to be woken"]
    pub(super) fn add(&mut self, content: Content) -> Wakers {
        let number = self.next_number;
        self.next_number += 1;
        let bytes = match content {
            Content::Turn(_) => {
                self.turns += 1;
                self.uncounted.push(number);
                None
            }
            Content::SessionClosed(_) => {
                self.bytes += LINK_BYTES;
                Some(LINK_BYTES)
            }
        };
        self.links.push_back(Link {
            number,
            content,
            bytes,
        });
        self.count_ended();
        self.drop_oldest();
        self.drop_read();
        self.waiting.take()
    }

    /// Nothing is added from now on.
    #[must_use = "readers wait to be woken"]
    pub(super) fn close(&mut self) -> Wakers {
        self.closed = true;
        self.waiting.take()
    }

    fn position_of(&self, number: u64) -> usize {
        self.links.partition_point(|link| link.number < number)
    }

    fn count_ended(&mut self) {
        for number in std::mem::take(&mut self.uncounted) {
            let at = self.position_of(number);
            let Some(link) = self.links.get_mut(at) else {
                continue;
            };
            match link.turn().and_then(|log| log.bytes_once_ended()) {
                Some(bytes) => {
                    let bytes = bytes.saturating_add(LINK_BYTES);
                    link.bytes = Some(bytes);
                    self.bytes += bytes;
                }
                None => self.uncounted.push(number),
            }
        }
    }

    /// Keeps to the limit, whoever wants to read. A turn that runs is never dropped.
    fn drop_oldest(&mut self) {
        while self.bytes > self.limit
            && let Some(at) = self.links.iter().position(|link| link.bytes.is_some())
            && let Some(link) = self.remove(at)
        {
            for reader in self.readers.values_mut() {
                if reader.waits_for(&link) {
                    reader.lose(&link);
                }
            }
        }
    }

    /// Drops from the front what nobody has to read any more.
    fn drop_read(&mut self) {
        while let Some(front) = self.links.front() {
            let stays = match front.content {
                Content::Turn(_) => self.turns <= RECENT_TURNS || front.bytes.is_none(),
                Content::SessionClosed(_) => false,
            };
            if stays || self.readers.values().any(|reader| reader.waits_for(front)) {
                return;
            }
            self.remove(0);
        }
    }

    fn remove(&mut self, at: usize) -> Option<Link> {
        let link = self.links.remove(at)?;
        self.bytes -= link.bytes.unwrap_or(0);
        if link.turn().is_some() {
            self.turns -= 1;
        }
        Some(link)
    }

    /// The links of running turns, and all from the oldest of the last eight turns on.
    fn recent(&self) -> impl Iterator<Item = &Link> {
        let older = self.turns.saturating_sub(RECENT_TURNS);
        let mut turns = 0;
        self.links.iter().filter(move |link| {
            if link.turn().is_some() {
                turns += 1;
            }
            turns > older || link.bytes.is_none()
        })
    }

    /// The log of a running turn or of one of the last eight.
    pub(super) fn turn(&self, turn_id: &str) -> Option<Arc<TurnLog>> {
        let mut logs = self.recent().filter_map(Link::turn);
        logs.find(|log| &**log.turn_id() == turn_id).cloned()
    }

    /// Adds a reader of all sessions that starts after event `after`, in the turns that run.
    pub(super) fn read_all(&mut self, after: u64) -> u64 {
        let running = |link: &&Link| link.turn().is_some_and(|log| !log.has_ended());
        let first = self.links.iter().find(running).map(|link| link.number);
        self.read_from(first, None, after)
    }

    /// Adds a reader of one session that starts after event `after` as far as it is kept, or
    /// else with the running turn.
    pub(super) fn read_session(&mut self, session_id: &Arc<str>, after: Option<u64>) -> u64 {
        let first = self.recent().find(|link| {
            link.turn_of(session_id)
                .is_some_and(|log| after.is_some() || !log.has_ended())
        });
        let first = first.map(|link| link.number);
        self.read_from(first, Some(session_id), after.unwrap_or(0))
    }

    fn read_from(&mut self, first: Option<u64>, session_id: Option<&Arc<str>>, after: u64) -> u64 {
        self.last_reader += 1;
        let reader = Reader {
            next: first.unwrap_or(self.next_number),
            since: self.next_number,
            session_id: session_id.cloned(),
            after,
            skipped: None,
            ended: false,
        };
        self.readers.insert(self.last_reader, reader);
        self.last_reader
    }

    /// Takes a reader on to what it wants next.
    pub(super) fn advance(&mut self, reader: u64) -> Found {
        let Some(reader) = self.readers.get_mut(&reader) else {
            return Found::End;
        };
        if let Some(told) = reader.skipped.take() {
            return Found::Skipped(told);
        }
        let mut found = Found::Nothing;
        let first = self.links.partition_point(|link| link.number < reader.next);
        for link in self.links.range(first..) {
            if reader.ended {
                break;
            }
            let wanted = reader.waits_for(link);
            reader.next = link.number + 1;
            match &link.content {
                Content::Turn(log) if wanted => {
                    found = Found::Turn(Arc::clone(log));
                    break;
                }
                Content::SessionClosed(_) => reader.ended = wanted,
                Content::Turn(_) => {}
            }
        }
        if matches!(found, Found::Nothing) && (reader.ended || self.closed) {
            found = Found::End;
        }
        self.drop_read();
        found
    }

    /// Removes a reader: nothing is kept for it any more.
    pub(super) fn leave(&mut self, reader: u64) {
        if self.readers.remove(&reader).is_some() {
            self.drop_read();
        }
    }
}

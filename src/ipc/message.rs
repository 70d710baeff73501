//! What comes through a page's channel: events, and signs of life where there are none.

use std::sync::Arc;

use serde::Serialize;

use crate::agent::clock::now_ms;
use crate::agent::event::AgentEvent;

/// A message of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) enum ChannelMessage {
    /// An event.
    Event(AgentEvent),
    /// A sign of life.
    Heartbeat(Heartbeat),
}

/// A sign of life, about once a second while a turn runs and shows nothing new. The page
/// has missed something if it does not have the event `sequence`, or if neither events nor
/// heartbeats come: then it attaches again.
///
/// It has the envelope of an event, so that a page that looks at `type` passes over it. Only
/// a subscription that was acknowledged gets heartbeats; a page that never acknowledges gets
/// events only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) struct Heartbeat {
    /// What the message is, where an event says its kind.
    #[serde(rename = "type")]
    pub(crate) kind: HeartbeatKind,
    /// The session.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub(crate) session_id: Arc<str>,
    /// The turn that runs.
    #[cfg_attr(feature = "bindings", specta(type = String))]
    pub(crate) turn_id: Arc<str>,
    /// Milliseconds since the Unix epoch.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub(crate) timestamp: u64,
    /// Number of the newest event that was sent through this channel. Before the first one,
    /// the number after which the channel was attached, or 0.
    #[cfg_attr(feature = "bindings", specta(type = u32))]
    pub(crate) sequence: u64,
}

/// The one kind of heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub(crate) enum HeartbeatKind {
    /// A heartbeat.
    Heartbeat,
}

/// How far a running turn was sent to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningTurn {
    pub(super) session_id: Arc<str>,
    pub(super) turn_id: Arc<str>,
    /// Number of the newest event that the page has or was sent.
    pub(super) sequence: u64,
}

impl RunningTurn {
    /// The turn of an event that is sent, unless the event ends it.
    pub(super) fn after(event: &AgentEvent) -> Option<Self> {
        (!event.kind.is_terminal()).then(|| Self {
            session_id: Arc::clone(&event.session_id),
            turn_id: Arc::clone(&event.turn_id),
            sequence: event.sequence,
        })
    }

    pub(super) fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            kind: HeartbeatKind::Heartbeat,
            session_id: Arc::clone(&self.session_id),
            turn_id: Arc::clone(&self.turn_id),
            timestamp: now_ms(),
            sequence: self.sequence,
        }
    }
}

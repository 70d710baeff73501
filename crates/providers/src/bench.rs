//! What the bench and the test of allocations measure: a stream of bytes into events, without a
//! network. No part of the public interface.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{FutureExt, stream};

use crate::endpoint::Endpoint;
use crate::sse::Frames;
use crate::wire::{Frame, Protocol, Quirks, Target};

/// Reads a whole stream of one of the protocols (`chat`, `responses`, `anthropic`, `gemini`).
/// Returns how many events it has, or `None` where it is no answer.
#[must_use]
pub fn read(protocol: &str, body: &'static str) -> Option<usize> {
    let chunks = stream::iter([Ok(Bytes::from_static(body.as_bytes()))]);
    let mut frames = Frames::new(chunks);
    let mut decoder = protocol_of(protocol)?.decoder(&target());
    let mut events = VecDeque::new();
    let mut count = 0;
    while let Some(frame) = frames.next().now_or_never()? {
        let (event, data) = frame.ok()?;
        let frame = Frame {
            event: event.as_deref(),
            data: &data,
        };
        decoder.frame(frame, &mut events).ok()?;
        count += events.len();
        events.clear();
    }
    // The end mark may have given the end already.
    let _ = decoder.end(&mut events);
    Some(count + events.len())
}

fn protocol_of(name: &str) -> Option<Protocol> {
    match name {
        "chat" => Some(Protocol::Chat),
        "responses" => Some(Protocol::Responses),
        "anthropic" => Some(Protocol::Anthropic),
        "gemini" => Some(Protocol::Gemini),
        _ => None,
    }
}

fn target() -> Target {
    let endpoint = Endpoint::openai_compatible("bench", "http://127.0.0.1");
    Target {
        provider: endpoint.id.clone(),
        vendor: endpoint.id.clone(),
        service: endpoint.name.clone(),
        address: endpoint.address.clone(),
        model: "bench".into(),
        family: "bench".into(),
        reasoning: true,
        max_output: 1000,
        quirks: Quirks::default(),
    }
}

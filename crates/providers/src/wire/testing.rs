//! What the unit tests of all wires need.

use std::collections::VecDeque;

use youyou_agent::{ChatEvent, ProviderError};

use super::{Decoder, Frame, Quirks, Target};

/// A server and a model to send to.
pub(crate) fn target() -> Target {
    Target {
        provider: "test".into(),
        vendor: "test".into(),
        service: "Test".into(),
        address: "http://127.0.0.1:1".into(),
        model: "test-1".into(),
        family: "test".into(),
        reasoning: true,
        max_output: 32_000,
        quirks: Quirks::default(),
    }
}

/// Feeds frames, then the end of the data.
pub(crate) fn read(
    decoder: &mut dyn Decoder,
    frames: &[(Option<&str>, &str)],
) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let mut events = VecDeque::new();
    for (event, data) in frames {
        let frame = Frame {
            event: *event,
            data,
        };
        if let Err(error) = decoder.frame(frame, &mut events) {
            return (events.into(), Err(error));
        }
        if matches!(events.back(), Some(ChatEvent::Done(_))) {
            return (events.into(), Ok(()));
        }
    }
    let end = decoder.end(&mut events);
    (events.into(), end)
}

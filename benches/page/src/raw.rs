//! The plain Tauri channel: what an app without the plugin would do.

use futures_util::StreamExt as _;
use serde::Serialize;
use tauri::ipc::Channel;

use crate::script::Script;

/// What goes through the channel.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum RawEvent {
    /// Text, `joined` deltas of it.
    TextDelta { sequence: usize, delta: String },
    /// The big one.
    Big { sequence: usize, output: String },
    /// Nothing follows.
    Done,
}

/// Sends the script's deltas, `joined` of them per message.
#[tauri::command]
pub(crate) async fn raw(
    script: Script,
    joined: usize,
    on_event: Channel<RawEvent>,
) -> Result<(), String> {
    let mut sequence = 0;
    let mut send = |event: fn(usize, String) -> RawEvent, text: String| {
        sequence += 1;
        on_event
            .send(event(sequence, text))
            .map_err(|error| error.to_string())
    };
    let delta = |sequence, delta| RawEvent::TextDelta { sequence, delta };
    let big = |sequence, output| RawEvent::Big { sequence, output };
    let middle = if script.big_bytes > 0 {
        script.deltas / 2
    } else {
        script.deltas
    };
    let mut text = String::new();
    for (from, to) in [(0, middle), (middle, script.deltas)] {
        let mut deltas = std::pin::pin!(script.deltas(from, to));
        let mut count = 0;
        while let Some(next) = deltas.next().await {
            text.push_str(&next);
            count += 1;
            if count % joined.max(1) == 0 {
                send(delta, std::mem::take(&mut text))?;
            }
        }
        if !text.is_empty() {
            send(delta, std::mem::take(&mut text))?;
        }
        if script.big_bytes > 0 && from == 0 {
            send(big, "x".repeat(script.big_bytes))?;
        }
    }
    on_event
        .send(RawEvent::Done)
        .map_err(|error| error.to_string())
}

//! From the frames of the Messages protocol to the agent's events.

use std::collections::BTreeMap;

use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason};

use super::WIRE;
use super::block::Block;
use super::usage::Tokens;
use crate::failure;
use crate::wire::flow::{Events, Flow};
use crate::wire::json::Fields;
use crate::wire::origin::Origin;
use crate::wire::stop::{self, Ending};
use crate::wire::{Decoder, Frame, Target, fault};

/// How often one answer is gone on with after a pause. The vendor pauses after some ten calls
/// of its own tools.
const MOST_PAUSES: u32 = 20;

/// Reads one answer.
pub(crate) fn decoder(target: &Target) -> Box<dyn Decoder> {
    Box::new(Messages {
        target: target.clone(),
        flow: Flow::new(Origin::new(WIRE, target)),
        open: BTreeMap::new(),
        items: Vec::new(),
        has_calls: false,
        stop: None,
        tokens: Tokens::default(),
        pauses: 0,
        is_paused: false,
    })
}

struct Messages {
    target: Target,
    flow: Flow,
    /// Blocks whose end did not come, by their index.
    open: BTreeMap<u64, Block>,
    /// The blocks of this response as they go back if it is paused.
    items: Vec<String>,
    has_calls: bool,
    /// Why the model stopped, once that came.
    stop: Option<Stop>,
    tokens: Tokens,
    pauses: u32,
    /// Whether a continuation waits to be taken.
    is_paused: bool,
}

/// What a server says of the end.
struct Stop {
    reason: String,
    /// Why a model refused, in the server's words.
    explanation: Option<String>,
}

impl Decoder for Messages {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let data = frame.data.trim();
        if data.is_empty() || data == "[DONE]" || frame.event == Some("ping") {
            return Ok(());
        }
        let Ok(fields) = Fields::parse(data) else {
            return Err(failure::broke_off(&self.target));
        };
        if fault::is_error(frame.event, &fields) {
            return Err(failure::told(&self.target, data));
        }
        let kind = fields.text("type");
        match kind.as_deref().or(frame.event).unwrap_or_default() {
            "message_start" => self.message_start(&fields.object("message"), events),
            "content_block_start" => self.block_start(&fields, events),
            "content_block_delta" => self.block_delta(&fields, events)?,
            "content_block_stop" => {
                if let Some(block) = named(&mut self.open, &fields) {
                    block.is_done = true;
                }
                self.flush(events);
            }
            "message_delta" => {
                self.tokens.see(&fields.object("usage"));
                self.see_stop(&fields.object("delta"));
            }
            "message_stop" => return self.finish(events),
            // Keep-alives, and what the vendor may add.
            other => tracing::trace!(kind = other, "an event that is not read"),
        }
        Ok(())
    }

    fn body(&mut self, body: &str, events: &mut Events) -> Result<(), ProviderError> {
        let fields = Fields::parse(body).unwrap_or_default();
        let is_answer = fields.text("type").as_deref() == Some("message")
            || fields.text("role").as_deref() == Some("assistant");
        if !is_answer || fault::is_error(None, &fields) {
            return Err(failure::told(&self.target, body));
        }
        self.message_start(&fields, events);
        self.see_stop(&fields);
        self.finish(events)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        // Some servers leave out the last event; the reason to stop is an end as well.
        if self.stop.is_none() {
            return Err(failure::broke_off(&self.target));
        }
        self.finish(events)
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    fn continuation(&mut self, sent: &str) -> Option<String> {
        if !std::mem::take(&mut self.is_paused) {
            return None;
        }
        let items = std::mem::take(&mut self.items).join(",");
        // What came before the second pause belongs into the same message.
        let (end, begin) = if self.pauses > 1 {
            ("]}]}", ",")
        } else {
            ("]}", r#",{"role":"assistant","content":["#)
        };
        let start = sent.strip_suffix(end)?;
        Some(format!("{start}{begin}{items}]}}]}}"))
    }
}

impl Messages {
    /// Takes the start of a message; some servers put a whole one there.
    fn message_start(&mut self, message: &Fields<'_>, events: &mut Events) {
        self.tokens.see(&message.object("usage"));
        for item in message.items("content") {
            self.open_block(None, item.get(), events);
            self.flush_all(events);
        }
    }

    fn block_start(&mut self, fields: &Fields<'_>, events: &mut Events) {
        if let Some(block) = fields.get("content_block") {
            self.open_block(fields.number("index"), block.get(), events);
        }
    }

    fn open_block(&mut self, index: Option<u64>, start: &str, events: &mut Events) {
        let last = self.open.last_key_value().map(|(index, _)| *index);
        let index = index.unwrap_or_else(|| last.map_or(0, |last| last.saturating_add(1)));
        let block = Block::start(start);
        // Ends that did not come: only calls are written side by side.
        let is_call = block.is_call();
        for (open_index, open) in &mut self.open {
            open.is_done |= !is_call || !open.is_call() || *open_index == index;
        }
        self.flush(events);
        if self.open.contains_key(&index) {
            self.flush_all(events);
        }
        block.show(&mut self.flow, events);
        self.open.insert(index, block);
    }

    fn block_delta(
        &mut self,
        fields: &Fields<'_>,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let delta = fields.object("delta");
        match named(&mut self.open, fields) {
            Some(block) => block.delta(&delta, &mut self.flow, events),
            // The start of its block is lost, or its end came too early: text is shown all the
            // same, but a piece of a call without its name is a hole in the answer.
            None if Block::is_loose(&delta, &mut self.flow, events) => {}
            None => return Err(failure::broke_off(&self.target)),
        }
        Ok(())
    }

    fn see_stop(&mut self, delta: &Fields<'_>) {
        let Some(reason) = delta.text("stop_reason") else {
            return;
        };
        let details = delta.object("stop_details");
        self.stop = Some(Stop {
            reason: reason.into_owned(),
            explanation: details.text("explanation").map(|text| text.into_owned()),
        });
    }

    /// Ends the blocks that are whole, in their order.
    fn flush(&mut self, events: &mut Events) {
        while let Some(first) = self.open.first_entry() {
            if !first.get().is_done {
                return;
            }
            let block = first.remove();
            self.has_calls |= block.is_call();
            if let Some(item) = block.finish(&mut self.flow, events) {
                self.items.push(item);
            }
        }
    }

    fn flush_all(&mut self, events: &mut Events) {
        for block in self.open.values_mut() {
            block.is_done = true;
        }
        self.flush(events);
    }

    fn finish(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        self.flush_all(events);
        let Some(stop) = self.stop.take() else {
            events.push_back(self.warning("did not say why it stopped"));
            self.done(StopReason::Other, events);
            return Ok(());
        };
        let reason = match stop::ending(&stop.reason) {
            Ending::Stop(reason) => reason,
            Ending::Failed | Ending::BadCall => {
                return Err(failure::ended_with(&self.target, &stop.reason));
            }
            // The results of the calls come first.
            Ending::Paused if self.has_calls => StopReason::EndTurn,
            Ending::Paused => return self.pause(events),
            Ending::Unknown => {
                let what = format!("stopped for a reason unknown here ({})", stop.reason);
                events.push_back(self.warning(&what));
                StopReason::Other
            }
        };
        if let Some(words) = stop.explanation {
            if reason == StopReason::Refusal && !self.flow.has_text() {
                events.push_back(ChatEvent::text(words));
            } else {
                events.push_back(self.warning(&format!("says: {words}")));
            }
        }
        self.done(reason, events);
        Ok(())
    }

    fn pause(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        if self.items.is_empty() {
            // The same request again would be paused again.
            return Err(failure::ended_with(&self.target, "pause_turn"));
        }
        if self.pauses == MOST_PAUSES {
            events.push_back(self.warning("paused the answer too often; it is not complete"));
            self.done(StopReason::Other, events);
            return Ok(());
        }
        self.pauses += 1;
        self.is_paused = true;
        self.tokens.next_response();
        Ok(())
    }

    fn done(&mut self, reason: StopReason, events: &mut Events) {
        let end = Completion::new()
            .with_usage(self.tokens.usage())
            .with_stop_reason(reason);
        events.push_back(ChatEvent::Done(end));
    }

    fn warning(&self, what: &str) -> ChatEvent {
        ChatEvent::Warning {
            message: format!("{} {what}", self.target.service),
        }
    }
}

/// The block that an event names, or the last one where it names none.
fn named<'a>(open: &'a mut BTreeMap<u64, Block>, fields: &Fields<'_>) -> Option<&'a mut Block> {
    match fields.number("index") {
        Some(index) => open.get_mut(&index),
        None => open.last_entry().map(|entry| entry.into_mut()),
    }
}

//! From the frames of the Responses protocol to the agent's events.

use std::collections::VecDeque;

use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason, Usage};

use super::WIRE;
use super::item::{Item, ItemKind};
use crate::failure;
use crate::wire::flow::{Events, Flow};
use crate::wire::json::{self, Fields};
use crate::wire::origin::Origin;
use crate::wire::stop::{self, Ending};
use crate::wire::{Decoder, Frame, Target, fault};

/// Reads one answer.
pub(crate) fn decoder(target: &Target) -> Box<dyn Decoder> {
    Box::new(Responses {
        target: target.clone(),
        flow: Flow::new(Origin::new(WIRE, target)),
        items: Vec::new(),
        open: Vec::new(),
        calls: VecDeque::new(),
        has_refused: false,
    })
}

struct Responses {
    target: Target,
    flow: Flow,
    /// The output items in the order in which they began.
    items: Vec<Item>,
    /// Where the items stand whose end did not come.
    open: Vec<usize>,
    /// Where the calls stand that were not given yet.
    calls: VecDeque<usize>,
    has_refused: bool,
}

impl Decoder for Responses {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let data = frame.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let Ok(fields) = Fields::parse(data) else {
            return Err(failure::broke_off(&self.target));
        };
        if fault::is_error(frame.event, &fields) {
            return Err(failure::told(&self.target, data));
        }
        let kind = fields.text("type");
        let kind = kind.as_deref().or(frame.event).unwrap_or_default();
        match kind {
            "response.output_item.added" => {
                let item = fields.object("item");
                self.begin(ItemKind::of(&item), &fields, &item);
            }
            "response.output_item.done" => {
                if let Some(item) = fields.get("item") {
                    self.end_item(&fields, item.get(), events);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.has_refused |= kind == "response.refusal.delta";
                self.piece(&fields, events);
            }
            "response.function_call_arguments.delta" => {
                let piece = fields.get("delta");
                if let (Some(item), Some(piece)) = (self.call(&fields), piece) {
                    // Some servers send the object itself.
                    item.arguments(&json::text(piece).unwrap_or_else(|| piece.get().into()));
                }
            }
            "response.function_call_arguments.done" => {
                let all = fields.get("arguments");
                if let (Some(item), Some(all)) = (self.call(&fields), all) {
                    item.all_arguments(&json::text(all).unwrap_or_else(|| all.get().into()));
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.done"
            | "response.cancelled" => {
                let response = fields.object("response");
                return self.finish(kind, data, &response, events);
            }
            // Of summaries and of the reasoning itself, under several names.
            reasoning if reasoning.starts_with("response.reasoning") => {
                if reasoning.ends_with(".delta") {
                    self.reasoning(&fields, events);
                }
            }
            // Starts and ends of parts, which the items repeat, and what the vendor may add.
            other => tracing::trace!(kind = other, "an event that is not read"),
        }
        Ok(())
    }

    fn body(&mut self, body: &str, events: &mut Events) -> Result<(), ProviderError> {
        let fields = Fields::parse(body).unwrap_or_default();
        let is_answer =
            fields.text("object").as_deref() == Some("response") || fields.get("output").is_some();
        if !is_answer {
            return Err(failure::told(&self.target, body));
        }
        self.finish("", body, &fields, events)
    }

    fn end(&mut self, _events: &mut Events) -> Result<(), ProviderError> {
        Err(failure::broke_off(&self.target))
    }
}

impl Responses {
    /// Where the open item stands that an event belongs to. Servers leave out its place or
    /// change its id, so either will do.
    fn locate(&self, kind: ItemKind, index: Option<u64>, id: &str) -> Option<usize> {
        let find = |fits: &dyn Fn(&Item) -> bool| {
            let mut latest_first = self.open.iter().rev().copied();
            latest_first.find(|at| {
                let item = self.items.get(*at);
                item.is_some_and(|item| item.kind == kind && fits(item))
            })
        };
        let by_index = index.and_then(|index| find(&|item| item.index == index));
        let by_id = || find(&|item| !id.is_empty() && item.id == id);
        // Without a place it is the one that is being written.
        let last = || find(&|_| index.is_none());
        by_index.or_else(by_id).or_else(last)
    }

    /// Where the item of a piece stands; one whose start did not come begins here.
    fn place(&mut self, kind: ItemKind, fields: &Fields<'_>) -> usize {
        let id = fields.text("item_id").unwrap_or_default();
        let at = self.locate(kind, fields.number("output_index"), &id);
        at.unwrap_or_else(|| self.begin(kind, fields, &Fields::default()))
    }

    fn call(&mut self, fields: &Fields<'_>) -> Option<&mut Item> {
        let at = self.place(ItemKind::Call, fields);
        self.items.get_mut(at)
    }

    /// Begins an item. Returns where it stands.
    fn begin(&mut self, kind: ItemKind, fields: &Fields<'_>, start: &Fields<'_>) -> usize {
        let at = self.items.len();
        let index = fields.number("output_index");
        let index = index.unwrap_or_else(|| u64::try_from(at).unwrap_or(u64::MAX));
        let id = start.text("id").or_else(|| fields.text("item_id"));
        let mut item = Item::new(kind, index, &id.unwrap_or_default());
        item.begin(start);
        self.items.push(item);
        self.open.push(at);
        if kind == ItemKind::Call {
            self.calls.push_back(at);
        }
        at
    }

    fn piece(&mut self, fields: &Fields<'_>, events: &mut Events) {
        let piece = fields.text("delta").unwrap_or_default();
        let at = self.place(ItemKind::Message, fields);
        if let Some(item) = self.items.get_mut(at) {
            item.text(&piece, &mut self.flow, events);
        }
    }

    fn reasoning(&mut self, fields: &Fields<'_>, events: &mut Events) {
        let Some(delta) = fields.get("delta") else {
            return;
        };
        let piece = json::text(delta).or_else(|| Fields::of(delta).text("text"));
        let summary = fields.number("summary_index");
        let part = summary.or_else(|| fields.number("content_index"));
        let part = (summary.is_some(), part.unwrap_or(0));
        let at = self.place(ItemKind::Reasoning, fields);
        if let Some(item) = self.items.get_mut(at) {
            item.reasoning(part, &piece.unwrap_or_default(), &mut self.flow, events);
        }
    }

    /// An item ended: all of it is there.
    fn end_item(&mut self, fields: &Fields<'_>, whole: &str, events: &mut Events) {
        let item = Fields::parse(whole).unwrap_or_default();
        let kind = ItemKind::of(&item);
        let id = item.text("id").unwrap_or_default();
        let at = self.locate(kind, fields.number("output_index"), &id);
        let at = at.unwrap_or_else(|| self.begin(kind, fields, &item));
        self.end_at(at, whole, events);
        self.give_calls(false, events);
    }

    fn end_at(&mut self, at: usize, whole: &str, events: &mut Events) {
        self.open.retain(|open| *open != at);
        if let Some(item) = self.items.get_mut(at) {
            self.has_refused |= item.end(whole, &mut self.flow, events);
        }
    }

    /// Gives the calls that are whole, in the order in which they began.
    fn give_calls(&mut self, is_over: bool, events: &mut Events) {
        while let Some(call) = self.calls.front().and_then(|at| self.items.get_mut(*at)) {
            if !call.is_done && !is_over {
                return;
            }
            call.call(&mut self.flow, events);
            self.calls.pop_front();
        }
    }

    /// Takes what the end of a response repeats and the stream did not tell.
    fn complete(&mut self, response: &Fields<'_>, events: &mut Events) {
        for (place, whole) in response.items("output").into_iter().enumerate() {
            let item = Fields::of(whole);
            let kind = ItemKind::of(&item);
            let free = |known: &Item| known.kind == kind && !known.is_claimed;
            let same_place = Some(place).filter(|at| self.items.get(*at).is_some_and(free));
            let at = same_place.or_else(|| self.items.iter().position(free));
            let at = at.unwrap_or_else(|| self.begin(kind, &Fields::default(), &item));
            let Some(known) = self.items.get_mut(at) else {
                continue;
            };
            known.is_claimed = true;
            if !known.is_done {
                self.end_at(at, whole.get(), events);
            }
        }
        self.give_calls(true, events);
    }

    fn finish(
        &mut self,
        kind: &str,
        data: &str,
        response: &Fields<'_>,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let status = response.text("status");
        // The name of the event says the same, where a server leaves the status out.
        let status = status.as_deref().or(kind.strip_prefix("response."));
        let status = match status.unwrap_or("completed") {
            "done" => "completed",
            status => status,
        };
        if let Some(error) = response.get("error").filter(|_| status != "completed") {
            return Err(failure::told(&self.target, error.get()));
        }
        match status {
            "failed" => return Err(failure::told(&self.target, data)),
            "cancelled" => return Err(failure::ended_with(&self.target, status)),
            _ => self.complete(response, events),
        }
        let details = response.object("incomplete_details");
        let word = match status {
            "incomplete" => details.text("reason").unwrap_or(status.into()),
            status => status.into(),
        };
        let reason = match stop::ending(&word) {
            Ending::Stop(StopReason::EndTurn) if self.has_refused => StopReason::Refusal,
            Ending::Stop(reason) => reason,
            Ending::Failed | Ending::BadCall | Ending::Paused => {
                return Err(failure::ended_with(&self.target, &word));
            }
            Ending::Unknown => {
                events.push_back(ChatEvent::Warning {
                    message: format!(
                        "{} stopped for a reason unknown here ({word})",
                        self.target.service
                    ),
                });
                StopReason::Other
            }
        };
        let end = Completion::new()
            .with_usage(usage(&response.object("usage")))
            .with_stop_reason(reason);
        events.push_back(ChatEvent::Done(end));
        Ok(())
    }
}

fn usage(figures: &Fields<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    let input = figures.number("input_tokens").filter(|input| *input > 0);
    let output = figures.number("output_tokens");
    if input.is_some() {
        usage.input_tokens = input;
        usage.cached_input_tokens = figures
            .object("input_tokens_details")
            .number("cached_tokens");
    }
    // A server that knows no figures sends zeros.
    if input.is_some() || output.is_some_and(|output| output > 0) {
        usage.output_tokens = output;
        usage.reasoning_tokens = figures
            .object("output_tokens_details")
            .number("reasoning_tokens");
    }
    (usage != Usage::default()).then_some(usage)
}

//! From the chunks of Chat Completions to the agent's events.

use serde_json::value::RawValue;
use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason, Usage};

use super::thoughts::{self, Source, Thoughts};
use super::{WIRE, call, usage};
use crate::calls::Calls;
use crate::failure;
use crate::think::{Piece, Splitter};
use crate::wire::flow::{Events, Flow, Kind};
use crate::wire::json::{self, Fields, Halves};
use crate::wire::origin::Origin;
use crate::wire::stop::{self, Ending};
use crate::wire::{Decoder, Frame, Target, fault};

/// Reads one answer.
pub(crate) fn decoder(target: &Target) -> Box<dyn Decoder> {
    Box::new(Chat {
        flow: Flow::new(Origin::new(WIRE, target)),
        splitter: Splitter::new(target.quirks.think_tags),
        target: target.clone(),
        thoughts: Thoughts::default(),
        calls: Calls::default(),
        stop: None,
        refused: false,
        odd: None,
        halves: Halves::default(),
        is_warned: false,
        usage: None,
    })
}

struct Chat {
    target: Target,
    flow: Flow,
    splitter: Splitter,
    /// The reasoning that is not closed.
    thoughts: Thoughts,
    calls: Calls,
    /// The finish reason, once it came.
    stop: Option<String>,
    refused: bool,
    /// The first frame that is neither a piece of an answer nor an error.
    odd: Option<String>,
    /// The half of a character at the end of the content.
    halves: Halves,
    is_warned: bool,
    usage: Option<Usage>,
}

impl Decoder for Chat {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let data = frame.data.trim();
        if data == "[DONE]" {
            return self.finish(events);
        }
        let Ok(fields) = Fields::parse(data) else {
            // The start of an object is what a cut leaves behind; words are an error's.
            let is_torn = data.starts_with(['{', '[', '"']);
            return Err(if is_torn {
                failure::broke_off(&self.target)
            } else {
                failure::told(&self.target, data)
            });
        };
        if data.starts_with(['[', '"']) {
            // Google's errors come in a list.
            return Err(failure::told(&self.target, data));
        }
        if fields.get("choices").is_none() && fields.get("usage").is_none() && !fields.is_empty() {
            self.odd.get_or_insert_with(|| data.to_owned());
        }
        self.chunk(frame.event, &fields, data, events)
    }

    fn body(&mut self, body: &str, events: &mut Events) -> Result<(), ProviderError> {
        let Ok(fields) = Fields::parse(body) else {
            return Err(failure::broke_off(&self.target));
        };
        self.chunk(None, &fields, body, events)?;
        if fields.items("choices").is_empty() {
            return Err(failure::told(&self.target, body));
        }
        self.finish(events)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        match (&self.stop, &self.odd) {
            (Some(_), _) => self.finish(events),
            // What was not understood may be the reason.
            (None, Some(odd)) => Err(failure::odd(&self.target, odd)),
            (None, None) => Err(failure::broke_off(&self.target)),
        }
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }
}

impl Chat {
    fn chunk(
        &mut self,
        event: Option<&str>,
        fields: &Fields<'_>,
        data: &str,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let minimax = fields.object("base_resp").number("status_code");
        if fault::is_error(event, fields) || minimax.is_some_and(|code| code != 0) {
            return Err(failure::told(&self.target, data));
        }
        for place in [
            fields.object("usage"),
            fields.object("x_groq").object("usage"),
        ] {
            self.usage = usage::read(&place).or(self.usage);
        }
        for choice in fields.items("choices") {
            let choice = Fields::of(choice);
            if choice.number("index").is_some_and(|index| index > 0) {
                continue;
            }
            if fault::is_error(None, &choice) {
                return Err(failure::told(&self.target, data));
            }
            // Moonshot
            self.usage = usage::read(&choice.object("usage")).or(self.usage);
            self.choice(&choice, events);
            if let Some(word) = choice
                .text("finish_reason")
                .filter(|word| !word.trim().is_empty())
            {
                self.stop = Some(word.trim().to_owned());
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Fields<'_>, events: &mut Events) {
        let delta = choice.object("delta");
        let is_delta = delta
            .iter()
            .any(|(name, value)| name != "role" && value.get() != "null");
        if is_delta {
            return self.delta(&delta, events);
        }
        // The whole message, in a body or once more at the end of a stream.
        let has_begun = self.flow.has_text() || !self.calls.is_empty() || !self.thoughts.is_empty();
        if has_begun {
            return;
        }
        let message = choice.object("message");
        if !message.is_empty() {
            self.delta(&message, events);
        } else if let Some(text) = choice.text("text") {
            self.text(&text, events);
        }
    }

    fn delta(&mut self, delta: &Fields<'_>, events: &mut Events) {
        self.reasoning(delta, events);
        if let Some(content) = delta.get("content") {
            match self.halves.text(content) {
                Some(text) => self.text(&text, events),
                None => self.chunks(content, events),
            }
        }
        if let Some(words) = delta.text("refusal").filter(|words| !words.is_empty()) {
            self.refused = true;
            self.plain(&words, events);
        }
        let calls = delta.get("tool_calls");
        for call in calls.map(json::items).unwrap_or_default() {
            call::take(&mut self.calls, &Fields::of(call));
        }
        // One call in place of a list of them, and what came before there were lists.
        let single = [calls, delta.get("function_call")];
        for call in single
            .into_iter()
            .flatten()
            .filter(|call| call.get().starts_with('{'))
        {
            call::take(&mut self.calls, &Fields::of(call));
        }
        self.warn_of_others(delta, events);
    }

    fn reasoning(&mut self, delta: &Fields<'_>, events: &mut Events) {
        let details = delta.items("reasoning_details");
        let blocks = delta.items("thinking_blocks");
        let plain = thoughts::PLAIN
            .iter()
            .find_map(|name| Some((*name, delta.text(name).filter(|text| !text.is_empty())?)));
        if plain.is_some() || !details.is_empty() || !blocks.is_empty() {
            self.splitter.stop();
        }
        if let Some((name, text)) = &plain {
            self.thoughts.say(Source::Field(name), text);
            self.flow.piece(Kind::Reasoning, text, events);
        }
        for (list, names) in [
            (&details, &["text", "summary"][..]),
            (&blocks, &["thinking"][..]),
        ] {
            for block in list {
                if plain.is_none()
                    && let Some(text) = thoughts::text_of(block, names)
                {
                    self.thoughts.show(&text);
                    self.flow.piece(Kind::Reasoning, &text, events);
                }
            }
        }
        for detail in details {
            self.thoughts.detail(detail);
        }
        for block in blocks {
            self.thoughts.block(block);
        }
        for name in thoughts::OPAQUE {
            if let Some(value) = delta.get(name) {
                self.thoughts.opaque(name, value);
            }
        }
        // LiteLLM's place for the signatures of Gemini.
        if let Some(value) = delta.get("provider_specific_fields")
            && Fields::of(value).get("thought_signatures").is_some()
        {
            self.thoughts.opaque("provider_specific_fields", value);
        }
    }

    /// A piece of the content, which may have thoughts in it.
    fn text(&mut self, text: &str, events: &mut Events) {
        if self.splitter.is_done() {
            return self.plain(text, events);
        }
        let mut pieces = Vec::new();
        self.splitter.take(text, &mut |piece| pieces.push(piece));
        self.pieces(pieces, events);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, events: &mut Events) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.plain(&text, events),
                Piece::Thought(text) => {
                    if let Some((open, close)) = self.splitter.tags() {
                        self.thoughts.say(Source::Tags(open, close), &text);
                    }
                    self.flow.piece(Kind::Reasoning, &text, events);
                }
            }
        }
    }

    /// A piece of the answer's text.
    fn plain(&mut self, text: &str, events: &mut Events) {
        if !text.is_empty() {
            self.close_thoughts(events);
            self.flow.piece(Kind::Text, text, events);
        }
    }

    fn chunks(&mut self, content: &RawValue, events: &mut Events) {
        for (is_thought, text) in thoughts::chunks(content) {
            if is_thought {
                self.splitter.stop();
                self.thoughts.say(Source::Chunks, &text);
                self.flow.piece(Kind::Reasoning, &text, events);
            } else {
                self.text(&text, events);
            }
        }
    }

    /// Closes the open reasoning with what must go back of it.
    fn close_thoughts(&mut self, events: &mut Events) {
        if self.thoughts.is_empty() {
            return;
        }
        let thoughts = std::mem::take(&mut self.thoughts);
        let item = thoughts.item();
        match thoughts.shown() {
            0 => self.flow.hidden(&item, events),
            shown => self.flow.close(Kind::Reasoning, shown, &item, events),
        }
    }

    /// What the agent has no place for is told, once.
    fn warn_of_others(&mut self, delta: &Fields<'_>, events: &mut Events) {
        let has = |name: &str| {
            delta
                .get(name)
                .is_some_and(|value| !matches!(value.get(), "[]" | "{}" | "\"\""))
        };
        let what = [("images", "an image"), ("audio", "sound")]
            .into_iter()
            .find(|(name, _)| has(name));
        if let Some((_, what)) = what.filter(|_| !self.is_warned) {
            self.is_warned = true;
            let message = format!(
                "{} answered with {what}, which cannot be shown",
                self.target.service
            );
            events.push_back(ChatEvent::Warning { message });
        }
    }

    fn finish(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        let word = self.stop.clone().unwrap_or_default();
        let ending = stop::ending(&word);
        if matches!(ending, Ending::Failed | Ending::BadCall) {
            return Err(failure::ended_with(&self.target, &word));
        }
        let mut held = Vec::new();
        self.splitter.finish(&mut |piece| held.push(piece));
        self.pieces(held, events);
        self.close_thoughts(events);
        let calls = self.calls.finish();
        let is_announced = matches!(word.as_str(), "tool_calls" | "function_call" | "tool_use");
        if calls.is_empty() && is_announced && !self.flow.has_text() {
            let what = "it announced a tool call and sent none that can be read";
            return Err(failure::ended_with(&self.target, what));
        }
        for call in calls {
            call::give(&mut self.flow, &call, events);
        }
        let reason = self.reason(&word, ending, events);
        let end = Completion::new()
            .with_stop_reason(reason)
            .with_usage(self.usage);
        events.push_back(ChatEvent::Done(end));
        Ok(())
    }

    fn reason(&self, word: &str, ending: Ending, events: &mut Events) -> Option<StopReason> {
        match ending {
            Ending::Stop(StopReason::EndTurn) if self.refused => Some(StopReason::Refusal),
            Ending::Stop(reason) => Some(reason),
            _ if word.is_empty() => self.refused.then_some(StopReason::Refusal),
            _ => {
                let word: String = word.chars().take(60).collect();
                let message = format!(
                    "{} ended the answer for a reason that is not known: {word}",
                    self.target.service
                );
                events.push_back(ChatEvent::Warning { message });
                Some(StopReason::Other)
            }
        }
    }
}

//! From the chunks of `streamGenerateContent` to the agent's events.

use serde_json::value::RawValue;
use youyou_agent::{ChatEvent, Completion, ProviderError, StopReason, Usage};

use super::WIRE;
use crate::failure;
use crate::wire::body::{quoted, with_fields};
use crate::wire::flow::{Call, Events, Flow, Kind};
use crate::wire::json::{self, Fields};
use crate::wire::origin::Origin;
use crate::wire::stop::{self, Ending};
use crate::wire::{Decoder, Frame, Target, fault};

/// How often one answer is gone on with after the server's limit of a request.
const MOST_CONTINUATIONS: u32 = 50;

/// Reads one answer.
pub(crate) fn decoder(target: &Target) -> Box<dyn Decoder> {
    Box::new(Gemini {
        target: target.clone(),
        flow: Flow::new(Origin::new(WIRE, target)),
        has_calls: false,
        stop: None,
        tokens: Tokens::default(),
        token: None,
        continuations: 0,
    })
}

struct Gemini {
    target: Target,
    flow: Flow,
    has_calls: bool,
    /// Why the answer ended, once that came. Old servers repeat it with every chunk.
    stop: Option<Stop>,
    tokens: Tokens,
    /// What a server that cut the answer at its own limit wants to go on with it.
    token: Option<String>,
    continuations: u32,
}

/// What a server says of the end.
struct Stop {
    reason: String,
    /// In the server's words.
    message: Option<String>,
    /// Whether the request was blocked before anything was written.
    is_blocked: bool,
}

impl Decoder for Gemini {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let data = frame.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let Ok(value) = serde_json::from_str::<&RawValue>(data) else {
            return Err(failure::broke_off(&self.target));
        };
        self.chunks(frame.event, value, events)
    }

    fn body(&mut self, body: &str, events: &mut Events) -> Result<(), ProviderError> {
        let Ok(value) = serde_json::from_str::<&RawValue>(body) else {
            return Err(failure::told(&self.target, body));
        };
        self.chunks(None, value, events)?;
        if self.stop.is_none() && !self.flow.has_text() && !self.has_calls {
            return Err(failure::told(&self.target, body));
        }
        self.end(events)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        let Some(stop) = self.stop.take() else {
            return Err(failure::broke_off(&self.target));
        };
        let says_nothing = !self.flow.has_text() && !self.has_calls;
        let reason = match stop::ending(&stop.reason) {
            _ if stop.is_blocked => {
                let what = format!("blocked the request ({})", stop.reason);
                events.push_back(self.warning(&what));
                StopReason::ContentFilter
            }
            Ending::Stop(reason) => reason,
            Ending::Failed | Ending::BadCall | Ending::Paused => return Err(self.failed(&stop)),
            Ending::Unknown if says_nothing => return Err(self.failed(&stop)),
            Ending::Unknown => {
                let what = format!("stopped for a reason unknown here ({})", stop.reason);
                events.push_back(self.warning(&what));
                StopReason::Other
            }
        };
        if let Some(message) = stop.message.filter(|_| reason != StopReason::EndTurn) {
            events.push_back(self.warning(&format!("says: {message}")));
        }
        let end = Completion::new()
            .with_usage(self.tokens.usage())
            .with_stop_reason(reason);
        events.push_back(ChatEvent::Done(end));
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    fn continuation(&mut self, sent: &str) -> Option<String> {
        let token = self.token.take()?;
        self.stop = None;
        self.continuations += 1;
        self.tokens.next_response();
        Some(with_fields(sent, &[("continuationToken", token)]))
    }
}

impl Gemini {
    /// Takes a chunk, or all of them in a list.
    fn chunks(
        &mut self,
        event: Option<&str>,
        value: &RawValue,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        if !value.get().starts_with('[') {
            return self.chunk(event, value, events);
        }
        for chunk in json::items(value) {
            self.chunk(event, chunk, events)?;
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        event: Option<&str>,
        value: &RawValue,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let fields = Fields::of(value);
        // Some gateways of the vendor wrap each chunk.
        if let Some(inner) = fields.get("response") {
            return self.chunk(event, inner, events);
        }
        if fault::is_error(event, &fields) {
            return Err(failure::told(&self.target, value.get()));
        }
        self.tokens.see(&fields.object("usageMetadata"));
        let feedback = fields.object("promptFeedback");
        if let Some(reason) = feedback.text("blockReason") {
            self.stop = Some(Stop {
                reason: reason.into_owned(),
                message: feedback.text("blockReasonMessage").map(Into::into),
                is_blocked: true,
            });
        }
        // Only one candidate is asked for.
        if let Some(candidate) = fields.items("candidates").first() {
            self.candidate(&Fields::of(candidate), events);
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: &Fields<'_>, events: &mut Events) {
        for part in candidate.object("content").items("parts") {
            self.part(part, events);
        }
        let Some(reason) = candidate.text("finishReason") else {
            return;
        };
        if reason == "CONTINUATION" && self.continuations < MOST_CONTINUATIONS {
            let token = candidate.text("continuationToken");
            self.token = token.map(|token| quoted(&token));
        }
        self.stop = Some(Stop {
            reason: reason.into_owned(),
            message: candidate.text("finishMessage").map(Into::into),
            is_blocked: false,
        });
    }

    fn part(&mut self, part: &RawValue, events: &mut Events) {
        let fields = Fields::of(part);
        let is_signed = ["thoughtSignature", "thought_signature"]
            .iter()
            .any(|name| fields.text(name).is_some_and(|text| !text.is_empty()));
        if let Some(call) = fields.get("functionCall") {
            return self.call(&Fields::of(call), part, events);
        }
        let Some(text) = fields.text("text") else {
            // Pictures, code that the server ran, and what the vendor may add.
            if is_signed || fields.iter().any(|(name, _)| name != "thought") {
                self.flow.hidden(part.get(), events);
            }
            return;
        };
        let is_thought = fields.get("thought").map(RawValue::get) == Some("true");
        let kind = if is_thought {
            Kind::Reasoning
        } else {
            Kind::Text
        };
        self.flow.piece(kind, &text, events);
        if is_signed {
            self.flow.close(kind, text.len(), part.get(), events);
        }
    }

    fn call(&mut self, call: &Fields<'_>, part: &RawValue, events: &mut Events) {
        self.has_calls = true;
        let id = call.text("id");
        let arguments = call.get("args").map(|args| {
            let text = json::text(args);
            text.map_or_else(|| args.get().to_owned(), Into::into)
        });
        let call = Call {
            id: id.as_deref().filter(|id| !id.trim().is_empty()),
            // The vendor may repeat its ids in each answer; the agent then makes others.
            is_id_seen: false,
            name: &call.text("name").unwrap_or_default(),
            arguments: arguments.unwrap_or_default(),
            // Kept without a signature too: only calls of other models get a stand-in for it.
            item: Some(part.get()),
        };
        self.flow.call(call, events);
    }

    fn failed(&self, stop: &Stop) -> ProviderError {
        match &stop.message {
            Some(message) => {
                failure::ended_with(&self.target, &format!("{}: {message}", stop.reason))
            }
            None => failure::ended_with(&self.target, &stop.reason),
        }
    }

    fn warning(&self, what: &str) -> ChatEvent {
        ChatEvent::Warning {
            message: format!("{} {what}", self.target.service),
        }
    }
}

/// The figures so far. Each chunk tells sums: a later figure replaces an earlier one.
#[derive(Debug, Default)]
struct Tokens {
    /// What the responses before the last continuation cost.
    before: Usage,
    prompt: Option<u64>,
    tools: Option<u64>,
    cached: Option<u64>,
    text: Option<u64>,
    thoughts: Option<u64>,
}

impl Tokens {
    fn see(&mut self, usage: &Fields<'_>) {
        let see = |known: &mut Option<u64>, name: &str| {
            *known = usage.number(name).or(*known);
        };
        see(&mut self.prompt, "promptTokenCount");
        see(&mut self.tools, "toolUsePromptTokenCount");
        see(&mut self.cached, "cachedContentTokenCount");
        see(&mut self.text, "candidatesTokenCount");
        see(&mut self.thoughts, "thoughtsTokenCount");
    }

    fn next_response(&mut self) {
        let mut before = self.before;
        before += self.of_response();
        *self = Self {
            before,
            ..Self::default()
        };
    }

    fn usage(&self) -> Option<Usage> {
        let mut all = self.before;
        all += self.of_response();
        (all != Usage::default()).then_some(all)
    }

    fn of_response(&self) -> Usage {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            _ => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        let input = sum(self.prompt, self.tools).filter(|input| *input > 0);
        // The vendor counts thoughts apart from the text.
        let output = sum(self.text, self.thoughts);
        let mut usage = Usage::default();
        if input.is_some() {
            usage.input_tokens = input;
            usage.cached_input_tokens = self.cached;
        }
        // A server that knows no figures sends zeros.
        if input.is_some() || output.is_some_and(|output| output > 0) {
            usage.output_tokens = output;
            usage.reasoning_tokens = self.thoughts;
        }
        usage
    }
}

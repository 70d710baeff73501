//! From genai's stream to the agent's events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    ChatFrameSink, ChatStream as GenaiStream, ChatStreamEvent, ContentPart, FrameCtx, RawFrameRef,
    StopReason as GenaiStop, StreamEnd, ToolCall, Usage as GenaiUsage,
};
use futures_util::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;
use youyou_agent::{ChatEvent, ProviderData, ProviderError, ProviderErrorKind, StopReason, Usage};

use super::calls::{Calls, arguments_text};
use super::failure;

/// What the end of a stream must say to count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndMarker {
    /// genai makes an end only of the vendor's own marker.
    Own,
    /// genai makes an end of the end of data too; a real one names a stop reason (Gemini).
    StopReason,
}

/// The events of one answer.
///
/// The connection is given up before the last event is handed out, not when the server
/// closes it, and at once when the stream is dropped or `cancel` fires.
pub(super) fn events(
    inner: GenaiStream,
    service: String,
    marker: EndMarker,
    torn: Torn,
    cancel: CancellationToken,
) -> impl Stream<Item = ChatEvent> + Send {
    let answer = Answer {
        inner: Some(inner),
        queue: VecDeque::new(),
        calls: Calls::default(),
        service,
        marker,
        torn,
    };
    stream::unfold(answer, Answer::next).take_until(cancel.cancelled_owned())
}

/// Told by genai of every frame, remembers whether one lost its name.
///
/// Where lines end with CR LF and a packet ends between the two, genai takes one event for
/// two, the name in the first and the data in the second. Anthropic's events mean nothing
/// without their names: genai passes them over, and a piece of the answer would be missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Torn(Arc<AtomicBool>);

impl Torn {
    fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ChatFrameSink for Torn {
    fn on_frame(&self, context: &FrameCtx, frame: RawFrameRef<'_>) {
        let is_named = context.model_iden.adapter_kind == AdapterKind::Anthropic;
        if is_named && frame.event.is_none() && !frame.data.is_empty() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

struct Answer {
    /// Gone as soon as the end is known.
    inner: Option<GenaiStream>,
    queue: VecDeque<ChatEvent>,
    /// Pieces of calls so far.
    calls: Calls,
    service: String,
    marker: EndMarker,
    torn: Torn,
}

impl Answer {
    async fn next(mut self) -> Option<(ChatEvent, Self)> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some((event, self));
            }
            let next = self.inner.as_mut()?.next().await;
            if self.torn.happened() {
                let error = failure::torn(&self.service);
                self.fail(error);
                continue;
            }
            match next {
                Some(Ok(event)) => self.take(event),
                // After an error object genai reads on to the end: the first error counts.
                Some(Err(error)) => {
                    let error = failure::from_genai(&self.service, error);
                    self.fail(error);
                }
                None => {
                    let error = failure::ended_early(&self.service);
                    self.fail(error);
                }
            }
        }
    }

    fn take(&mut self, event: ChatStreamEvent) {
        match event {
            ChatStreamEvent::Chunk(chunk) => self.queue.push_back(ChatEvent::text(chunk.content)),
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.queue.push_back(ChatEvent::reasoning(chunk.content));
            }
            ChatStreamEvent::End(end) => self.end(end),
            // Whole calls come with the end, and so do signatures.
            ChatStreamEvent::ToolCallChunk(chunk) => self.calls.note(chunk.tool_call),
            ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat => {}
        }
    }

    fn end(&mut self, end: StreamEnd) {
        if self.marker == EndMarker::StopReason && end.captured_stop_reason.is_none() {
            return self.fail(failure::ended_early(&self.service));
        }
        self.inner = None;
        let stop_reason = end.captured_stop_reason.map(stop_reason);
        let mut kept = Vec::new();
        let mut calls = Vec::new();
        for part in end
            .captured_content
            .into_iter()
            .flat_map(|content| content.into_parts())
        {
            match part {
                ContentPart::ToolCall(call) => calls.push(call),
                ContentPart::ThoughtSignature(_) | ContentPart::ReasoningContent(_) => {
                    kept.push(part)
                }
                // The model's name is not needed, and genai cannot read back what it writes.
                ContentPart::Custom(mut custom) => {
                    custom.model_iden = None;
                    kept.push(ContentPart::Custom(custom));
                }
                ContentPart::Text(_) | ContentPart::Binary(_) | ContentPart::ToolResponse(_) => {}
            }
        }
        if calls.is_empty() && stop_reason == Some(StopReason::ToolUse) {
            return self.fail(ProviderError::new(
                ProviderErrorKind::Other,
                format!(
                    "{} announced a tool call in a form that cannot be read",
                    self.service
                ),
            ));
        }
        self.queue.extend(
            std::mem::take(&mut self.calls)
                .put_right(calls)
                .into_iter()
                .map(tool_call),
        );
        self.queue.push_back(ChatEvent::Done {
            usage: end.captured_usage.and_then(usage),
            stop_reason,
            provider_data: provider_data(&kept),
        });
    }

    fn fail(&mut self, error: ProviderError) {
        self.inner = None;
        self.queue.push_back(ChatEvent::Error(error));
    }
}

fn tool_call(call: ToolCall) -> ChatEvent {
    ChatEvent::ToolCall {
        arguments: arguments_text(&call.fn_arguments),
        provider_data: call.thought_signatures.as_deref().and_then(provider_data),
        call_id: call.call_id,
        tool_name: call.fn_name,
    }
}

fn provider_data<T: serde::Serialize>(parts: &[T]) -> Option<ProviderData> {
    if parts.is_empty() {
        return None;
    }
    serde_json::to_string(parts)
        .ok()
        .map(|json| ProviderData(json.into()))
}

/// A server that knows no figures sends zeros: that is unknown, not free.
fn usage(usage: GenaiUsage) -> Option<Usage> {
    let count = |tokens: Option<i32>| {
        tokens
            .and_then(|tokens| u64::try_from(tokens).ok())
            .filter(|tokens| *tokens > 0)
    };
    let input = usage.prompt_tokens_details.as_ref();
    let output = usage.completion_tokens_details.as_ref();
    let known = Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_input_tokens: count(input.and_then(|details| details.cached_tokens)),
        reasoning_tokens: count(output.and_then(|details| details.reasoning_tokens)),
    };
    (known != Usage::default()).then_some(known)
}

fn stop_reason(reason: GenaiStop) -> StopReason {
    match reason {
        GenaiStop::Completed(_) | GenaiStop::StopSequence(_) => StopReason::EndTurn,
        GenaiStop::MaxTokens(_) => StopReason::Length,
        GenaiStop::ToolCall(_) => StopReason::ToolUse,
        GenaiStop::ContentFilter(_) => StopReason::ContentFilter,
        GenaiStop::Other(_) => StopReason::Other,
    }
}

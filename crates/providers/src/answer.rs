//! One answer of a server: its bytes become the agent's events.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Response;
use youyou_agent::{ChatEvent, ChatStream, ProviderError};

use crate::failure;
use crate::http;
use crate::keys::Scrubber;
use crate::line::Line;
use crate::sse::{Fault, Frames};
use crate::wire::{Decoder, Frame, Target};

/// How long figures are waited for once all of the answer was seen.
const GRACE: Duration = Duration::from_secs(5);
/// So many blanks may come before an answer: some servers send them while they think.
const BLANKS: usize = 1 << 20;

/// An answer that is being read.
pub(crate) struct Answer {
    pub(crate) target: Target,
    pub(crate) decoder: Box<dyn Decoder>,
    pub(crate) scrubber: Scrubber,
    /// For the requests that go on with a paused answer.
    pub(crate) line: Line,
    /// The body whose answer is read.
    pub(crate) sent: String,
    events: VecDeque<ChatEvent>,
    source: Source,
    failed: Option<ProviderError>,
}

/// Where the answer comes from.
enum Source {
    /// Nothing of it was read yet.
    Fresh(Response),
    Stream(Frames),
    /// The end is known; the connection is closed.
    Over,
}

impl Answer {
    pub(crate) fn new(
        target: Target,
        decoder: Box<dyn Decoder>,
        scrubber: Scrubber,
        line: Line,
        sent: String,
        response: Response,
    ) -> Self {
        Self {
            target,
            decoder,
            scrubber,
            line,
            sent,
            events: VecDeque::new(),
            source: Source::Fresh(response),
            failed: None,
        }
    }

    pub(crate) fn into_stream(self) -> ChatStream {
        Box::pin(stream::unfold(self, Self::next))
    }

    async fn next(mut self) -> Option<(Result<ChatEvent, ProviderError>, Self)> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some((Ok(self.clean(event)), self));
            }
            if let Some(error) = self.failed.take() {
                return Some((Err(error), self));
            }
            match std::mem::replace(&mut self.source, Source::Over) {
                Source::Over => return None,
                Source::Fresh(response) => self.begin(response).await,
                Source::Stream(frames) => self.read(frames).await,
            }
        }
    }

    /// Reads up to the first letter: it tells a stream from what comes in place of one, and
    /// servers name the wrong type for either.
    async fn begin(&mut self, mut response: Response) {
        let mut start = Vec::new();
        let first = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => start.extend_from_slice(&chunk),
                Ok(None) => break None,
                Err(error) => return self.fail(failure::transport(&self.target, &error)),
            }
            if let Some(first) = first_letter(&start) {
                break Some(first);
            }
            if start.len() > BLANKS {
                return self.fail(failure::flooded(&self.target));
            }
        };
        match first {
            Some(b'{' | b'[') => match http::text(&mut response, start).await {
                Ok(body) => self.take_body(&body).await,
                Err(error) => self.fail(failure::transport(&self.target, &error)),
            },
            Some(b'<') => self.fail(failure::page(&self.target)),
            _ => {
                let rest = stream::unfold(Some(response), |response| async {
                    let mut response = response?;
                    match response.chunk().await {
                        Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(response))),
                        Err(error) => Some((Err(error), None)),
                    }
                });
                let start = stream::iter([Ok(Bytes::from(start))]);
                let bytes = futures_util::StreamExt::chain(start, rest);
                self.source = Source::Stream(Frames::new(bytes));
            }
        }
    }

    async fn take_body(&mut self, body: &str) {
        let body = body.trim_start_matches('\u{feff}');
        if let Err(error) = self.decoder.body(body, &mut self.events) {
            return self.fail(error);
        }
        if !self.go_on().await && !self.is_done() {
            self.fail(failure::broke_off(&self.target));
        }
    }

    async fn read(&mut self, mut frames: Frames) {
        let next = frames.next();
        let next = if self.decoder.is_over() {
            // What does not come now is not worth an answer that is there.
            tokio::time::timeout(GRACE, next).await.unwrap_or(None)
        } else {
            next.await
        };
        let taken = match next {
            Some(Ok((event, data))) => {
                let frame = Frame {
                    event: event.as_deref(),
                    data: &data,
                };
                self.decoder.frame(frame, &mut self.events)
            }
            // The answer is whole, whatever became of the connection.
            Some(Err(_)) | None if self.decoder.is_over() => {
                let ended = self.decoder.end(&mut self.events);
                return self.close(ended);
            }
            Some(Err(fault)) => Err(self.fault(&fault)),
            None => {
                let ended = self.decoder.end(&mut self.events);
                return self.close(ended);
            }
        };
        match taken {
            Err(error) => self.fail(error),
            Ok(()) => {
                if !self.go_on().await && !self.is_done() && self.failed.is_none() {
                    self.source = Source::Stream(frames);
                }
            }
        }
    }

    /// The data ended.
    fn close(&mut self, ended: Result<(), ProviderError>) {
        match ended {
            Err(error) => self.fail(error),
            Ok(()) if self.is_done() => {}
            Ok(()) => self.fail(failure::broke_off(&self.target)),
        }
    }

    /// Asks for the rest of a paused answer.
    async fn go_on(&mut self) -> bool {
        let Some(body) = self.decoder.continuation(&self.sent) else {
            return false;
        };
        match self.line.send(&self.target, body.clone()).await {
            Ok(response) => {
                self.sent = body;
                self.source = Source::Fresh(response);
            }
            Err(error) => self.fail(error),
        }
        true
    }

    fn is_done(&self) -> bool {
        matches!(self.events.back(), Some(ChatEvent::Done(_)))
    }

    fn fault(&self, fault: &Fault) -> ProviderError {
        match fault {
            Fault::Broken(error) => failure::transport(&self.target, error),
            Fault::Flood => failure::flooded(&self.target),
            Fault::Damaged => failure::broke_off(&self.target),
        }
    }

    fn fail(&mut self, error: ProviderError) {
        self.failed = Some(self.scrubber.error(error));
    }

    /// Warnings quote servers, too.
    fn clean(&self, event: ChatEvent) -> ChatEvent {
        match event {
            ChatEvent::Warning { message } => ChatEvent::Warning {
                message: self.scrubber.scrub(message),
            },
            other => other,
        }
    }
}

/// The first letter of a body that is no blank; a mark of the byte order is passed over.
fn first_letter(start: &[u8]) -> Option<u8> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if MARK.starts_with(start) {
        return None;
    }
    let start = start.strip_prefix(MARK).unwrap_or(start);
    start
        .iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

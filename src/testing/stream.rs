//! The stream of a scripted answer: plays the steps and notices how it ends.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Step;
use super::manual::ManualEnd;
use super::record::Counts;
use crate::{ChatEvent, ProviderError};

/// What a stream of a model gives.
pub(super) type Given = Result<ChatEvent, ProviderError>;

/// A silence of the stream.
type Silence = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct ScriptStream {
    pub(super) steps: VecDeque<Step>,
    pub(super) cancel: CancellationToken,
    pub(super) silence: Option<Silence>,
    pub(super) counts: Arc<watch::Sender<Counts>>,
    /// Set once the stream has given its end, so that dropping it after is no loss.
    pub(super) ended: bool,
}

impl ScriptStream {
    fn give(&mut self, given: Given) -> Poll<Option<Given>> {
        self.ended |= matches!(given, Ok(ChatEvent::Done(_)) | Err(_));
        Poll::Ready(Some(given))
    }

    fn fall_silent(&mut self, silence: impl Future<Output = ()> + Send + 'static) {
        self.silence = Some(Box::pin(silence));
    }

    /// `None` when there is nothing to give yet or any more, and the next step decides.
    fn by_hand(
        &mut self,
        mut end: ManualEnd,
        context: &mut Context<'_>,
    ) -> Option<Poll<Option<Given>>> {
        if !end.flow().is_open() {
            let flow = end.flow().clone();
            self.steps.push_front(Step::Manual(end));
            self.fall_silent(async move { flow.pass().await });
            return None;
        }
        let polled = end.poll(context);
        if matches!(polled, Poll::Ready(None)) {
            return None;
        }
        self.steps.push_front(Step::Manual(end));
        match polled {
            Poll::Ready(Some(event)) => Some(self.give(event)),
            Poll::Ready(None) => None,
            Poll::Pending => Some(Poll::Pending),
        }
    }

    #[expect(clippy::panic, reason = "the script asks for it")]
    fn panic(&mut self, message: &str) -> ! {
        self.ended = true;
        panic!("{message}")
    }
}

impl Stream for ScriptStream {
    type Item = Given;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Given>> {
        let this = &mut *self;
        loop {
            if let Some(silence) = &mut this.silence {
                ready!(silence.as_mut().poll(context));
                this.silence = None;
            }
            match this.steps.pop_front() {
                None => {
                    this.ended = true;
                    return Poll::Ready(None);
                }
                Some(Step::Emit(event)) => return this.give(Ok(event)),
                Some(Step::Fail(error)) => return this.give(Err(error)),
                Some(Step::Wait) => this.fall_silent(std::future::pending()),
                Some(Step::UntilCancelled) => {
                    let cancelled = this.cancel.clone().cancelled_owned();
                    this.fall_silent(cancelled);
                }
                Some(Step::Gate(gate)) => this.fall_silent(async move { gate.pass().await }),
                Some(Step::Yield) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Panic(message) | Step::PanicInChat(message)) => this.panic(&message),
                Some(Step::Refuse(error)) => return this.give(Err(error)),
                Some(Step::Manual(end)) => {
                    if let Some(polled) = this.by_hand(end, context) {
                        return polled;
                    }
                }
            }
        }
    }
}

impl Drop for ScriptStream {
    fn drop(&mut self) {
        let lost = usize::from(!self.ended);
        self.counts.send_modify(|counts| {
            counts.closed += 1;
            counts.dropped += lost;
        });
    }
}

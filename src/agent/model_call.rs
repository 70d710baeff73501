//! One call of a model: contained, limited in silence, ended by a cancel.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::contain;
use super::provider::{
    ChatEvent, ChatRequest, ChatStream, ModelProvider, ProviderError, ProviderErrorKind,
};

/// What a model call gives next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A delta, a call or `Done`.
    Event(ChatEvent),
    /// The call failed; nothing follows.
    Failed(ProviderError),
    /// The user cancelled; the stream is gone.
    Cancelled,
}

/// A running model call. Dropping it ends the request.
pub(crate) struct ModelCall {
    stream: Option<ChatStream>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Silence,
}

/// The longest wait for the next event.
struct Silence {
    limit: Duration,
    last_event: Instant,
    /// Set up at the first wait, and moved only when it fires: an event costs no timer.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ModelCall {
    /// Starts a call. `idle_limit` of zero means no limit.
    pub(crate) async fn start(
        provider: &Arc<dyn ModelProvider>,
        request: ChatRequest,
        cancel: &CancellationToken,
        idle_limit: Duration,
    ) -> Result<Self, Next> {
        let mut cancelled = Box::pin(cancel.clone().cancelled_owned());
        let mut silence = Silence {
            limit: idle_limit,
            last_event: Instant::now(),
            alarm: None,
        };
        // A token of its own: a provider that fires it cancels no turn.
        let token = cancel.child_token();
        let mut starting = std::pin::pin!(contain::future(|| (**provider).chat(request, token)));
        let started = poll_fn(|context| {
            if cancelled.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Next::Cancelled));
            }
            match starting.as_mut().poll(context) {
                Poll::Ready(Ok(Ok(stream))) => Poll::Ready(Ok(stream)),
                Poll::Ready(Ok(Err(error))) => Poll::Ready(Err(Next::Failed(error))),
                Poll::Ready(Err(panicked)) => Poll::Ready(Err(Next::Failed(fault(&panicked)))),
                Poll::Pending => silence.poll(context).map(|error| Err(Next::Failed(error))),
            }
        })
        .await?;
        Ok(Self {
            stream: Some(started),
            cancelled,
            silence,
        })
    }

    /// When the newest event arrived.
    pub(crate) fn last_event(&self) -> Instant {
        self.silence.last_event
    }

    /// The next event. After `Failed`, `Cancelled` or `Done` the call must not be asked again.
    pub(crate) async fn next(&mut self) -> Next {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        if self.cancelled.as_mut().poll(context).is_ready() {
            self.hang_up();
            return Poll::Ready(Next::Cancelled);
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Next::Failed(ended_early()));
        };
        let polled = contain::poll_next(stream.as_mut(), context);
        let next = match polled {
            Ok(Poll::Ready(Some(Err(error)))) => Next::Failed(error),
            Ok(Poll::Ready(Some(Ok(event)))) => {
                self.silence.last_event = Instant::now();
                return Poll::Ready(Next::Event(event));
            }
            Ok(Poll::Ready(None)) => Next::Failed(ended_early()),
            Ok(Poll::Pending) => match self.silence.poll(context) {
                Poll::Ready(error) => Next::Failed(error),
                Poll::Pending => return Poll::Pending,
            },
            Err(panicked) => Next::Failed(fault(&panicked)),
        };
        self.hang_up();
        Poll::Ready(next)
    }

    /// After `Done`: whether the provider gives more all the same, which nobody reads.
    pub(crate) fn goes_on(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let goes_on = self.stream.as_mut().is_some_and(|stream| {
            let polled = contain::poll_next(stream.as_mut(), &mut context);
            matches!(polled, Ok(Poll::Ready(Some(_))))
        });
        self.hang_up();
        goes_on
    }

    /// Drops the stream, which is foreign code, too.
    fn hang_up(&mut self) {
        if let Some(stream) = self.stream.take()
            && let Err(panicked) = contain::call(|| drop(stream))
        {
            tracing::warn!(%panicked, "dropping a model's answer failed");
        }
    }
}

impl Drop for ModelCall {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Silence {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ProviderError> {
        if self.limit.is_zero() {
            return Poll::Pending;
        }
        let deadline = self.last_event + self.limit;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while alarm.as_mut().poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(ProviderError::new(
                    ProviderErrorKind::Timeout,
                    format!("the model sent nothing for {} ms", self.limit.as_millis()),
                ));
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

fn ended_early() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Network,
        "the connection ended before the answer was complete",
    )
}

fn fault(panicked: &contain::Panicked) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Other,
        format!("the provider failed: {panicked}"),
    )
}

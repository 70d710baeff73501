//! An answer that a test gives by hand, event by event.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, watch};

use super::stream::Given;
use super::{Gate, ScriptedProvider};
use crate::{ChatEvent, ChatRequest, ProviderError};

/// The hand that drives an answer; made by [`ScriptedProvider::manual`].
///
/// The answer goes on with each event that is pushed and is silent in between. When the
/// handle is dropped without [`done`](Self::done) or [`fail`](Self::fail), the answer
/// breaks off as by [`end`](Self::end).
#[derive(Debug)]
pub struct Manual {
    events: mpsc::UnboundedSender<Given>,
    flow: Gate,
    state: watch::Receiver<ManualState>,
}

/// What has become of the answer.
#[derive(Clone, Default)]
struct ManualState {
    request: Option<Arc<ChatRequest>>,
    dropped: bool,
}

impl fmt::Debug for ManualState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualState")
            .field("started", &self.request.is_some())
            .field("dropped", &self.dropped)
            .finish()
    }
}

/// The provider's end of a [`Manual`] answer.
#[derive(Debug)]
pub struct ManualEnd {
    events: mpsc::UnboundedReceiver<Given>,
    flow: Gate,
    state: watch::Sender<ManualState>,
}

pub(super) fn pair() -> (Manual, ManualEnd) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (state, watched) = watch::channel(ManualState::default());
    let flow = Gate::opened();
    let manual = Manual {
        events: sender,
        flow: flow.clone(),
        state: watched,
    };
    let end = ManualEnd {
        events: receiver,
        flow,
        state,
    };
    (manual, end)
}

impl Manual {
    /// Waits until the agent has asked, and gives what it asked.
    /// `None` when the provider forgot the answer before any request came.
    pub async fn started(&self) -> Option<Arc<ChatRequest>> {
        let mut state = self.state.clone();
        let reached = state
            .wait_for(|state| state.request.is_some() || state.dropped)
            .await;
        reached.ok().and_then(|state| state.request.clone())
    }

    /// The answer goes on with this event. Pushed before the request came, it waits for it.
    /// Answers whether anyone is there to read it.
    pub fn push(&self, event: impl Into<ChatEvent>) -> bool {
        self.events.send(Ok(event.into())).is_ok()
    }

    /// A piece of text.
    pub fn text(&self, text: impl Into<String>) -> bool {
        self.push(ChatEvent::text(text))
    }

    /// Keeps back what is pushed from now on until [`release`](Self::release).
    pub fn hold(&self) {
        self.flow.close();
    }

    /// Lets everything through that was kept back.
    pub fn release(&self) {
        self.flow.open();
    }

    /// The answer fails. Nothing can follow.
    pub fn fail(self, error: ProviderError) {
        // Nobody may be there to read it any more.
        let _ = self.events.send(Err(error));
    }

    /// The answer is whole. Nothing can follow.
    pub fn done(self) {
        self.push(ChatEvent::done());
    }

    /// The answer breaks off: the stream ends without `Done`.
    pub fn end(self) {
        drop(self);
    }

    /// Whether the agent has dropped the stream.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.state.borrow().dropped
    }

    /// Waits until the agent drops the stream.
    pub async fn dropped(&self) {
        let mut state = self.state.clone();
        // Only the end that is dropped closes the channel, so an error means the same.
        let _ = state.wait_for(|state| state.dropped).await;
    }
}

impl ManualEnd {
    pub(super) fn start(&self, request: &Arc<ChatRequest>) {
        self.state
            .send_modify(|state| state.request = Some(Arc::clone(request)));
    }

    pub(super) fn flow(&self) -> &Gate {
        &self.flow
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Given>> {
        self.events.poll_recv(context)
    }
}

impl Drop for ManualEnd {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.dropped = true);
    }
}

impl ScriptedProvider {
    /// Queues an answer that the test gives by hand.
    ///
    /// # Examples
    /// ```
    /// use tokio_util::sync::CancellationToken;
    /// use futures_util::StreamExt as _;
    /// use youyou_agent::testing::{ScriptedProvider, request, text_model, user};
    /// use youyou_agent::{ChatEvent, ModelProvider as _};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let provider = ScriptedProvider::new("scripted").model(text_model("m1"));
    /// let answer = provider.manual();
    /// let asked = request("m1", [user("hello")]);
    /// let mut stream = provider.chat(asked, CancellationToken::new()).await?;
    /// answer.text("Good ");
    /// assert_eq!(stream.next().await, Some(Ok(ChatEvent::text("Good "))));
    /// answer.done();
    /// assert_eq!(stream.next().await, Some(Ok(ChatEvent::done())));
    /// # Ok::<(), youyou_agent::ProviderError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn manual(&self) -> Manual {
        let (manual, end) = pair();
        self.queue([super::Step::Manual(end)]);
        manual
    }
}

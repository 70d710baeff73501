//! A model provider that follows a script and checks what it is asked.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::record::{Counts, Record};
use super::stream::ScriptStream;
use super::{Step, validate_transcript};
use crate::agent::contain::lock;
use crate::{ChatRequest, ChatStream, ModelInfo, ModelProvider, ProviderError, ProviderErrorKind};

/// A provider that answers each request with the next script and remembers what it was
/// asked. Copies share everything: give one to the agent and keep one.
///
/// A request is answered by the interceptor if that has an answer, else by the next queued
/// script, else by the fallback, else with an error that says so. A request that
/// [`validate_transcript`] refuses is answered with
/// [`ProviderErrorKind::InvalidRequest`] and uses up no script.
///
/// # Examples
/// ```
/// use tokio_util::sync::CancellationToken;
/// use futures_util::StreamExt as _;
/// use youyou_agent::testing::{ScriptedProvider, call, done, request, text, text_model, user};
/// use youyou_agent::ModelProvider as _;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let provider = ScriptedProvider::new("scripted")
///     .model(text_model("m1"))
///     .reply([text("Let me see."), call("c1", "now", "{}"), done()])
///     .always(|_request| [text("ok"), done()]);
///
/// let asked = request("m1", [user("What time is it?")]);
/// let answer: Vec<_> = provider.chat(asked, CancellationToken::new()).await?.collect().await;
/// assert_eq!(answer.len(), 3);
/// assert_eq!(provider.request_count(), 1);
/// assert_eq!(provider.violations(), Vec::<String>::new());
/// # Ok::<(), youyou_agent::ProviderError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ScriptedProvider(pub(super) Arc<Inner>);

pub(super) struct Inner {
    id: String,
    models: Mutex<Vec<ModelInfo>>,
    scripts: Mutex<Scripts>,
    pub(super) record: Mutex<Record>,
    pub(super) counts: Arc<watch::Sender<Counts>>,
    pub(super) recording: AtomicBool,
    validating: AtomicBool,
}

type Fallback = Arc<dyn Fn(&ChatRequest) -> VecDeque<Step> + Send + Sync>;
type Interceptor = Arc<dyn Fn(&ChatRequest) -> Option<VecDeque<Step>> + Send + Sync>;

#[derive(Default)]
struct Scripts {
    queue: VecDeque<VecDeque<Step>>,
    /// How many scripts were ever queued.
    queued: usize,
    interceptor: Option<Interceptor>,
    fallback: Option<Fallback>,
}

impl ScriptedProvider {
    /// A provider without models; [`model`](Self::model) adds them.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            id: id.into(),
            models: Mutex::default(),
            scripts: Mutex::default(),
            record: Mutex::default(),
            counts: Arc::new(watch::Sender::new(Counts::default())),
            recording: AtomicBool::new(true),
            validating: AtomicBool::new(true),
        }))
    }

    /// Declares a model.
    #[must_use]
    pub fn model(self, model: ModelInfo) -> Self {
        self.add_model(model);
        self
    }

    /// Queues the answer to one request, after those queued before.
    #[must_use]
    pub fn reply(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.queue(steps);
        self
    }

    /// Answers every request that no script is left for.
    #[must_use]
    pub fn always<I>(self, answer: impl Fn(&ChatRequest) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = Step>,
    {
        self.fall_back(answer);
        self
    }

    /// Answers requests before any queued script is looked at, where `answer` has
    /// something to say; so that requests which come at any time, such as for a summary,
    /// use up no script.
    #[must_use]
    pub fn intercept<I>(
        self,
        answer: impl Fn(&ChatRequest) -> Option<I> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = Step>,
    {
        let interceptor: Interceptor =
            Arc::new(move |request| answer(request).map(|steps| steps.into_iter().collect()));
        lock(&self.0.scripts).interceptor = Some(interceptor);
        self
    }

    /// Whether requests and tokens are kept (the default). Off for long runs and benches.
    #[must_use]
    pub fn recording(self, on: bool) -> Self {
        self.0.recording.store(on, Ordering::Relaxed);
        self
    }

    /// Whether requests are checked (the default). Off for benches: the check walks the
    /// whole history.
    #[must_use]
    pub fn validating(self, on: bool) -> Self {
        self.0.validating.store(on, Ordering::Relaxed);
        self
    }

    /// Declares a model while the agent runs.
    pub fn add_model(&self, model: ModelInfo) {
        lock(&self.0.models).push(model);
    }

    /// Takes a model back while the agent runs. Answers whether it was there.
    pub fn remove_model(&self, model_id: &str) -> bool {
        let mut models = lock(&self.0.models);
        let before = models.len();
        models.retain(|model| model.id != model_id);
        models.len() < before
    }

    /// Like [`reply`](Self::reply), while the agent runs.
    pub fn queue(&self, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        let mut scripts = lock(&self.0.scripts);
        scripts.queue.push_back(steps);
        scripts.queued += 1;
    }

    /// Like [`always`](Self::always), while the agent runs.
    pub fn fall_back<I>(&self, answer: impl Fn(&ChatRequest) -> I + Send + Sync + 'static)
    where
        I: IntoIterator<Item = Step>,
    {
        let fallback: Fallback = Arc::new(move |request| answer(request).into_iter().collect());
        lock(&self.0.scripts).fallback = Some(fallback);
    }

    /// Forgets all scripts, the interceptor and the fallback.
    pub fn forget_scripts(&self) {
        let forgotten = std::mem::take(&mut *lock(&self.0.scripts));
        // Dropped here, outside the lock: a script may hold code of the test.
        drop(forgotten);
    }

    /// How many scripts no request has used yet.
    #[must_use]
    pub fn scripts_left(&self) -> usize {
        lock(&self.0.scripts).queue.len()
    }

    fn check(&self, number: usize, request: &ChatRequest) -> Result<(), ProviderError> {
        if !self.0.validating.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Err(violations) = validate_transcript(request) else {
            return Ok(());
        };
        let message = format!(
            "request {number} to the scripted provider \"{}\" is invalid: {}",
            self.0.id,
            violations.join("; ")
        );
        let numbered = violations
            .into_iter()
            .map(|violation| format!("request {number}: {violation}"));
        lock(&self.0.record).violations.extend(numbered);
        Err(ProviderError::new(
            ProviderErrorKind::InvalidRequest,
            message,
        ))
    }

    fn script_for(
        &self,
        number: usize,
        request: &ChatRequest,
    ) -> Result<VecDeque<Step>, ProviderError> {
        // The closures run outside the lock, so that they may use the provider.
        let interceptor = lock(&self.0.scripts).interceptor.clone();
        if let Some(steps) = interceptor.and_then(|answer| answer(request)) {
            return Ok(steps);
        }
        let (fallback, queued) = {
            let mut scripts = lock(&self.0.scripts);
            if let Some(steps) = scripts.queue.pop_front() {
                return Ok(steps);
            }
            (scripts.fallback.clone(), scripts.queued)
        };
        fallback.map(|answer| answer(request)).ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::InvalidRequest,
                format!(
                    "the scripted provider \"{}\" has no script for request {number}: all {queued} are used; \
                     queue another with reply(..), or answer everything else with always(..)",
                    self.0.id
                ),
            )
        })
    }

    #[expect(clippy::panic, reason = "the script asks for it")]
    fn panic(&self, message: &str) -> ! {
        self.close_unopened();
        panic!("{message}")
    }

    /// A request that gets no stream is over at once.
    fn close_unopened(&self) {
        self.0.counts.send_modify(|counts| counts.closed += 1);
    }
}

#[async_trait]
impl ModelProvider for ScriptedProvider {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn models(&self) -> Vec<ModelInfo> {
        lock(&self.0.models).clone()
    }

    async fn chat(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<ChatStream, ProviderError> {
        let request = Arc::new(request);
        let number = self.take_down(&request, &cancel);
        let script = self
            .check(number, &request)
            .and_then(|()| self.script_for(number, &request));
        let mut steps = match script {
            Ok(steps) => steps,
            Err(error) => {
                self.close_unopened();
                return Err(error);
            }
        };
        match steps.front() {
            Some(Step::Refuse(error)) => {
                self.close_unopened();
                return Err(error.clone());
            }
            Some(Step::PanicInChat(message)) => self.panic(message),
            _ => {}
        }
        for step in &mut steps {
            if let Step::Manual(end) = step {
                end.start(&request);
            }
        }
        Ok(Box::pin(ScriptStream {
            steps,
            cancel,
            silence: None,
            counts: Arc::clone(&self.0.counts),
            ended: false,
        }))
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProvider")
            .field("id", &self.0.id)
            .field("counts", &*self.0.counts.borrow())
            .field("scripts_left", &self.scripts_left())
            .finish_non_exhaustive()
    }
}

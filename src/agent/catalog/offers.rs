//! Asking a provider for its models without waiting longer than a limit.
//!
//! `models()` is foreign code that may block, and a call cannot be interrupted. So each provider
//! has a thread that asks it: whoever wants the list wakes that thread and waits for a limited
//! time. That costs about 20 µs where asking directly would cost none, and holds however a
//! provider behaves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::agent::contain::{self, lock};
use crate::agent::provider::{ModelInfo, ModelProvider};

/// How long the waiting thread looks for the answer before it sleeps: a sleep and its end take
/// longer than most answers.
const SPIN: Duration = Duration::from_micros(20);

/// What a provider offers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Offer {
    pub(super) models: Vec<Arc<ModelInfo>>,
    /// Why there are none, if the provider panicked.
    pub(super) panicked: Option<contain::Panicked>,
}

impl Offer {
    /// Asks the provider. Gives `known` again where nothing has changed.
    fn of(provider: &dyn ModelProvider, known: &Arc<Self>) -> Arc<Self> {
        let (models, panicked) = match contain::call(|| provider.models()) {
            Ok(models) => (models, None),
            Err(panicked) => (Vec::new(), Some(panicked)),
        };
        let same =
            known.panicked == panicked && known.models.iter().map(|model| &**model).eq(&models);
        if same {
            return Arc::clone(known);
        }
        Arc::new(Self {
            models: models.into_iter().map(Arc::new).collect(),
            panicked,
        })
    }
}

/// The thread that asks a provider. It ends when this is dropped, or once a call that blocks then
/// comes back.
pub(super) struct Asker(Arc<Shared>);

struct Shared {
    provider_id: Arc<str>,
    state: Mutex<State>,
    /// Number of the newest request that is answered.
    answered: AtomicU64,
    asked: Condvar,
    answer: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of the newest request.
    requests: u64,
    offer: Arc<Offer>,
    /// Whether somebody has waited in vain for the call that goes on: nobody else does.
    late: bool,
    over: bool,
}

/// A request for a list that is as new as this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request(u64);

impl Asker {
    /// # Errors
    /// When the system has no thread for it.
    pub(super) fn start(
        provider_id: &Arc<str>,
        provider: &Arc<dyn ModelProvider>,
        runtime: &Handle,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            provider_id: Arc::clone(provider_id),
            state: Mutex::default(),
            answered: AtomicU64::new(0),
            asked: Condvar::new(),
            answer: Condvar::new(),
        });
        let runtime = runtime.clone();
        let (asking, provider) = (Arc::clone(&shared), Arc::downgrade(provider));
        std::thread::Builder::new()
            .name("model-list".to_owned())
            .spawn(move || {
                // A provider finds the runtime of the agent, as in its other methods.
                let _context = runtime.enter();
                asking.ask(&provider);
            })?;
        Ok(Self(shared))
    }

    /// Begins to ask.
    pub(super) fn request(&self) -> Request {
        let mut state = lock(&self.0.state);
        state.requests += 1;
        self.0.asked.notify_one();
        Request(state.requests)
    }

    /// What the provider offers, or what it offered before if it does not answer before the
    /// deadline.
    pub(super) fn wait(&self, request: Request, deadline: Instant) -> Arc<Offer> {
        let shared = &*self.0;
        let spin = Instant::now() + SPIN;
        while !shared.has_answered(request) && Instant::now() < spin {
            std::hint::spin_loop();
        }
        let mut state = lock(&shared.state);
        while !shared.has_answered(request) && !state.late {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.late = true;
                let provider = &*shared.provider_id;
                tracing::warn!(provider, "it does not answer which models it has");
                break;
            }
            let waited = shared.answer.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Arc::clone(&state.offer)
    }

    /// Whether nobody waits for the provider at the moment, because it does not answer.
    pub(super) fn is_late(&self) -> bool {
        lock(&self.0.state).late
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        lock(&self.0.state).over = true;
        self.0.asked.notify_one();
    }
}

impl Shared {
    fn has_answered(&self, request: Request) -> bool {
        self.answered.load(Ordering::Acquire) >= request.0
    }

    /// Asks whenever somebody wants to know.
    fn ask(&self, provider: &Weak<dyn ModelProvider>) {
        let mut state = lock(&self.state);
        loop {
            if state.over {
                return;
            }
            let request = state.requests;
            if self.answered.load(Ordering::Acquire) == request {
                state = wait(&self.asked, state);
                continue;
            }
            let known = Arc::clone(&state.offer);
            drop(state);
            let Some(provider) = provider.upgrade() else {
                return;
            };
            let offer = Offer::of(&*provider, &known);
            drop(provider);
            state = lock(&self.state);
            state.offer = offer;
            state.late = false;
            self.answered.store(request, Ordering::Release);
            self.answer.notify_all();
        }
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

//! A plugin that a test puts together: what it taps, how its life goes, and a log of it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use youyou_agent::testing::Gate;
use youyou_agent::{HookOutcome, HookRegistry, Plugin, PluginError, SessionStart, Tap};

/// Lines in the order they were written. Copies are the same log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Forgets what was written so far.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// Keeps what handlers were given.
#[derive(Clone)]
pub(crate) struct Kept<P>(Arc<Mutex<Vec<P>>>);

impl<P: Clone> Kept<P> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn keep(&self, payload: P) {
        self.0.lock().unwrap().push(payload);
    }

    pub(crate) fn all(&self) -> Vec<P> {
        self.0.lock().unwrap().clone()
    }
}

/// How a step of a plugin's life goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Step {
    #[default]
    Succeeds,
    Fails,
    Panics,
    Hangs,
}

impl Step {
    async fn go(self, id: &str) -> Result<(), PluginError> {
        match self {
            Self::Succeeds => Ok(()),
            Self::Fails => Err(PluginError::new(format_args!("{id} is out of order"))),
            Self::Panics => panic!("{id} broke"),
            Self::Hangs => std::future::pending().await,
        }
    }
}

type Apply = dyn Fn(&mut HookRegistry) -> Result<(), PluginError> + Send + Sync;

/// The plugin. Each step of its life is a line in the log: `a initialize`, `a apply`,
/// `a shutdown`.
pub(crate) struct Probe {
    id: String,
    lines: Lines,
    initialize: Step,
    shutdown: Step,
    apply: Box<Apply>,
}

impl Probe {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            lines: Lines::default(),
            initialize: Step::default(),
            shutdown: Step::default(),
            apply: Box::new(|_| Ok(())),
        }
    }

    /// A plugin that taps these hooks.
    pub(crate) fn tapping(
        id: &str,
        tap: impl Fn(&mut HookRegistry) + Send + Sync + 'static,
    ) -> Self {
        Self::new(id).applying(move |hooks| {
            tap(hooks);
            Ok(())
        })
    }

    /// A plugin that lets no session open before the door is.
    pub(crate) fn holding(door: &Gate) -> Self {
        let door = door.clone();
        Self::tapping("holding", move |hooks| {
            let door = door.clone();
            hooks.session_start(Tap::named("t").no_limit(), move |_: SessionStart| {
                let door = door.clone();
                async move {
                    door.pass().await;
                    Ok(HookOutcome::Continue)
                }
            });
        })
    }

    pub(crate) fn logged_in(mut self, lines: &Lines) -> Self {
        self.lines = lines.clone();
        self
    }

    pub(crate) fn initializing(mut self, step: Step) -> Self {
        self.initialize = step;
        self
    }

    pub(crate) fn shutting_down(mut self, step: Step) -> Self {
        self.shutdown = step;
        self
    }

    pub(crate) fn applying(
        mut self,
        apply: impl Fn(&mut HookRegistry) -> Result<(), PluginError> + Send + Sync + 'static,
    ) -> Self {
        self.apply = Box::new(apply);
        self
    }
}

#[async_trait]
impl Plugin for Probe {
    fn id(&self) -> &str {
        &self.id
    }

    async fn initialize(&self, config: Arc<Value>) -> Result<(), PluginError> {
        let config = if config.is_null() {
            String::new()
        } else {
            format!(" with {config}")
        };
        self.lines.add(format!("{} initialize{config}", self.id));
        self.initialize.go(&self.id).await
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        self.lines.add(format!("{} apply", self.id));
        (self.apply)(hooks)
    }

    async fn shutdown(&self) -> Result<(), PluginError> {
        self.lines.add(format!("{} shutdown", self.id));
        self.shutdown.go(&self.id).await
    }
}

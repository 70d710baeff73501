//! Faults on purpose: when a call of a storage goes wrong, and how.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

use super::Gate;
use crate::StorageError;

/// What goes wrong with a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing is done and the answer is an error.
    Error(String),
    /// It is done, and yet the answer is an error: the caller cannot know.
    ErrorAfter(String),
    /// Nothing is done and no answer ever comes.
    Hang,
    /// It is done, but no answer ever comes.
    HangAfter,
    /// The call panics.
    Panic(String),
    /// It is done as soon as the gate is open.
    Gate(Gate),
}

/// Which calls of an operation go wrong, counted from now on; 1 is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Only this one.
    Nth(usize),
    /// This one and all after it, until [`Faults::heal`].
    From(usize),
    /// All, until [`Faults::heal`].
    Always,
}

/// A call that reached a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageCall<O> {
    /// What was called.
    pub operation: O,
    /// What it was about: a session id, a namespace, a query; empty for a list.
    pub subject: String,
    /// The indices of the events it was to write.
    pub indices: Vec<u64>,
}

/// The faults planned for a storage, and the calls it got. Copies share everything.
pub struct Faults<O>(Arc<watch::Sender<Plan<O>>>);

struct Plan<O> {
    rules: Vec<Rule<O>>,
    calls: Vec<StorageCall<O>>,
}

struct Rule<O> {
    operation: O,
    when: When,
    /// Calls of the operation since the rule was made.
    seen: usize,
    fault: Fault,
}

impl<O: Copy + PartialEq> Faults<O> {
    pub(super) fn new() -> Self {
        let plan = Plan {
            rules: Vec::new(),
            calls: Vec::new(),
        };
        Self(Arc::new(watch::Sender::new(plan)))
    }

    /// Plans a fault. Where several fit a call, the one planned first happens.
    pub fn inject(&self, operation: O, when: When, fault: Fault) {
        self.0.send_modify(|plan| {
            plan.rules.push(Rule {
                operation,
                when,
                seen: 0,
                fault,
            });
        });
    }

    /// Plans an error without effect.
    pub fn fail(&self, operation: O, when: When) {
        self.inject(
            operation,
            when,
            Fault::Error("the storage is down (injected)".to_owned()),
        );
    }

    /// Forgets all planned faults. Calls that hang go on hanging.
    pub fn heal(&self) {
        self.0.send_modify(|plan| plan.rules.clear());
    }

    /// The calls so far, in order, failed ones included.
    #[must_use]
    pub fn calls(&self) -> Vec<StorageCall<O>> {
        self.0.borrow().calls.clone()
    }

    /// How many calls of an operation came so far, failed ones included.
    #[must_use]
    pub fn count(&self, operation: O) -> usize {
        count(&self.0.borrow(), operation)
    }

    /// Waits until at least `times` calls of an operation have come.
    pub async fn called(&self, operation: O, times: usize) {
        let mut plan = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = plan.wait_for(|plan| count(plan, operation) >= times).await;
    }

    /// Notes the call and does to it what is planned.
    #[expect(clippy::panic, reason = "the test asks for it")]
    pub(super) async fn around<T>(
        &self,
        operation: O,
        subject: &str,
        indices: Vec<u64>,
        work: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let call = StorageCall {
            operation,
            subject: subject.to_owned(),
            indices,
        };
        match self.note(call) {
            None => work.await,
            Some(Fault::Error(message)) => Err(StorageError::new(message)),
            Some(Fault::ErrorAfter(message)) => {
                work.await?;
                Err(StorageError::new(message))
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::HangAfter) => {
                work.await?;
                std::future::pending().await
            }
            Some(Fault::Panic(message)) => panic!("{message}"),
            Some(Fault::Gate(gate)) => {
                gate.pass().await;
                work.await
            }
        }
    }

    fn note(&self, call: StorageCall<O>) -> Option<Fault> {
        let mut fault = None;
        self.0.send_modify(|plan| {
            for rule in &mut plan.rules {
                if rule.operation != call.operation {
                    continue;
                }
                rule.seen += 1;
                let hit = match rule.when {
                    When::Nth(n) => rule.seen == n,
                    When::From(n) => rule.seen >= n,
                    When::Always => true,
                };
                if hit && fault.is_none() {
                    fault = Some(rule.fault.clone());
                }
            }
            plan.calls.push(call);
        });
        fault
    }
}

fn count<O: PartialEq>(plan: &Plan<O>, operation: O) -> usize {
    plan.calls
        .iter()
        .filter(|call| call.operation == operation)
        .count()
}

impl<O> Clone for Faults<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: fmt::Debug> fmt::Debug for Faults<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0.borrow();
        f.debug_struct("Faults")
            .field("rules", &plan.rules.len())
            .field("calls", &plan.calls)
            .finish()
    }
}

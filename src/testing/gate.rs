//! A door that a test opens: the way to order things without sleeping.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// A door that others wait at until a test opens it. Copies are the same door.
///
/// # Examples
/// ```
/// use youyou_agent::testing::Gate;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let gate = Gate::closed();
/// let waiting = tokio::spawn({
///     let gate = gate.clone();
///     async move { gate.pass().await }
/// });
/// gate.arrived(1).await;
/// gate.open();
/// waiting.await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<Door>>);

#[derive(Debug, Clone, Copy)]
struct Door {
    open: bool,
    /// How many have come to the door so far, those that went through included.
    arrivals: usize,
}

impl Gate {
    /// A door that is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(false)
    }

    /// A door that is open until it is closed.
    #[must_use]
    pub fn opened() -> Self {
        Self::new(true)
    }

    fn new(open: bool) -> Self {
        let door = Door { open, arrivals: 0 };
        Self(Arc::new(watch::Sender::new(door)))
    }

    /// Lets everyone through, now and from now on.
    pub fn open(&self) {
        self.0.send_modify(|door| door.open = true);
    }

    /// Stops whoever comes from now on. Closed right after it was opened, it may let nobody
    /// through: first wait for what is to happen behind it.
    pub fn close(&self) {
        self.0.send_modify(|door| door.open = false);
    }

    /// Whether the door is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.borrow().open
    }

    /// Waits until the door is open.
    pub async fn pass(&self) {
        let mut door = self.0.subscribe();
        self.0.send_modify(|door| door.arrivals += 1);
        // The sender lives in `self`, so waiting cannot fail.
        let _ = door.wait_for(|door| door.open).await;
    }

    /// How many have come to the door so far, those that went through included.
    #[must_use]
    pub fn arrivals(&self) -> usize {
        self.0.borrow().arrivals
    }

    /// Waits until at least `count` have come to the door.
    pub async fn arrived(&self, count: usize) {
        let mut door = self.0.subscribe();
        // As in `pass`.
        let _ = door.wait_for(|door| door.arrivals >= count).await;
    }
}

impl Default for Gate {
    /// A closed door.
    fn default() -> Self {
        Self::closed()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let door = *self.0.borrow();
        f.debug_struct("Gate")
            .field("open", &door.open)
            .field("arrivals", &door.arrivals)
            .finish()
    }
}

//! The workloads: what the scripted model does, and what must come out of it.

/// A text delta of 20 bytes.
pub const DELTA: &str = "lorem ipsum dolor si";

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What the figures are divided by.
    pub unit: &'static str,
    /// How many of them a run has.
    pub units: u32,
    /// Model calls that end in tool calls.
    pub rounds: usize,
    /// Tool calls in each of them.
    pub calls: usize,
    /// Text deltas of the last model call.
    pub deltas: usize,
    /// Messages before the measured turn.
    pub history: usize,
    /// Whether an image of 5 MB is among them.
    pub image: bool,
    /// Whether a whole turn runs before the measured one, so that the measured one does not pay
    /// for what loading the history left in the processor's caches.
    pub warm: bool,
    /// Handlers on the tool hooks that do nothing.
    pub hooks: usize,
    /// What is measured.
    pub kind: Kind,
    /// How often.
    pub iterations: usize,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A turn from send to its last event.
    Turn,
    /// From the cancel to the last event.
    Cancel,
    /// Building an agent with 20 tools.
    Build,
}

const BASE: Workload = Workload {
    name: "",
    unit: "round",
    units: 1,
    rounds: 0,
    calls: 0,
    deltas: 1,
    history: 0,
    image: false,
    warm: false,
    hooks: 0,
    kind: Kind::Turn,
    iterations: 100,
};

const fn rounds(name: &'static str, rounds: usize, units: u32) -> Workload {
    Workload {
        name,
        units,
        rounds,
        calls: 1,
        ..BASE
    }
}

/// All of them, the quick ones first.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "stream10k",
        unit: "delta",
        units: 10_000,
        deltas: 10_000,
        iterations: 60,
        ..BASE
    },
    Workload {
        name: "turn10",
        unit: "turn",
        deltas: 10,
        iterations: 1_000,
        ..BASE
    },
    Workload {
        iterations: 200,
        ..rounds("tool20", 20, 20)
    },
    Workload {
        iterations: 60,
        ..rounds("tool200", 200, 200)
    },
    Workload {
        hooks: 8,
        iterations: 60,
        ..rounds("hooks8", 200, 200)
    },
    Workload {
        unit: "call",
        calls: 16,
        iterations: 300,
        ..rounds("par16", 1, 16)
    },
    Workload {
        name: "hist1k",
        unit: "turn",
        history: 1_000,
        warm: true,
        iterations: 200,
        ..BASE
    },
    Workload {
        history: 1_000,
        warm: true,
        ..rounds("hist1k_tool20", 20, 20)
    },
    Workload {
        history: 10_000,
        warm: true,
        iterations: 40,
        ..rounds("hist10k_tool20", 20, 20)
    },
    Workload {
        history: 20,
        warm: true,
        image: true,
        iterations: 40,
        ..rounds("image_tool20", 20, 20)
    },
    Workload {
        name: "cancel",
        unit: "cancel",
        deltas: 100,
        kind: Kind::Cancel,
        iterations: 300,
        ..BASE
    },
    Workload {
        name: "build20",
        unit: "build",
        kind: Kind::Build,
        iterations: 100,
        ..BASE
    },
];

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> &'static Self {
        WORKLOADS
            .iter()
            .find(|workload| workload.name == name)
            .unwrap_or_else(|| panic!("no workload is called {name}"))
    }

    /// What a run must show before its time counts.
    pub fn expected(&self) -> Seen {
        Seen {
            deltas: self.deltas,
            tool_results: self.rounds * self.calls,
            text_bytes: self.deltas * DELTA.len(),
            model_calls: self.model_calls(),
        }
    }

    /// Model calls of one turn.
    pub fn model_calls(&self) -> usize {
        self.rounds + 1
    }

    /// Model calls before the measured turn.
    pub fn model_calls_before(&self) -> usize {
        if self.warm { self.model_calls() } else { 0 }
    }
}

/// What a run showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Text deltas, joined ones counted singly.
    pub deltas: usize,
    /// Results of tools that succeeded.
    pub tool_results: usize,
    /// Length of the last answer.
    pub text_bytes: usize,
    /// Requests that reached the model.
    pub model_calls: usize,
}

/// The id of call number `number` of a turn.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}

/// What call number `number` asks the tool to give back: 11 bytes.
pub fn call_text(number: usize) -> String {
    format!("hello{:06}", number % 1_000_000)
}

/// Its arguments as a model writes them.
pub fn call_arguments(number: usize) -> String {
    format!("{{\"text\":\"{}\"}}", call_text(number))
}

/// The text of every message of a history.
pub fn history_text() -> String {
    "x".repeat(200)
}

/// 5 MiB of base64 that is a PNG by its first bytes.
pub fn image_data() -> String {
    let header = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
    let mut data = header.to_owned();
    data.push_str(&"QUJD".repeat((5 * 1024 * 1024 - header.len()) / 4));
    data
}

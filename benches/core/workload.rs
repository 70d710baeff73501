//! The workloads: what the scripted model does, and what must come out of it.

/// A text delta of 20 bytes.
pub(crate) const DELTA: &str = "lorem ipsum dolor si";

/// What a run is made of.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What the figures are divided by.
    pub(crate) unit: &'static str,
    pub(crate) units: u32,
    /// Model calls that end in tool calls.
    pub(crate) rounds: usize,
    /// Tool calls in each of them.
    pub(crate) calls: usize,
    /// Text deltas of the last model call.
    pub(crate) deltas: usize,
    /// Messages before the measured turn.
    pub(crate) history: usize,
    /// Whether an image of 5 MB is among them.
    pub(crate) image: bool,
    /// Handlers on the tool hooks that do nothing.
    pub(crate) hooks: usize,
    pub(crate) kind: Kind,
    pub(crate) iterations: usize,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

pub(crate) const WORKLOADS: &[Workload] = &[
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
        iterations: 200,
        ..BASE
    },
    Workload {
        history: 1_000,
        ..rounds("hist1k_tool20", 20, 20)
    },
    Workload {
        history: 10_000,
        iterations: 40,
        ..rounds("hist10k_tool20", 20, 20)
    },
    Workload {
        history: 20,
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
    pub(crate) fn named(name: &str) -> &'static Self {
        WORKLOADS
            .iter()
            .find(|workload| workload.name == name)
            .unwrap_or_else(|| panic!("no workload is called {name}"))
    }

    /// What a run must show before its time counts.
    pub(crate) fn expected(&self) -> Seen {
        Seen {
            deltas: self.deltas,
            tool_results: self.rounds * self.calls,
            text_bytes: self.deltas * DELTA.len(),
            model_calls: self.rounds + 1,
        }
    }
}

/// What a run showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) deltas: usize,
    pub(crate) tool_results: usize,
    pub(crate) text_bytes: usize,
    pub(crate) model_calls: usize,
}

/// Text of history message number `index`.
pub(crate) fn history_text() -> String {
    "x".repeat(200)
}

/// 5 MiB of base64 that is a PNG by its first bytes.
pub(crate) fn image_data() -> String {
    let header = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
    let mut data = header.to_owned();
    data.push_str(&"QUJD".repeat((5 * 1024 * 1024 - header.len()) / 4));
    data
}

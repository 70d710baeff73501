//! What the agent costs beside the model, and the floor it is compared with.
//!
//! `cargo bench --bench core --no-default-features --features testing -- ours stream10k` measures
//! one cell and prints one line of JSON; without arguments all cells run, ours and floor by turns.
//! Times are for comparing within one run; allocations repeat exactly.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on stops and says why"
)]

mod floor;
mod history;
mod ours;

use bench_harness::{Cell, WORKLOADS, Workload};

fn main() {
    // cargo passes `--bench` to every bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match arguments.as_slice() {
        [peer, cell @ ..] => bench_harness::main(cell, |workload| Some(run(peer, workload))),
        [] => {
            for workload in WORKLOADS {
                for peer in ["floor", "ours"] {
                    println!("{}", serde_json::to_string(&run(peer, workload)).unwrap());
                }
            }
        }
    }
}

fn run(peer: &str, workload: &Workload) -> Cell {
    match peer {
        "ours" => ours::run(workload),
        "floor" => floor::run(workload),
        other => panic!("no peer is called {other}; there are ours and floor"),
    }
}

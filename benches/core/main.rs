//! What the agent costs beside the model: its workloads, and the floor they are compared with.
//!
//! `cargo bench --bench core --no-default-features -- ours stream10k` measures one cell and
//! prints one line of JSON; without arguments all cells run, ours and floor by turns.
//! Times are for comparing within one run; allocations repeat exactly.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on stops and says why"
)]

mod floor;
mod measure;
mod ours;
mod script;
mod workload;

use measure::Cell;
use workload::{WORKLOADS, Workload};

fn main() {
    // cargo passes `--bench` to every bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match arguments.as_slice() {
        [peer, name] => print(&cell(peer, Workload::named(name))),
        [] => {
            for workload in WORKLOADS {
                for peer in ["floor", "ours"] {
                    print(&cell(peer, workload));
                }
            }
        }
        _ => panic!("usage: core [ours|floor WORKLOAD]"),
    }
}

fn cell(peer: &str, workload: &Workload) -> Cell {
    match peer {
        "ours" => ours::run(workload),
        "floor" => floor::run(workload),
        other => panic!("no peer is called {other}; there are ours and floor"),
    }
}

fn print(cell: &Cell) {
    println!("{}", serde_json::to_string(cell).unwrap());
}

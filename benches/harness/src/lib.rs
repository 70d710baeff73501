//! What every bench shares, ours and the peers': the workloads, the scripted model, the clock
//! and an allocator that counts.

mod counting;
mod measure;
mod script;
mod workload;

pub use counting::{Counted, counted_so_far};
pub use measure::{Cell, Sample, Started, measure};
pub use script::{Item, Script};
pub use workload::{
    DELTA, Kind, Seen, WORKLOADS, Workload, call_arguments, call_id, call_text, history_text,
    image_data,
};

/// The program of one peer: `PROGRAM WORKLOAD [ITERATIONS|quick]` prints one cell as a line of
/// JSON, or `null` where the peer has nothing to measure.
pub fn main(arguments: &[String], run: impl Fn(&Workload) -> Option<Cell>) {
    let [name, rest @ ..] = arguments else {
        panic!("usage: WORKLOAD [ITERATIONS|quick]");
    };
    let mut workload = Workload::named(name).clone();
    match rest {
        [quick] if quick == "quick" => workload.iterations = 10.max(workload.iterations / 4),
        [iterations] => workload.iterations = iterations.parse().expect("a number of iterations"),
        _ => {}
    }
    match run(&workload) {
        Some(cell) => println!(
            "{}",
            serde_json::to_string(&cell).expect("figures are JSON")
        ),
        None => println!("null"),
    }
}

//! Other agent libraries in the same workloads: `bench-peers rig stream10k` prints one cell as a
//! line of JSON, or `null` where the library has nothing to measure.

mod rig;
mod yo;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [peer, cell @ ..] if peer == "rig" => bench_harness::main(cell, rig::run),
        [peer, cell @ ..] if peer == "yoagent" => bench_harness::main(cell, yo::run),
        _ => panic!("usage: bench-peers rig|yoagent WORKLOAD [ITERATIONS]"),
    }
}

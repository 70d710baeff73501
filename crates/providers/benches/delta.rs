//! What one delta costs, from bytes to an event, beside the JSON parser alone.
//!
//! `cargo bench -p youyou-agent-providers --bench delta --features __bench` prints a line for each
//! protocol. Times are for comparing within one run; allocations repeat exactly.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on stops and says why"
)]

#[path = "../tests/support/streams.rs"]
mod streams;

use std::hint::black_box;
use std::time::Instant;

use bench_harness::counted_so_far;
use youyou_agent_providers::bench::read;

const DELTAS: u64 = 10_000;
const RUNS: u32 = 20;

fn main() {
    for protocol in streams::PROTOCOLS {
        let body = streams::stream(protocol, DELTAS);
        let parser = cost(|| streams::parse(body));
        let ours = cost(|| {
            black_box(read(protocol, body).unwrap());
        });
        println!(
            "{protocol:10} parser {:5.0} ns {:5.1} allocations   all {:5.0} ns {:5.1} allocations   beyond the parser {:5.0} ns {:5.1}",
            parser.0,
            parser.1,
            ours.0,
            ours.1,
            ours.0 - parser.0,
            ours.1 - parser.1,
        );
    }
}

/// Nanoseconds (the fastest run) and allocations of one delta.
fn cost(run: impl Fn()) -> (f64, f64) {
    run();
    let before = counted_so_far();
    run();
    let after = counted_so_far();
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let deltas = DELTAS as f64;
    (
        best * 1e9 / deltas,
        (after.allocations - before.allocations) as f64 / deltas,
    )
}

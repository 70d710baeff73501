//! What a delta asks of the allocator: counts repeat exactly where times do not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/streams.rs"]
mod streams;

use bench_harness::counted_so_far;
use youyou_agent_providers::bench::read;

const DELTAS: u64 = 1_000;
/// Allocations of one delta beyond those of the JSON parser, framing included.
const LIMIT: u64 = 12;

#[test]
fn a_delta_costs_few_allocations_beyond_the_json_parser() {
    for protocol in streams::PROTOCOLS {
        let body = streams::stream(protocol, DELTAS);
        let parser = allocations(|| streams::parse(body));
        let ours = allocations(|| assert_eq!(read(protocol, body), Some(1_001), "{protocol}"));
        let beyond = ours.saturating_sub(parser) / DELTAS;
        assert!(
            beyond <= LIMIT,
            "{protocol}: {beyond} beyond the parser, the limit is {LIMIT}"
        );
    }
}

fn allocations(run: impl Fn()) -> u64 {
    let before = counted_so_far().allocations;
    run();
    counted_so_far().allocations - before
}

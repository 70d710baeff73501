//! What the agent asks of the allocator, held near today's counts: counts repeat exactly where
//! times do not. One allocation more per delta or per round fails here.
//!
//! A limit that is passed on purpose is raised with the change that passes it; one that an
//! improvement leaves behind is lowered.
#![expect(
    clippy::unwrap_used,
    reason = "a workload that cannot run fails its test"
)]

#[path = "../benches/core/history.rs"]
mod history;
#[path = "../benches/core/ours.rs"]
mod ours;
#[path = "allocations/tools.rs"]
mod tools;

use async_trait::async_trait;
use bench_harness::{Cell, Started, Workload};
use serde_json::json;
use youyou_agent::testing::{ScriptedProvider, call, done, text, text_model};
use youyou_agent::{
    AgentBuilder, AgentConfig, SessionConfig, ToolContext, ToolDefinition, ToolError, ToolHandler,
    ToolInput, ToolOutput,
};

/// A turn after a first one, with this many messages before both.
fn rounds_after(history: usize) -> Workload {
    Workload {
        history,
        warm: true,
        ..once("tool20")
    }
}

fn once(name: &str) -> Workload {
    Workload {
        iterations: 1,
        ..Workload::named(name).clone()
    }
}

#[track_caller]
fn hold(cell: &Cell, allocations: f64, bytes: f64) {
    let Cell {
        workload,
        unit,
        allocs,
        alloc_bytes,
        ..
    } = cell;
    assert!(
        *allocs <= allocations,
        "{workload}: {allocs} allocations per {unit}, the limit is {allocations}"
    );
    assert!(
        *alloc_bytes <= bytes,
        "{workload}: {alloc_bytes} bytes per {unit}, the limit is {bytes}"
    );
}

#[test]
fn the_counter_counts_what_grows_and_the_most_that_is_held() {
    let started = Started::now();
    let mut grown = Vec::<u8>::with_capacity(1_000);
    grown.reserve_exact(2_000);
    drop(grown);
    let kept = vec![0_u8; 10];
    let sample = started.sample();
    assert_eq!(sample.allocations(), 3);
    assert_eq!(sample.bytes(), 1_000 + 2_000 + 10);
    assert_eq!(sample.heap_peak(), 2_000);
    drop(kept);
}

#[test]
fn a_delta_costs_two_allocations() {
    // One of them is the model's own text, the other the text the subscriber gets.
    hold(&ours::run(&once("stream10k")), 2.02, 220.0);
}

#[test]
fn a_round_costs_no_allocation_more_than_today() {
    hold(&ours::run(&rounds_after(0)), 42.6, 7_350.0);
}

#[test]
fn a_call_among_sixteen_costs_no_allocation_more_than_today() {
    hold(&ours::run(&once("par16")), 31.1, 8_450.0);
}

#[test]
fn a_round_after_ten_thousand_messages_costs_what_it_costs_after_twenty() {
    let after_few = ours::run(&rounds_after(20));
    let after_many = ours::run(&rounds_after(10_000));
    hold(&after_few, 45.6, 7_300.0);
    hold(
        &after_many,
        after_few.allocs + 0.2,
        after_few.alloc_bytes + 64.0,
    );
}

#[test]
fn an_image_in_the_history_is_not_copied() {
    let image = ours::run(&once("image_tool20"));
    let none = ours::run(&rounds_after(20));
    hold(&image, none.allocs + 0.2, none.alloc_bytes + 64.0);
}

#[test]
fn an_idle_hook_handler_costs_one_allocation() {
    let without = ours::run(&rounds_after(0));
    let with = ours::run(&Workload {
        hooks: 8,
        ..rounds_after(0)
    });
    // Each of the eight is tapped into both hooks of a tool call; a hook with handlers costs
    // two allocations beside theirs.
    let per_handler = (with.allocs - without.allocs) / 16.0;
    assert!(
        per_handler <= 1.27,
        "{per_handler} allocations per handler that does nothing, the limit is 1.27"
    );
}

/// Tells much about little.
struct Verbose;

#[async_trait]
impl ToolHandler for Verbose {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("verbose", "Tells every step.", json!({ "type": "object" }))
    }

    async fn call(&self, _: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        for _ in 0..200_000 {
            context.progress("x".repeat(4_096));
        }
        Ok("done".into())
    }
}

#[test]
fn progress_without_end_takes_little_memory() {
    // C30
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m"))
        .reply([call("c1", "verbose", "{}"), done()])
        .reply([text("ok"), done()]);
    let peak = runtime.block_on(async {
        let agent = AgentBuilder::new(AgentConfig::new("m"))
            .provider(provider)
            .tool(Verbose)
            .build()
            .await
            .unwrap();
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        let started = Started::now();
        let outcome = session.send("go").unwrap().await.unwrap();
        assert_eq!(*outcome.assistant_output, *"ok");
        started.sample().heap_peak()
    });
    assert!(peak < 1_000_000, "{peak} bytes for 819,200,000 of progress");
}

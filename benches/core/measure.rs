//! Timing and counting: a warm-up, then each iteration timed, then one counted by itself.

use std::time::Instant;

use serde::Serialize;

use crate::workload::{Seen, Workload};

/// The figures of one peer in one workload, per unit.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) peer: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) iterations: usize,
    pub(crate) min_us: f64,
    pub(crate) median_us: f64,
    pub(crate) allocs: f64,
    pub(crate) alloc_bytes: f64,
    /// Highest resident memory of the process so far.
    pub(crate) peak_kb: u64,
}

/// Measures `run`, which answers what it showed and how long the measured part took.
/// `prepare` is neither timed nor counted.
pub(crate) fn measure<P>(
    peer: &'static str,
    workload: &Workload,
    mut prepare: impl FnMut() -> P,
    mut run: impl FnMut(&mut P) -> (Seen, f64),
) -> Cell {
    let expected = workload.expected();
    let warm_up = 5.max(workload.iterations / 10);
    let mut times = Vec::with_capacity(workload.iterations);
    for iteration in 0..warm_up + workload.iterations {
        let mut prepared = prepare();
        let (seen, micros) = run(&mut prepared);
        assert_eq!(seen, expected, "{peer} does not do what {} asks", workload.name);
        if iteration >= warm_up {
            times.push(micros);
        }
    }
    let mut prepared = prepare();
    let counted = allocation_counter::measure(|| {
        run(&mut prepared);
    });
    times.sort_by(f64::total_cmp);
    let units = f64::from(workload.units);
    let at = |index: usize| round(times.get(index).copied().unwrap_or_default() / units);
    Cell {
        peer,
        workload: workload.name,
        unit: workload.unit,
        iterations: times.len(),
        min_us: at(0),
        median_us: at(times.len() / 2),
        allocs: round(counted.count_total as f64 / units),
        alloc_bytes: round(counted.bytes_total as f64 / units),
        peak_kb: peak_kb(),
    }
}

/// Runs `work` and answers with its time in microseconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed().as_secs_f64() * 1e6)
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default()
}

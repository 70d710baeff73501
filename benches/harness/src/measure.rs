//! Timing and counting: a warm-up, then every iteration as one sample.

use std::time::Instant;

use serde::Serialize;

use crate::counting::{Counted, counted_so_far, peak, restart_peak};
use crate::workload::{Seen, Workload};

/// The figures of one peer in one workload, per unit.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Whose figures these are.
    pub peer: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// What the figures are divided by.
    pub unit: &'static str,
    /// How many samples stand behind them.
    pub iterations: usize,
    /// The fastest sample.
    pub min_us: f64,
    /// The sample in the middle.
    pub median_us: f64,
    /// Allocations, the median.
    pub allocs: f64,
    /// Bytes of them, the median.
    pub alloc_bytes: f64,
    /// The most heap a sample held beyond what was there before it; not divided.
    pub heap_peak_bytes: i64,
    /// The most resident memory of the process so far, in KiB; not divided.
    pub peak_kb: u64,
    /// How much of it now are pages of the program and its libraries: they are read from disk and
    /// shared, and are there whether or not a turn runs.
    pub file_kb: u64,
}

/// What one measured part cost.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    micros: f64,
    counted: Counted,
    heap_peak: i64,
}

impl Sample {
    /// How often memory was asked for.
    pub fn allocations(&self) -> u64 {
        self.counted.allocations
    }

    /// How many bytes that were together.
    pub fn bytes(&self) -> u64 {
        self.counted.bytes
    }

    /// The most bytes held beyond what was held at the start.
    pub fn heap_peak(&self) -> i64 {
        self.heap_peak
    }
}

/// The start of a measured part.
#[derive(Debug)]
pub struct Started {
    counted: Counted,
    held: i64,
    at: Instant,
}

impl Started {
    /// Starts now.
    pub fn now() -> Self {
        Self {
            counted: counted_so_far(),
            held: restart_peak(),
            at: Instant::now(),
        }
    }

    /// The cost until now.
    pub fn sample(&self) -> Sample {
        let micros = self.at.elapsed().as_secs_f64() * 1e6;
        let now = counted_so_far();
        Sample {
            micros,
            counted: Counted {
                allocations: now.allocations - self.counted.allocations,
                bytes: now.bytes - self.counted.bytes,
            },
            heap_peak: peak() - self.held,
        }
    }
}

/// Measures `run`, which answers what it showed and what the measured part of it cost.
///
/// `prepare` is not measured. One iteration is one and no more: for the memory of a single turn,
/// and where only counts are looked at.
pub fn measure<P>(
    peer: &'static str,
    workload: &Workload,
    mut prepare: impl FnMut() -> P,
    mut run: impl FnMut(&mut P) -> (Seen, Sample),
) -> Cell {
    let expected = workload.expected();
    let iterations = workload.iterations.max(1);
    let warm_up = if iterations == 1 {
        0
    } else {
        5.max(iterations / 10)
    };
    let mut samples = Vec::with_capacity(iterations);
    for iteration in 0..warm_up + iterations {
        let mut prepared = prepare();
        let (seen, sample) = run(&mut prepared);
        assert_eq!(
            seen, expected,
            "{peer} does not do what {} asks",
            workload.name
        );
        if iteration >= warm_up {
            samples.push(sample);
        }
    }
    let middle = samples.len() / 2;
    let units = f64::from(workload.units);
    let sorted = |figure: fn(&Sample) -> f64| {
        let mut figures: Vec<f64> = samples.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures
    };
    let per_unit = |figure: f64| (figure / units * 1e4).round() / 1e4;
    let times = sorted(|sample| sample.micros);
    Cell {
        peer,
        workload: workload.name,
        unit: workload.unit,
        iterations,
        min_us: per_unit(times[0]),
        median_us: per_unit(times[middle]),
        allocs: per_unit(sorted(|sample| sample.counted.allocations as f64)[middle]),
        alloc_bytes: per_unit(sorted(|sample| sample.counted.bytes as f64)[middle]),
        heap_peak_bytes: sorted(|sample| sample.heap_peak as f64)[middle] as i64,
        peak_kb: status_kb("VmHWM:"),
        file_kb: status_kb("RssFile:"),
    }
}

/// A figure of this process; 0 where the system does not tell.
fn status_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default()
}

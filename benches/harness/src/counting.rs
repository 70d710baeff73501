//! The system's allocator, counting what the calling thread asks of it.
//!
//! A grown allocation counts once with its new size and is grown in place where the system can:
//! counting it as a fresh one with a copy would change the times and the peaks it stands beside.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a thread has asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Allocations, grown ones included.
    pub allocations: u64,
    /// Bytes of them.
    pub bytes: u64,
}

struct Counters {
    allocations: Cell<u64>,
    bytes: Cell<u64>,
    /// Bytes held now: less than nothing where a thread frees what another one allocated.
    held: Cell<i64>,
    peak: Cell<i64>,
}

thread_local! {
    static COUNTERS: Counters = const {
        Counters {
            allocations: Cell::new(0),
            bytes: Cell::new(0),
            held: Cell::new(0),
            peak: Cell::new(0),
        }
    };
}

/// What this thread has asked for since it started.
pub fn counted_so_far() -> Counted {
    COUNTERS.with(|counters| Counted {
        allocations: counters.allocations.get(),
        bytes: counters.bytes.get(),
    })
}

/// Bytes this thread holds; from now on the peak is counted from here.
pub(crate) fn restart_peak() -> i64 {
    COUNTERS.with(|counters| {
        counters.peak.set(counters.held.get());
        counters.held.get()
    })
}

/// The most bytes held since the last restart.
pub(crate) fn peak() -> i64 {
    COUNTERS.with(|counters| counters.peak.get())
}

fn asked(size: usize, freed: usize) {
    COUNTERS.with(|counters| {
        counters.allocations.set(counters.allocations.get() + 1);
        counters.bytes.set(counters.bytes.get() + size as u64);
        let held = counters.held.get() + size as i64 - freed as i64;
        counters.held.set(held);
        counters.peak.set(counters.peak.get().max(held));
    });
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches only cells of
// the thread, which allocate nothing and need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        asked(layout.size(), 0);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        asked(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        asked(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        COUNTERS.with(|counters| {
            counters
                .held
                .set(counters.held.get() - layout.size() as i64)
        });
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

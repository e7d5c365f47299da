//! Counts live heap bytes, only while asked to.
//!
//! The ready-made counting allocators (`stats_alloc`, `peak_alloc`, `allocation-counter`) count every
//! allocation of the process with atomics or thread-locals, which would be a tenth or more of what is
//! timed here. This one costs a relaxed load and a predictable branch unless a measurement is on.
//!
//! Counted is what the code asked for; the allocator's own headers and rounding come on top and are
//! the same kind of extra on every side.

#![allow(
    unsafe_code,
    reason = "`GlobalAlloc` is an unsafe trait; every call goes to `System` unchanged"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

struct CountingHeap;

// SAFETY: every method hands its arguments to `System` and its answer back; the counting beside it
// touches only atomics and never allocates.
unsafe impl GlobalAlloc for CountingHeap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[inline]
fn count(more: usize, less: usize) {
    if COUNTING.load(Relaxed) {
        let change = more as isize - less as isize;
        let live = LIVE.fetch_add(change, Relaxed) + change;
        PEAK.fetch_max(live, Relaxed);
    }
}

/// Bytes a piece of work left on the heap, and the most it had there at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) live: f64,
    pub(crate) peak: f64,
}

/// Runs the work with counting on; what it returns is still alive when the bytes are read.
///
/// One measurement at a time, and no other thread allocating meanwhile.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let kept = work();
    COUNTING.store(false, Relaxed);
    let usage = Usage { live: LIVE.load(Relaxed) as f64, peak: PEAK.load(Relaxed) as f64 };
    (kept, usage)
}

//! Counts live heap bytes, only during a measurement.
//!
//! The existing counting allocators (`stats_alloc`, `peak_alloc`, `allocation-counter`) count every
//! allocation of the process with atomics or thread-locals, a tenth or more of the times measured
//! here. This one costs a relaxed load and a predictable branch outside measurements.
//!
//! It counts the bytes that the allocator reserves, header and rounding included (on Linux;
//! elsewhere the requested bytes). A name of 12 bytes in its own `String` takes 32, so many small
//! allocations do not look as good as a few large ones.

#![allow(
    unsafe_code,
    reason = "`GlobalAlloc` is an unsafe trait; every call goes to `System` unchanged. `malloc_usable_size` is C"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

struct CountingHeap;

// SAFETY: every method passes its arguments to `System` and returns its answer; the counting only
// uses atomics and never allocates.
unsafe impl GlobalAlloc for CountingHeap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let block = unsafe { System.alloc(layout) };
        count(1, block, layout);
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let block = unsafe { System.alloc_zeroed(layout) };
        count(1, block, layout);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-1, block, layout);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(-1, block, layout);
        // SAFETY: the caller's promise, passed on.
        let moved = unsafe { System.realloc(block, layout, size) };
        // A failed allocation ends the program, so it is not counted apart.
        count(1, moved, Layout::from_size_align(size, layout.align()).unwrap_or(layout));
        moved
    }
}

/// Counts a live block that is allocated (1) or freed (-1).
#[inline]
fn count(sign: isize, block: *mut u8, layout: Layout) {
    if COUNTING.load(Relaxed) {
        let change = sign * set_aside(block, layout) as isize;
        let live = LIVE.fetch_add(change, Relaxed) + change;
        PEAK.fetch_max(live, Relaxed);
    }
}

/// Returns the bytes that the allocator reserved for a live block.
#[cold]
fn set_aside(block: *mut u8, layout: Layout) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the block is alive and came from `System`, which is malloc there.
    #[cfg(target_os = "linux")]
    let bytes = unsafe { libc::malloc_usable_size(block.cast()) } + size_of::<usize>();
    #[cfg(not(target_os = "linux"))]
    let bytes = layout.size();
    bytes.max(layout.size())
}

/// The bytes that some work left on the heap, and its peak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) live: f64,
    pub(crate) peak: f64,
}

/// Runs the work with counting on; its result is still alive when the bytes are read.
///
/// One measurement at a time, and no other thread may allocate meanwhile.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let kept = work();
    COUNTING.store(false, Relaxed);
    let usage = Usage { live: LIVE.load(Relaxed) as f64, peak: PEAK.load(Relaxed) as f64 };
    (kept, usage)
}

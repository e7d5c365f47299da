//! Counts live heap bytes, only while asked to.
//!
//! The ready-made counting allocators (`stats_alloc`, `peak_alloc`, `allocation-counter`) count
//! every allocation of the process with atomics or thread-locals, which would be a tenth or more of
//! what is timed here. This one costs a relaxed load and a predictable branch unless a measurement
//! is on.
//!
//! Counted is what the allocator sets aside, its header and rounding included (on Linux; elsewhere
//! what the code asked for): a name of 12 bytes in a `String` of its own takes 32, and a side that
//! makes many small allocations is not to look as good as one that makes a few large ones.

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

// SAFETY: every method hands its arguments to `System` and its answer back; the counting beside it
// touches only atomics and never allocates.
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
        // Nobody here goes on without the memory it asked for.
        count(1, moved, Layout::from_size_align(size, layout.align()).unwrap_or(layout));
        moved
    }
}

/// Counts a live block that comes (1) or goes (-1).
#[inline]
fn count(sign: isize, block: *mut u8, layout: Layout) {
    if COUNTING.load(Relaxed) {
        let change = sign * set_aside(block, layout) as isize;
        let live = LIVE.fetch_add(change, Relaxed) + change;
        PEAK.fetch_max(live, Relaxed);
    }
}

/// Bytes that the allocator set aside for a live block.
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

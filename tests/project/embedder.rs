//! The smallest program that embeds the engine: no std, its own allocator, its own panic handler.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use navlocks_core::{HashKey, LockManager, Request};

struct NoMemory;

// SAFETY: it never returns memory, which is allowed.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: NoMemory = NoMemory;

#[panic_handler]
fn end(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Uses enough of the engine that all of it is linked.
#[unsafe(no_mangle)]
pub extern "C" fn locks_held_after_one_request() -> usize {
    let mut manager = LockManager::new(HashKey::from_bytes([0; 16]));
    let client = manager.add_client();
    let _ = manager.request(client, Request::exclusive("a"));
    while manager.poll_event().is_some() {}
    manager.query().held.len()
}

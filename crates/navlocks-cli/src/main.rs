//! The command `navlocks`.

// The harness of tests brings a function `main` of its own.
#![cfg_attr(not(test), no_main)]
#![allow(unsafe_code, reason = "the C library finds this function by its name")]

use std::ffi::{c_char, c_int};

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    // SAFETY: the C library calls this function.
    unsafe { navlocks_cli::enter(count, words) }
}

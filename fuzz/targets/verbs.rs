//! Arbitrary sequences of inputs: the engine must do the same as the naive model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navlocks_tests::history::{History, run};

fuzz_target!(|data: &[u8]| {
    let history = History::from_bytes(data);
    if let Err(divergence) = run(&history.ops) {
        panic!("\n{divergence}\n");
    }
});

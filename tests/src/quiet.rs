//! Panics of the engine as objections: caught, with their text and place, and not printed, because
//! shrinking causes many.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The text of the last panic, while this thread catches them.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `act` and returns the text of its panic if it did.
pub(crate) fn quietly<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // Threads that catch nothing keep their hook; so does the fuzzer, whose hook ends the
        // process.
        let others = take_hook();
        set_hook(Box::new(move |info| {
            let ours = CAUGHT.with_borrow_mut(|caught| {
                caught.as_mut().map(|words| *words = info.to_string()).is_some()
            });
            if !ours {
                others(info);
            }
        }));
    });

    CAUGHT.set(Some(String::new()));
    // The engine is dropped after a panic, so its broken state is never seen.
    let outcome = catch_unwind(AssertUnwindSafe(act));
    let words = CAUGHT.take().unwrap_or_default();
    outcome.map_err(|_| format!("the engine panicked: {words}"))
}

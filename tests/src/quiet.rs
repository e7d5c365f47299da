//! Panics of the engine as objections: caught, with their words and place, and not printed, for
//! shrinking causes many.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// What the last panic said, while this thread catches them.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does that, and returns what it panicked with if it did.
pub(crate) fn quietly<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // Threads that catch nothing keep the hook they had; so does the fuzzer, which ends the
        // process in it.
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
    // The engine is thrown away after a panic, so nobody sees what it left undone.
    let outcome = catch_unwind(AssertUnwindSafe(act));
    let words = CAUGHT.take().unwrap_or_default();
    outcome.map_err(|_| format!("the engine panicked: {words}"))
}

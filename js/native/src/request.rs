//! Requests as numbers from JavaScript.

use navlocks_core::{Mode, Request, Scope, Wait};

/// Returns a request by `how`: the number of the wait, plus eight times the limit. None for numbers
/// that stand for nothing.
#[inline]
pub(crate) fn request(scope: Scope, how: f64) -> Option<Request> {
    let how = how as u64;
    let mode = mode((how >> 3) as f64)?;
    let wait = match how & 7 {
        0 => Wait::Queue,
        1 => Wait::IfAvailable,
        2 => Wait::Steal,
        3 => Wait::StealAll,
        4 => Wait::Overtake,
        _ => return None,
    };
    Some(Request { scope, mode, wait })
}

/// Returns the mode with this limit; 0 stands for shared.
#[inline]
pub(crate) fn mode(limit: f64) -> Option<Mode> {
    match limit as u64 {
        0 => Some(Mode::Shared),
        limit => Mode::limited(u32::try_from(limit).ok()?).ok(),
    }
}

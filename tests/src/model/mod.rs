//! Naive lock managers: each transcribes its text directly, scans everything, and shares no code
//! with the engine.
//!
//! * [`Standard`]: the standard, one queue per name and its head (single names).
//! * [`Scan`]: the draft with `acquire`, one queue per origin, scanned from end to end (single
//!   names).
//! * [`Scopes`]: the draft with scopes, one queue per origin and sets of names, with all other
//!   inputs of the engine.

mod scan;
mod scopes;
mod standard;
mod waits;
pub mod words;

pub use scan::Scan;
pub use scopes::Scopes;
pub use standard::Standard;

use words::{ClientNo, Mode, Name, RequestNo, Wait};

/// The outcome of a promise of the single-name texts, as far as a lock manager decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The callback is invoked with a lock.
    Granted(RequestNo),
    /// The callback is invoked with null.
    Unavailable(RequestNo),
    /// The promise is rejected with an "AbortError".
    Rejected(RequestNo),
}

impl Outcome {
    /// Returns the request of the promise.
    pub fn request(self) -> RequestNo {
        match self {
            Self::Granted(request) | Self::Unavailable(request) | Self::Rejected(request) => {
                request
            }
        }
    }
}

/// A lock or a lock request of the single-name texts: both have the same items once promises and
/// callbacks are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the items of the texts")]
pub struct Single {
    pub request: RequestNo,
    pub client: ClientNo,
    pub name: Name,
    pub mode: Mode,
}

/// The inputs that the single-name texts have in common.
pub trait SingleNames {
    /// Requests a lock.
    fn request(&mut self, request: Single, wait: Wait);
    /// The waiting promise of a held lock settles. Any other request stays as it is.
    fn release(&mut self, request: RequestNo);
    /// The signal of a pending request aborts. Any other request stays as it is.
    fn abort(&mut self, request: RequestNo);
    /// The client ends.
    fn terminate(&mut self, client: ClientNo);
    /// Returns the outcomes since the last call.
    fn take_outcomes(&mut self) -> Vec<Outcome>;
    /// Returns the held lock set.
    fn held(&self) -> Vec<Single>;
    /// Returns all lock requests in their queues.
    fn pending(&self) -> Vec<Single>;
}

//! Naive lock managers: each transcribes its text directly, scans everything, and shares no code
//! with the engine.
//!
//! * [`Standard`]: seed 001, one queue per name and its head (single names).
//! * [`Scan`]: seed 000, one queue per origin, scanned from end to end (single names).
//! * [`Scopes`]: seed 002, one queue per origin and sets of names, with everything else that the
//!   engine can do.

mod scan;
mod scopes;
mod standard;
mod waits;
pub mod words;

pub use scan::Scan;
pub use scopes::Scopes;
pub use standard::Standard;

use words::{ClientNo, Mode, Name, RequestNo, Wait};

/// What a promise of the single-name texts settles with, as far as a lock manager decides it.
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
    /// Whose promise it is.
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

/// The verbs that the single-name texts have in common.
pub trait SingleNames {
    /// To request a lock.
    fn request(&mut self, request: Single, wait: Wait);
    /// The waiting promise of a held lock settles. Anything else is not held and stays as it is.
    fn release(&mut self, request: RequestNo);
    /// The signal of a pending request aborts. Anything else is not pending and stays as it is.
    fn abort(&mut self, request: RequestNo);
    /// The client is gone.
    fn terminate(&mut self, client: ClientNo);
    /// What happened since the last call.
    fn take_outcomes(&mut self) -> Vec<Outcome>;
    /// The held lock set.
    fn held(&self) -> Vec<Single>;
    /// All lock requests in their queues.
    fn pending(&self) -> Vec<Single>;
}

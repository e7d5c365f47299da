//! What a backend offers to the tests.

use navlocks::{DeadlockPolicy, Locks};

/// A lock space of a test's own, and the way to its clients.
pub(crate) trait Backend {
    /// How often a test repeats a race between threads: as often as this backend can in about a
    /// second.
    const ROUNDS: usize;

    /// A new lock space, of which nobody else knows. It lasts as long as what is returned.
    fn start(deadlocks: DeadlockPolicy) -> Self;

    /// A new client of it.
    fn client(&self) -> Locks;

    /// Several new clients.
    fn clients<const COUNT: usize>(&self) -> [Locks; COUNT] {
        std::array::from_fn(|_| self.client())
    }
}

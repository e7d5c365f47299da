//! The interface of a backend to the tests.

use navlocks::{DeadlockPolicy, Locks};

/// A lock space of its own for each test, and its clients.
pub(crate) trait Backend {
    /// How often a test repeats a race between threads: as often as this backend can in about a
    /// second.
    const ROUNDS: usize;

    /// Makes a lock space that no other test uses. It lives as long as the returned value.
    fn start(deadlocks: DeadlockPolicy) -> Self;

    /// Makes a client of it.
    fn client(&self) -> Locks;

    /// Makes several clients.
    fn clients<const COUNT: usize>(&self) -> [Locks; COUNT] {
        std::array::from_fn(|_| self.client())
    }
}

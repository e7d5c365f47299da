//! What a lock space does about deadlocks.

/// What happens when a request begins to wait and thereby closes a cycle of clients that wait for each other.
///
/// A client is taken to keep what it holds until all that it waits for is granted. If tasks that do not wait for
/// each other share a client, give each its own with [`Locks::new_client`](crate::Locks::new_client).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadlockPolicy {
    /// Nothing: it waits, and [`Locks::deadlocks`](crate::Locks::deadlocks) tells when asked. The default, and free of cost.
    #[default]
    Ignore,
    /// It waits, and the [event stream](crate::Locks::events) tells.
    Report,
    /// It fails with [`RequestError::Deadlock`](crate::RequestError::Deadlock), which names the cycle.
    Refuse,
}

//! Bugs of the recovery of a service. Each bug strikes once.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The first claim ends the wait for all others, so that other clients are granted their locks.
    GrantEarly,
    /// The record of a steal is missing after a restart, so that the victim can claim.
    ForgetSteal,
    /// A service that is killed while it waits for claims has forgotten the sessions at its next
    /// start.
    ForgetGrace,
    /// A claimed request goes to the tail of the queue.
    LoseOrder,
    /// A held lock is refused although its claim is correct.
    RefuseClaim,
}

//! Bugs of the recovery of a service. Each bug strikes once.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The first claim ends the wait for all others, so that other clients are granted what they
    /// hold.
    GrantEarly,
    /// The record of a steal is not there when the service is started again, so that the victim can
    /// claim.
    ForgetSteal,
    /// A service that is killed while it waits for claims has forgotten the sessions at its next
    /// start.
    ForgetGrace,
    /// A claimed request goes to the end of the queue.
    LoseOrder,
    /// A held lock is not taken although its claim is right.
    RefuseClaim,
}

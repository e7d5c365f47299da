//! The bugs of the service. Each bug strikes once.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The first waiter is granted although there is a holder.
    GrantTwo,
    /// A grant is not sent.
    DropGrant,
    /// A request that was seen pending goes to the tail of the queue.
    LoseSeat,
    /// A token is used twice.
    RepeatToken,
    /// A token is smaller than the last one.
    ShrinkToken,
}

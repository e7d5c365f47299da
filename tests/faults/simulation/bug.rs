//! What can be wrong with the service. Each bug strikes once.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The first in the queue is granted although somebody holds.
    GrantTwo,
    /// A grant is not told.
    DropGrant,
    /// A request that was seen waiting goes to the end of the queue.
    LoseSeat,
    /// A token is given once more.
    RepeatToken,
    /// A token is smaller than the last one.
    ShrinkToken,
}

//! The end of an ownership.

use crate::error::Error;

/// Why an owner is none any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Another node owns the slot, or it was given away.
    Lost,
    /// The node's own place in the cluster is gone.
    Node(Error),
}

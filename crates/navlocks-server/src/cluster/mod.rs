//! The seam to a cluster: a service that several nodes run together.
//!
//! Partitions hash into slots. A node owns some of the slots, and each of these has a hub of its
//! own. Sessions of a slot are in a [`Registry`], which outlives the owner; its locks are not.
//! Another crate keeps the state of the cluster: it implements [`Membership`] and [`Registry`].

mod gate;
mod hashing;
mod membership;
mod registry;

pub(crate) use gate::{Gate, Ticket};
pub use hashing::{Hash, slot_of};
pub use membership::{Event, Membership, Task};
pub use registry::{
    Change, ChangeNumber, Epoch, Inherited, Registry, SessionKey, SessionRecord, TakenRecord,
};

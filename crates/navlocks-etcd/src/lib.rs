//! The state that a cluster of navlocks services keeps in etcd: which node owns which slots, in which epoch,
//! and which sessions exist. Locks are not in it.
//!
//! A [`Member`] is one node's part. It gains and loses slots; each [`OwnedSlot`] is a [`Registry`]
//! for the service that serves the slot. An [`Inspection`] looks from outside. `docs/cluster.md`
//! has the keys, the transactions and the reasons.

#![forbid(unsafe_code)]

mod address;
mod batch;
mod belief;
mod clock;
mod config;
mod error;
mod hashing;
mod inspection;
mod key;
mod member;
mod plan;
mod record;
mod registry;
mod renewal;
mod renewer;
mod sighting;
mod slot;
mod store;
mod takeover;
mod view;

pub use address::{Address, TlsFiles};
pub use clock::{BootClock, Clock, Moment, belief};
pub use config::Config;
pub use error::Error;
pub use hashing::slot_of;
pub use inspection::{ClusterView, Health, Inspection, NodeView, SlotView};
pub use member::{Event, Member};
pub use record::Incarnation;
pub use registry::{
    Change, ChangeNumber, Ended, Epoch, Inherited, Registry, SessionKey, SessionRecord, TakenRecord,
};
pub use slot::OwnedSlot;

//! The state that a cluster of navlocks services keeps in etcd: which node owns which slots, in
//! which epoch, and which sessions exist. Locks are not in it.
//!
//! A [`Node`] is what a service takes part with: a [`Member`] that begins anew when it has ended.
//! It gains and loses slots; each [`OwnedSlot`] is a [`Registry`] for the service that serves the
//! slot. An [`Inspection`] looks from outside. `docs/cluster.md` has the keys, the transactions and
//! the reasons.

#![forbid(unsafe_code)]

mod address;
mod agreement;
mod batch;
mod belief;
mod clock;
mod compaction;
mod config;
mod driver;
mod ended;
mod error;
mod hashing;
mod hearing;
mod inspection;
mod key;
mod member;
mod node;
mod plan;
mod record;
mod renewal;
mod renewer;
mod sighting;
mod slot;
mod store;
mod takeover;
mod view;

pub use address::{Address, TlsFiles};
pub use clock::{BootClock, Clock, Moment, belief};
pub use config::{Config, Known};
pub use driver::Event;
pub use ended::Ended;
pub use error::Error;
pub use inspection::{ClusterView, Health, Inspection, NodeView, SlotView};
pub use member::Member;
pub use navlocks_server::cluster::{
    Change, ChangeNumber, Epoch, Inherited, Registry, SessionKey, SessionRecord, TakenRecord,
    slot_of,
};
pub use node::Node;
pub use record::Incarnation;
pub use slot::OwnedSlot;

//! The keys of a cluster in etcd: their names, their values, and the calls that change them.

pub(crate) mod key;
pub(crate) mod record;
pub(crate) mod store;
pub(crate) mod compaction;
pub(crate) mod agreement;
pub(crate) mod batch;
pub(crate) mod hashing;

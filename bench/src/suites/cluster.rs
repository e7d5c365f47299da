//! A cluster: locks by way of nodes that own them, against etcd's own locks on the same members.

mod case;
mod failover;
mod ground;
mod target;

use super::Suite;

pub(super) use ground::Ground;

/// The words for the sides.
const SERVICE: &str = "service";
const ETCD: &str = "etcd";
const CARRIED: &str = "carried";

pub(super) const SUITE: Suite = Suite {
    name: "cluster",
    about: "three nodes on three members of etcd, against etcd's own lock and one service, over TCP",
    plan: case::plan,
    targets: target::targets,
};

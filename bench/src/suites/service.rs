//! Lock services: how fast clients in one process get locks from a server in another.

mod case;
mod client;
mod echo;
mod etcd;
mod navlocks;
mod peer;
mod postgres;
mod redis;
mod restart;
mod target;
mod wire;

use super::Suite;

pub(super) const SUITE: Suite = Suite {
    name: "service",
    about: "lock services on this machine, started from Debian's packages, over TCP and Unix sockets",
    plan: peer::plan,
    targets: target::targets,
};

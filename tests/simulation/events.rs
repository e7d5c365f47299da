//! The coming events, in order of time.

use std::collections::BTreeMap;

use navlocks_wire::{ToClient, ToService};

use crate::etcd::{Answer, Call, Incarnation};
use crate::services::{ClientNo, LinkNo};
use crate::world::Fault;

/// An event of the world. A message that is missing is the handshake.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message reaches a service.
    Up {
        link: LinkNo,
        message: Option<ToService>,
    },
    /// A message reaches a client.
    Down {
        client: ClientNo,
        link: LinkNo,
        message: Option<ToClient>,
    },
    /// A client notices that its connection broke, or that the service has closed it.
    Broken {
        client: ClientNo,
        link: LinkNo,
        closed: bool,
    },
    /// A service notices that a connection is over.
    Detached(LinkNo),
    /// The service may notice that a client of its machine is dead.
    Buried(ClientNo),
    /// A task of a client has waited long enough; its wait may be over already.
    Wake {
        client: ClientNo,
        task: usize,
        turn: u32,
    },
    /// A moment of a client's machine may have come.
    Beat {
        client: ClientNo,
        at: u64,
    },
    /// A socket to this node is connected, or refused.
    Dialled {
        client: ClientNo,
        node: usize,
    },
    /// The services look at their clocks.
    Tick,
    /// The conductor chooses a fault.
    Disturb,
    /// A fault happens.
    Fault(Fault),
    /// A client that was stopped for this time continues.
    Continue {
        client: ClientNo,
        stop: u32,
    },
    /// A client has found its way around a dead connection.
    Around(ClientNo),
    Restart(usize),
    /// A node that was stopped continues.
    Awake(usize),
    /// A call of a node reaches etcd.
    Call {
        node: Incarnation,
        call: Call,
    },
    /// The answer reaches the node.
    Answer {
        node: Incarnation,
        answer: Answer,
    },
    /// etcd has a quorum again.
    Mend,
}

/// Events at the same time happen in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Events {
    coming: BTreeMap<(u64, u64), Event>,
    next: u64,
}

impl Events {
    pub(crate) fn put(&mut self, at: u64, event: Event) {
        self.coming.insert((at, self.next), event);
        self.next += 1;
    }

    pub(crate) fn take(&mut self) -> Option<(u64, Event)> {
        self.coming.pop_first().map(|((at, _), event)| (at, event))
    }
}

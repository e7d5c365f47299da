//! The services: shipped hubs, with a state folder or with slots of a cluster, and their
//! connections. The shell around them does what the shipped one does with sockets.

pub(crate) mod spoiler;

mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use navlocks_server::cluster::{Registry, slot_of};
use navlocks_server::hub::{Contents, Hub, Outbox, Peer};
use navlocks_server::{DeadlockPolicy, Limits};
use navlocks_wire::{Fault, Hello, ToClient};

use self::spoiler::Spoiler;
use crate::bug::{Bug, Seeded};
use crate::etcd::{Answer, Call, Etcd, Incarnation, OwnedSlot};
use crate::member::Member;

/// A client, by its index in the world.
pub(crate) type ClientNo = usize;
/// A connection, by its index in the list.
pub(crate) type LinkNo = usize;

pub(crate) struct Services {
    begin: Instant,
    limits: Limits,
    /// The folder of the only service; none in a cluster.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) etcd: Etcd,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    woken: Arc<Mutex<BTreeSet<LinkNo>>>,
    /// Hellos that wait for an owner of their slot, and since when.
    parked: Vec<(LinkNo, Hello, u64)>,
    /// Connections whose clients have sent `bye`: they end when that is durable.
    leaving: Vec<LinkNo>,
    /// The messages that come next, before any that a hub sends.
    next: Vec<Sent>,
    pub(crate) seeded: Seeded,
    spoiler: Spoiler,
    pub(crate) checks: bool,
}

/// A process of a service. A lone service has one hub, under slot 0.
pub(crate) struct Node {
    pub(crate) is_up: bool,
    pub(crate) is_asleep: bool,
    pub(crate) life: u32,
    pub(crate) hubs: BTreeMap<u32, Hub>,
    pub(crate) member: Option<Member>,
}

pub(crate) struct Link {
    /// None for a stranger.
    pub(crate) client: ClientNo,
    pub(crate) node: usize,
    /// The node that carries the messages, if it is another one.
    carrier: Option<usize>,
    lives: (u32, u32),
    pub(crate) peer: Rc<Peer>,
    outbox: Outbox,
    pub(crate) session: Option<(u32, u64)>,
    slot: u32,
    /// True if no more messages are taken from it.
    pub(crate) is_over: bool,
    waker: Waker,
}

/// A message of a service. Without a message, the handshake or the end of the connection.
pub(crate) struct Sent {
    pub(crate) link: LinkNo,
    pub(crate) client: ClientNo,
    pub(crate) what: SentWhat,
}

pub(crate) enum SentWhat {
    Opened,
    Message(Box<ToClient>),
    Closed,
}

/// Notes that an outbox has something to send.
struct Mark(LinkNo, Arc<Mutex<BTreeSet<LinkNo>>>);

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        lock(&self.1).insert(self.0);
    }
}

fn lock(woken: &Mutex<BTreeSet<LinkNo>>) -> MutexGuard<'_, BTreeSet<LinkNo>> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Services {
    /// Makes a lone service with its tables in this folder, or the nodes of a cluster.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        (nodes, slots): (usize, u32),
        limits: Limits,
        seeded: Seeded,
    ) -> Self {
        let node = |_| Node {
            is_up: false,
            is_asleep: false,
            life: 0,
            hubs: BTreeMap::new(),
            member: None,
        };
        Self {
            begin: Instant::now(),
            limits,
            spoiler: Spoiler::new(folder.clone(), seeded.clone()),
            folder,
            etcd: Etcd::new(slots, seeded.clone()),
            nodes: (0..nodes).map(node).collect(),
            links: Vec::new(),
            woken: Arc::default(),
            parked: Vec::new(),
            leaving: Vec::new(),
            next: Vec::new(),
            seeded,
            checks: true,
        }
    }

    pub(crate) fn at(&self, now: u64) -> Instant {
        self.begin + Duration::from_millis(now)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.folder.is_none()
    }

    /// Returns the slot of a partition: 0 for a lone service.
    pub(crate) fn slot_of(&self, partition: &str) -> u32 {
        match self.is_cluster() {
            true => slot_of(&["", "", partition], self.etcd.slots.len() as u32),
            false => 0,
        }
    }

    /// Returns true if every lock has a service that grants it.
    pub(crate) fn is_serving(&self) -> bool {
        let serves = |slot: u32| {
            self.nodes.iter().filter(|node| node.is_up && !node.is_asleep).any(|node| {
                match &node.member {
                    None => true,
                    Some(member) => member.owned.get(&slot).is_some_and(|it| it.may_send()),
                }
            })
        };
        let slots = self.etcd.slots.len() as u32;
        (0..slots).all(serves)
    }

    pub(crate) fn start(&mut self, node: usize, now: u64) {
        let at = self.at(now);
        let started = &mut self.nodes[node];
        started.life += 1;
        (started.is_up, started.is_asleep) = (true, false);
        let Some(folder) = &self.folder else {
            started.member = Some(Member::new((node, started.life)));
            return;
        };
        let hub = Hub::with_state_folder(folder, self.limits.clone(), DeadlockPolicy::Ignore, at);
        let hub = hub.expect("the folder can be used");
        started.hubs.insert(0, hub);
        if started.life > 2 && self.seeded.strikes(Bug::ForgetGrace) {
            self.end_unclaimed(now);
        }
    }

    /// Ends all sessions that were not claimed: a bug.
    fn end_unclaimed(&mut self, now: u64) {
        let at = self.at(now);
        let sessions: Vec<u32> = self.links.iter().filter_map(|it| Some(it.session?.0)).collect();
        for hub in self.nodes.iter_mut().flat_map(|node| node.hubs.values_mut()) {
            sessions.iter().for_each(|&session| hub.end_unclaimed(session, at));
        }
    }

    /// Kills a process. Its tables stay unchanged, unless a bug is in them.
    pub(crate) fn kill(&mut self, node: usize) {
        let killed = &mut self.nodes[node];
        killed.is_up = false;
        killed.hubs.clear();
        killed.member = None;
        self.spoiler.spoil_tables();
    }

    /// Lets time pass. Returns the calls of nodes to etcd, and the nodes that have given all their
    /// slots away and end.
    pub(crate) fn pass_time(&mut self, now: u64) -> (Vec<(Incarnation, Call)>, Vec<usize>) {
        let (at, checks) = (self.at(now), self.checks);
        let (mut calls, mut ended) = (Vec::new(), Vec::new());
        let drains: Vec<Incarnation> = self
            .nodes
            .iter()
            .filter_map(|node| node.member.as_ref())
            .filter(|member| member.drains)
            .map(|member| member.me)
            .collect();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if !node.is_up || node.is_asleep {
                continue;
            }
            for hub in node.hubs.values_mut() {
                while hub.go_on(at) {}
                hub.check_leases(at);
                hub.check_unclaimed(at);
                hub.check_holds(at);
                if checks {
                    hub.check_invariants();
                }
            }
            let Some(member) = &mut node.member else { continue };
            member.belief.now.set(now);
            for (slot, hub) in &mut node.hubs {
                match member.owned.get(slot).is_some_and(|owned| owned.may_send()) {
                    true => hub.open_gate(),
                    false => hub.disconnect(&Fault::moved(None)),
                }
            }
            let steps = member.look(&self.etcd, &drains, now);
            calls.extend(steps.calls.into_iter().map(|call| (member.me, call)));
            let given = steps.give.into_iter().map(|(slot, to)| (slot, Some(to)));
            for (slot, to) in steps.lost.into_iter().map(|slot| (slot, None)).chain(given) {
                let Some(owned) = member.owned.remove(&slot) else { continue };
                if let Some(mut hub) = node.hubs.remove(&slot) {
                    hub.retire(&Fault::moved(to.map(address)), at);
                }
                match to {
                    Some(_) => _ = member.giving.insert(slot, owned),
                    None => owned.end(),
                }
            }
            for (&slot, owned) in &member.giving {
                if owned.is_flushed() && !owned.is_over() {
                    owned.end();
                    calls.push((member.me, Call::Give { slot, epoch: owned.epoch() }));
                }
            }
            if member.drains && member.owned.is_empty() && member.giving.is_empty() {
                ended.push(number);
            }
        }
        self.look_at_parked(now);
        (calls, ended)
    }

    /// Removes a node that has given all its slots away from the cluster.
    pub(crate) fn leave_cluster(&mut self, node: usize) {
        if let Some(member) = &self.nodes[node].member {
            self.etcd.nodes.remove(&member.me);
            self.etcd.ended.insert(member.me);
        }
        self.kill(node);
    }

    /// Takes an answer of etcd.
    pub(crate) fn answer(&mut self, incarnation: Incarnation, answer: Answer, now: u64) {
        let at = self.at(now);
        let Node { hubs, member, life, .. } = &mut self.nodes[incarnation.0];
        let Some(member) = member.as_mut().filter(|member| member.me == incarnation) else {
            return;
        };
        member.belief.now.set(now);
        match answer {
            Answer::Renewed { sent, lives: true } => {
                member.renewed(sent);
                hubs.values().for_each(Hub::open_gate);
            }
            Answer::Renewed { lives: false, .. } => {
                // It joins again, as another one. Connections go on with the process.
                hubs.values_mut().for_each(|hub| hub.retire(&Fault::moved(None), at));
                hubs.clear();
                *member = Member::new((incarnation.0, *life + 1_000 + member.me.1));
            }
            Answer::Written { slot, epoch, upto } => {
                let slots = member.owned.get(&slot).or_else(|| member.giving.get(&slot));
                if let Some(owned) = slots.filter(|owned| owned.epoch() == epoch) {
                    owned.written(upto);
                }
                hubs.get(&slot).iter().for_each(|hub| hub.open_gate());
            }
            Answer::Taken(slots) => {
                member.taken();
                let count = self.etcd.slots.len() as u32;
                for (slot, epoch, keys) in slots {
                    let owned = Rc::new(OwnedSlot::new(slot, epoch, member.belief.clone()));
                    let registry: Rc<dyn Registry> = owned.clone();
                    let (limits, policy) = (self.limits.clone(), DeadlockPolicy::Ignore);
                    let hub = Hub::with_slot(count, &registry, keys.inherit(at), limits, policy);
                    hubs.insert(slot, hub.expect("there are tokens"));
                    member.owned.insert(slot, owned);
                }
                self.look_at_parked(now);
            }
            Answer::Given(slot) => _ = member.giving.remove(&slot),
        }
    }

    /// Returns what the hubs keep.
    pub(crate) fn contents(&self) -> Vec<Contents> {
        self.nodes.iter().flat_map(|node| node.hubs.values()).map(Hub::contents).collect()
    }

    pub(crate) fn fill_disk(&mut self) {
        self.spoiler.fill_disk();
    }
}

/// Returns the address of a node.
pub(crate) fn address(node: usize) -> String {
    format!("ws://n{node}:7400")
}

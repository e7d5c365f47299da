//! The world: the network between clients and services, virtual time, and the end of a history.

mod conductor;
mod ending;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use navlocks_server::Limits;
use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Deed, Line};

use crate::bug::Seeded;
use crate::client::{Acts, Client, Traits};
use crate::etcd::{Call, Incarnation};
use crate::events::{Event, Events};
use crate::services::{ClientNo, LinkNo, SentWhat, Services};
use conductor::{Carriage, is_strange};

/// More sessions and partitions than any world has.
const MANY: usize = 1 << 20;
/// The longest delay of a message, and of one to or from etcd.
const LATENCY: u64 = 120;
const ETCD_LATENCY: u64 = 20;
/// One answer of etcd in so many is lost, and the call comes again after this time.
const ETCD_LOSSES: u64 = 50;
const ETCD_PAUSE: u64 = 100;

pub(crate) use conductor::Fault;
pub(crate) use ending::{Finding, Played};

/// The plan of a world.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The folder of a lone service; none for a cluster.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) nodes: usize,
    pub(crate) slots: u32,
    pub(crate) lease: u64,
    /// How long an absence a lock outlasts.
    pub(crate) endurance: u64,
    /// True if it outlasts any: there are no leases on one machine.
    pub(crate) outlasts_all: bool,
    /// How often services look at their clocks.
    pub(crate) tick: u64,
    pub(crate) requests_max: usize,
    pub(crate) clients: Vec<Traits>,
    /// So many random faults, and those of a script.
    pub(crate) random_faults: u32,
    pub(crate) faults: Vec<(u64, Fault)>,
    /// A stranger comes before one message in so many; 0 for none.
    pub(crate) strangers: u64,
    /// True if clients ask for all names at the end, and all that is kept is looked at.
    pub(crate) checks: bool,
    pub(crate) bug: Seeded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Play,
    /// Clients ask for every name once.
    Probe,
    /// All clients leave.
    Leave,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: u64,
    pub(crate) dice: Dice,
    pub(crate) events: Events,
    pub(crate) services: Services,
    pub(crate) clients: Vec<Client>,
    /// The treatment of messages by connections, if it is special.
    pub(crate) carries: HashMap<LinkNo, Carriage>,
    /// The latest link of each client.
    links: HashMap<ClientNo, LinkNo>,
    /// Dead clients of this machine that no service has noticed.
    unburied: BTreeSet<ClientNo>,
    /// Events of nodes that are stopped.
    backlogs: HashMap<usize, Vec<Event>>,
    /// The lines of the conductor.
    pub(crate) lines: Vec<Line>,
    pub(crate) faults_left: u32,
    pub(crate) faults: BTreeMap<String, u64>,
    /// When something was disturbed, for the last time.
    pub(crate) disturbed: u64,
    /// A node is killed after so many messages, for so long.
    pub(crate) dies_after: Option<(usize, u64, u64)>,
    is_out: bool,
    phase: (Phase, u64),
    /// The dials of each client when the world became calm.
    dials: Option<Vec<u64>>,
    findings: Vec<Finding>,
    messages: u64,
}

/// Plays a plan.
pub(crate) fn play(plan: Plan) -> Played {
    let lease = Duration::from_millis(plan.lease);
    let mut limits = Limits::default();
    (limits.lease_min, limits.lease_default) = (lease, lease);
    limits.tokens_reserved_ahead = 1 << 10;
    limits.requests_per_session_max = plan.requests_max;
    (limits.sessions_max, limits.sessions_per_tenant_max) = (MANY, MANY);
    (limits.partitions_max, limits.partitions_per_tenant_max) = (MANY, MANY);
    let of = (plan.nodes, plan.slots);
    let mut services = Services::new(plan.folder.clone(), of, limits, plan.bug.clone());
    services.checks = plan.checks;
    let mut world = World {
        now: 1,
        dice: Dice::new(plan.seed, 0),
        events: Events::default(),
        services,
        clients: Vec::new(),
        carries: HashMap::new(),
        links: HashMap::new(),
        unburied: BTreeSet::new(),
        backlogs: HashMap::new(),
        lines: Vec::new(),
        faults_left: plan.random_faults,
        faults: BTreeMap::new(),
        disturbed: 0,
        dies_after: None,
        is_out: false,
        phase: (Phase::Play, 0),
        dials: None,
        findings: Vec::new(),
        messages: 0,
        plan,
    };
    world.run();
    world.end()
}

impl World {
    fn run(&mut self) {
        (0..self.plan.nodes).for_each(|node| self.services.start(node, self.now));
        for traits in self.plan.clients.clone() {
            self.start_client(traits);
        }
        for (at, fault) in std::mem::take(&mut self.plan.faults) {
            self.disturbed = self.disturbed.max(at);
            self.events.put(at, Event::Fault(fault));
        }
        if self.faults_left > 0 {
            self.events.put(self.dice.roll(1000), Event::Disturb);
        }
        self.events.put(1, Event::Tick);
        while let Some((at, event)) = self.events.take() {
            self.now = self.now.max(at);
            let is_tick = matches!(event, Event::Tick);
            self.happen(event);
            if is_tick && self.is_over() {
                return;
            }
        }
    }

    fn happen(&mut self, event: Event) {
        if let Event::Down { client, .. }
        | Event::Wake { client, .. }
        | Event::Broken { client, .. }
        | Event::Dialled { client, .. } = event
        {
            let receiver = &mut self.clients[client];
            if receiver.stopped {
                receiver.backlog.push_back(event);
                return;
            } else if !receiver.alive {
                return;
            }
        }
        let node = match event {
            Event::Up { link, .. } | Event::Detached(link) => Some(self.services.links[link].node),
            Event::Answer { node, .. } => Some(node.0),
            _ => None,
        };
        if let Some(node) = node.filter(|&node| self.services.nodes[node].is_asleep) {
            return self.backlogs.entry(node).or_default().push(event);
        }
        match event {
            Event::Up { link, message } => self.receive(link, message),
            Event::Down { client, link, message } => {
                let carriage = self.carries.get(&link);
                if !carriage.is_some_and(|it| it.is_swallowed || it.is_deaf) {
                    let acts = self.clients[client].receive(link, message, self.now);
                    self.act(client, acts);
                }
            }
            Event::Broken { client, link, closed } => {
                let acts = self.clients[client].broken(link, closed, self.now);
                self.act(client, acts);
            }
            Event::Detached(link) => {
                self.services.detach(link, self.now);
                self.send_down(None);
            }
            Event::Buried(client) => _ = self.unburied.insert(client),
            Event::Wake { client, task, turn } => {
                let acts = self.clients[client].wake(task, turn, self.now);
                self.act(client, acts);
            }
            Event::Beat { client, at } => self.beat(client, at),
            Event::Dialled { client, node } => self.dialled(client, node),
            Event::Tick => self.tick(),
            Event::Disturb => self.disturb(),
            Event::Fault(fault) => self.happen_to(fault),
            Event::Continue { client, stop } => self.resume(client, stop),
            Event::Around(client) => {
                if self.clients[client].alive && !self.clients[client].stopped {
                    self.record(client, Deed::Continued);
                }
                self.disturbed = self.now;
            }
            Event::Restart(node) => {
                self.disturbed = self.now;
                self.services.start(node, self.now);
                self.look_at_outage();
            }
            Event::Awake(node) => {
                self.disturbed = self.now;
                self.services.nodes[node].is_asleep = false;
                let backlog = self.backlogs.remove(&node).unwrap_or_default();
                backlog.into_iter().for_each(|event| self.happen(event));
            }
            Event::Call { node, call } => self.call(node, call),
            Event::Answer { node, answer } => {
                self.services.answer(node, answer, self.now);
                self.send_down(None);
                self.look_at_outage();
            }
            Event::Mend => {
                self.disturbed = self.now;
                self.services.etcd.has_quorum = true;
            }
        }
    }

    fn receive(&mut self, link: LinkNo, message: Option<navlocks_wire::ToService>) {
        if self.carries.get(&link).is_some_and(|it| it.is_swallowed) {
            return;
        }
        self.messages += u64::from(message.is_some());
        if is_strange(self.plan.strangers, &mut self.dice) {
            let changed = self.services.visit(link, &mut self.dice, self.now);
            self.findings.extend(changed.map(Finding::Stranger));
        }
        self.services.receive(link, message, self.now);
        match &mut self.dies_after {
            Some((node, 0, down)) => {
                let (node, down) = (*node, *down);
                self.dies_after = None;
                self.kill_node(node, down, true);
            }
            Some((_, left, _)) => {
                *left -= 1;
                self.send_down(None);
            }
            None => self.send_down(None),
        }
    }

    /// Carries out a call to etcd, now or when it has a quorum, and sends the answer.
    fn call(&mut self, node: Incarnation, call: Call) {
        let is_lost = self.dice.once_in(ETCD_LOSSES);
        if self.services.etcd.has_quorum {
            let answer = self.services.etcd.call(node, call.clone());
            if !is_lost || matches!(call, Call::Take { .. }) {
                let at = self.now + 1 + self.dice.roll(ETCD_LATENCY);
                return self.events.put(at, Event::Answer { node, answer });
            }
        }
        self.events.put(self.now + ETCD_PAUSE, Event::Call { node, call });
    }

    fn beat(&mut self, client: ClientNo, at: u64) {
        let beating = &self.clients[client];
        if beating.alive && !beating.stopped && beating.is_due(at) {
            let acts = self.clients[client].beat(self.now);
            self.act(client, acts);
        }
    }

    fn dialled(&mut self, client: ClientNo, node: usize) {
        let local = self.clients[client].traits.local;
        let link = self.services.nodes[node].is_up.then(|| {
            let link = self.services.connect(client, node, local);
            self.links.insert(client, link);
            link
        });
        let acts = self.clients[client].dialed(link, self.now);
        self.act(client, acts);
    }

    fn tick(&mut self) {
        self.events.put(self.now + self.plan.tick, Event::Tick);
        let (calls, ended) = self.services.pass_time(self.now);
        for (node, call) in calls {
            let at = self.now + 1 + self.dice.roll(ETCD_LATENCY);
            self.events.put(at, Event::Call { node, call });
        }
        if self.services.nodes[0].is_up && !self.services.is_cluster() {
            for client in std::mem::take(&mut self.unburied) {
                self.services.bury(client, self.now);
            }
        }
        self.send_down(None);
        for node in ended {
            self.services.leave_cluster(node);
            self.broken_links(node);
            let at = self.now + self.dice.roll(self.plan.lease / 4);
            self.events.put(at, Event::Restart(node));
        }
        self.look_at_outage();
    }

    /// Records when locks have no service that grants them, and when all have one again.
    fn look_at_outage(&mut self) {
        let is_out = !self.services.is_serving();
        if is_out != std::mem::replace(&mut self.is_out, is_out) {
            self.record_service(if is_out { Deed::Stopping } else { Deed::Answered });
            self.disturbed = self.now;
        }
    }

    pub(crate) fn act(&mut self, client: ClientNo, acts: Acts) {
        for (link, message) in acts.send {
            let at = self.arrival(link, true);
            self.events.put(at, Event::Up { link, message });
        }
        for (at, task, turn) in acts.wake {
            self.events.put(at, Event::Wake { client, task, turn });
        }
        for link in acts.close {
            let at = self.arrival(link, true);
            self.events.put(at, Event::Detached(link));
        }
        if let Some((at, node)) = acts.dial {
            self.events.put(at, Event::Dialled { client, node });
        }
        if let Some(at) = acts.beat {
            self.events.put(at, Event::Beat { client, at });
        }
    }

    fn send_down(&mut self, torn: Option<usize>) {
        let torn = torn.map(|node| (node, &mut self.dice));
        for sent in self.services.send(torn, self.now) {
            let at = self.arrival(sent.link, false);
            let (client, link) = (sent.client, sent.link);
            self.messages += u64::from(matches!(sent.what, SentWhat::Message(_)));
            let event = match sent.what {
                SentWhat::Opened => Event::Down { client, link, message: None },
                SentWhat::Message(message) => Event::Down { client, link, message: Some(*message) },
                SentWhat::Closed => Event::Broken { client, link, closed: true },
            };
            self.events.put(at, event);
        }
    }

    pub(crate) fn arrival(&mut self, link: LinkNo, up: bool) -> u64 {
        // Most messages are quick, and some take no time.
        let latency = self.dice.roll(1 + self.dice.clone().roll(LATENCY));
        let carriage = self.carries.entry(link).or_default();
        let at = self.now + latency + carriage.delay;
        let last = &mut carriage.last[usize::from(up)];
        *last = at.max(*last);
        *last
    }

    fn start_client(&mut self, traits: Traits) {
        let number = self.clients.len();
        let mut client = Client::new(traits, number as u64, self.now);
        let acts = client.start(self.now);
        self.clients.push(client);
        self.act(number, acts);
    }
}

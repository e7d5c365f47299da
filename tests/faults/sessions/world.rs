//! The world: the network between clients and the service, virtual time, and the conductor.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{CONDUCTOR, Deed, History, Line, Moment, SERVICE, What, Who};
use navlocks_wire::{ToClient, ToService};

use crate::sessions::bug::Bug;
use crate::sessions::client::{Acts, Client};
use crate::sessions::service::{ClientNo, LEASE, LinkNo, Service};
use crate::simulation::Events;

const CLIENTS: u64 = 4;
const DEEDS: u32 = 14;
/// The longest delay of a message.
const LATENCY: u64 = 120;
/// The interval of the checks of connections and leases.
const BEAT: u64 = 50;
/// Longer than any effect takes.
const PATIENCE: u64 = 10 * LEASE;
/// The rest of a lease at the worst moment, less the longest pause between two attempts.
const ENDURANCE: u64 = 1200;
/// The endurance that a swallowed connection costs: a lock outlasts one of them and little else.
const HOLE: u64 = ENDURANCE - 100;

/// The outcome of a seed.
pub(crate) struct Played {
    pub(crate) history: History,
    /// True if the bug has struck.
    pub(crate) struck: bool,
}

#[derive(Debug)]
pub(super) enum Event {
    /// A message reaches the service.
    Up { link: LinkNo, message: ToService },
    /// A message reaches a client.
    Down { client: ClientNo, link: LinkNo, message: ToClient },
    /// A client notices that its connection broke.
    Broken { client: ClientNo, link: LinkNo },
    /// The service notices it.
    Detached(LinkNo),
    /// The service may notice that a client is dead.
    Buried(ClientNo),
    /// A task of a client has waited long enough; its wait may be over already.
    Wake { client: ClientNo, task: usize, turn: u32 },
    /// A client checks its connection.
    Beat(ClientNo),
    /// A client has connected.
    Dialled(ClientNo),
    /// The service checks leases.
    Tick,
    /// The conductor acts.
    Deed,
    /// A client that was stopped for this time continues.
    Continue { client: ClientNo, stop: u32 },
    /// A client has found its way around a swallowed connection.
    Around(ClientNo),
    /// The service restarts.
    Restart,
}

/// Plays this seed, with the tables of the service in this folder.
pub(crate) fn play(folder: &Path, seed: u64, bug: Option<Bug>) -> Played {
    let mut dice = Dice::new(seed, 0);
    let all_local = dice.once_in(3);
    let mut world = World {
        now: 1,
        seed,
        dice,
        all_local,
        events: Events::default(),
        service: Service::new(folder, bug),
        clients: Vec::new(),
        arrivals: HashMap::new(),
        links: HashMap::new(),
        swallowed: HashSet::new(),
        unburied: HashSet::new(),
        lines: Vec::new(),
        deeds: DEEDS,
        dies_after: None,
        unclaimed: Vec::new(),
    };
    world.start_service();
    let clients = 2 + world.dice.roll(CLIENTS);
    (0..clients).for_each(|_| world.start_client());
    world.events.put(world.dice.roll(1000), Event::Deed);
    world.events.put(BEAT, Event::Tick);
    let mut quiet = 0;
    while let Some((at, event)) = world.events.take() {
        world.now = world.now.max(at);
        world.happen(event);
        if world.deeds > 0 || !world.service.is_up() {
            quiet = world.now;
        } else if world.is_over() || world.now > quiet + 2 * PATIENCE {
            break;
        }
    }
    world.end()
}

struct World {
    now: u64,
    seed: u64,
    dice: Dice,
    all_local: bool,
    events: Events<Event>,
    service: Service,
    clients: Vec<Client>,
    /// The arrival of the last message over a link in each direction: messages keep their order.
    arrivals: HashMap<(LinkNo, bool), u64>,
    /// The latest link of each client.
    links: HashMap<ClientNo, LinkNo>,
    /// Links whose messages do not arrive any more.
    swallowed: HashSet<LinkNo>,
    /// Dead clients of this machine that no service has noticed.
    unburied: HashSet<ClientNo>,
    /// The lines of the conductor.
    lines: Vec<Line>,
    deeds: u32,
    /// The service is killed after this many messages, before it has sent all their effects.
    dies_after: Option<u64>,
    /// The clients that the latest killed service waited for.
    unclaimed: Vec<ClientNo>,
}

impl World {
    fn is_over(&self) -> bool {
        self.clients.iter().all(|client| !client.alive || (client.is_done() && !client.stopped))
    }

    fn end(mut self) -> Played {
        self.now += PATIENCE;
        let patience = Duration::from_nanos(PATIENCE);
        let endurance = if self.all_local { u64::MAX } else { ENDURANCE };
        let endurance = Duration::from_nanos(endurance);
        self.conductor_writes(What::Over { patience, endurance });
        let struck = self.service.struck;
        let clients = self.clients.into_iter().flat_map(|client| client.lines);
        Played { history: History { lines: clients.chain(self.lines).collect() }, struck }
    }

    fn happen(&mut self, event: Event) {
        if let Event::Down { client, .. }
        | Event::Wake { client, .. }
        | Event::Broken { client, .. }
        | Event::Dialled(client) = event
        {
            let whose = &mut self.clients[client];
            if whose.stopped {
                whose.backlog.push_back(event);
                return;
            } else if !whose.alive {
                return;
            }
        }
        match event {
            Event::Up { link, .. } | Event::Down { link, .. } if self.swallowed.contains(&link) => {
            }
            Event::Up { link, message } => {
                self.service.receive(link, message, self.now);
                self.after_message();
            }
            Event::Down { client, link, message } => {
                let acts = self.clients[client].hear(link, message, self.now);
                self.act(client, acts);
            }
            Event::Broken { client, link } => {
                let acts = self.clients[client].broken(link, self.now);
                self.act(client, acts);
            }
            Event::Detached(link) => {
                self.service.detach(link, self.now);
                self.send_down();
            }
            Event::Buried(client) => {
                self.unburied.insert(client);
            }
            Event::Wake { client, task, turn } => {
                let acts = self.clients[client].wake(task, turn, self.now);
                self.act(client, acts);
            }
            Event::Beat(client) => self.beat(client),
            Event::Dialled(client) => self.dialled(client),
            Event::Tick => self.tick(),
            Event::Deed => self.disturb(),
            Event::Continue { client, stop } => self.resume(client, stop),
            Event::Around(client) => {
                let who = self.clients[client].who.clone();
                if self.clients[client].alive && !self.clients[client].stopped {
                    self.deed(&who.0, Deed::Continued);
                }
            }
            Event::Restart => self.start_service(),
        }
    }

    fn beat(&mut self, client: ClientNo) {
        let whose = &mut self.clients[client];
        if !whose.alive {
            return;
        }
        self.events.put(self.now + BEAT, Event::Beat(client));
        if !whose.stopped {
            let acts = whose.beat(self.now);
            self.act(client, acts);
        }
    }

    fn dialled(&mut self, client: ClientNo) {
        let link = self.service.is_up().then(|| {
            let link = self.service.connect(client, self.clients[client].local);
            self.links.insert(client, link);
            link
        });
        let acts = self.clients[client].dialed(link, self.now);
        self.act(client, acts);
    }

    fn tick(&mut self) {
        self.events.put(self.now + BEAT, Event::Tick);
        if !self.service.is_up() {
            return;
        }
        self.service.pass_time(self.now);
        let mut dead: Vec<ClientNo> = self.unburied.drain().collect();
        dead.sort_unstable();
        for client in dead {
            self.service.bury(client, self.now);
        }
        self.send_down();
    }

    fn act(&mut self, client: ClientNo, acts: Acts) {
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
        if let Some(at) = acts.dial {
            self.events.put(at, Event::Dialled(client));
        }
    }

    /// Sends the effects of a message: all of them or, if the service is killed now, some.
    fn after_message(&mut self) {
        if self.dies_after.is_none() && self.service.wants_to_die() {
            self.dies_after = Some(self.dice.roll(4));
        }
        if self.service.would_forget() && self.has_witness(&self.claimants()) {
            self.dies_after = Some(0);
        }
        match &mut self.dies_after {
            Some(0) => self.kill_service(true),
            Some(left) => {
                *left -= 1;
                self.send_down();
            }
            None => self.send_down(),
        }
    }

    /// Returns the clients that have a lock to claim, which this service has not welcomed yet.
    fn claimants(&self) -> Vec<ClientNo> {
        let welcomed =
            |client: &Client| client.link().is_some_and(|link| self.service.is_served(link));
        let all = self.clients.iter().enumerate();
        all.filter(|(_, client)| client.holds() && !welcomed(client)).map(|it| it.0).collect()
    }

    /// Returns true if one of these clients notices when its session is forgotten: its lock
    /// outlasts any absence.
    fn has_witness(&self, claimants: &[ClientNo]) -> bool {
        let notices = |it: &Client| it.alive && !it.stopped && it.holds();
        self.all_local && claimants.iter().any(|&client| notices(&self.clients[client]))
    }

    fn send_down(&mut self) {
        self.put_sent(false);
    }

    fn put_sent(&mut self, torn: bool) {
        let dice = torn.then_some(&mut self.dice);
        for sent in self.service.send(dice) {
            let at = self.arrival(sent.link, false);
            let (client, link, message) = (sent.client, sent.link, sent.message);
            self.events.put(at, Event::Down { client, link, message });
        }
    }

    fn arrival(&mut self, link: LinkNo, up: bool) -> u64 {
        // Most messages are quick, and some take no time.
        let latency = self.dice.roll(1 + self.dice.clone().roll(LATENCY));
        let last = self.arrivals.entry((link, up)).or_default();
        *last = (*last).max(self.now + latency);
        *last
    }

    fn start_client(&mut self) {
        let local = self.all_local || self.dice.once_in(4);
        let number = self.clients.len();
        let mut client = Client::new(number, self.seed, local, self.now);
        let acts = client.start(self.now);
        self.clients.push(client);
        self.act(number, acts);
        self.events.put(self.now, Event::Beat(number));
    }

    fn start_service(&mut self) {
        let witnessed = self.has_witness(&self.unclaimed);
        self.service.start(self.now, witnessed);
        self.deed(SERVICE, Deed::Answered);
    }

    fn disturb(&mut self) {
        self.deeds -= 1;
        if self.deeds > 0 {
            // Often while the last act still has effects.
            let pause = if self.dice.once_in(2) { 300 } else { 3000 };
            self.events.put(self.now + self.dice.roll(pause), Event::Deed);
        }
        let client = self.dice.roll(self.clients.len() as u64) as usize;
        let (alive, stopped) = (self.clients[client].alive, self.clients[client].stopped);
        match self.dice.roll(10) {
            0..3 if self.service.is_up() && self.dies_after.is_none() => {
                self.dies_after = Some(self.dice.roll(6));
            }
            3 | 4 if self.service.is_up() => self.kill_service(false),
            5 if alive => self.kill(client),
            6 | 7 if alive && !stopped => self.stop(client),
            8 if alive && !stopped => self.cut(client),
            9 if alive && !stopped => self.swallow(client),
            _ => {}
        }
    }

    fn kill(&mut self, client: ClientNo) {
        let who = self.clients[client].who.clone();
        self.deed(&who.0, Deed::Killing);
        let whose = &mut self.clients[client];
        (whose.alive, whose.stopped) = (false, false);
        whose.backlog.clear();
        self.now += self.dice.roll(5);
        self.deed(&who.0, Deed::Killed);
        if let Some(&link) = self.links.get(&client) {
            let (at, local) = (self.arrival(link, true), self.clients[client].local);
            if local {
                self.events.put(at, Event::Buried(client));
            } else if self.dice.once_in(2) {
                self.events.put(at, Event::Detached(link));
            }
        }
        self.start_client();
    }

    fn stop(&mut self, client: ClientNo) {
        let who = self.clients[client].who.clone();
        self.deed(&who.0, Deed::Stopping);
        let whose = &mut self.clients[client];
        whose.stopped = true;
        whose.stops += 1;
        let longest = if self.dice.once_in(3) { 3 * LEASE } else { ENDURANCE };
        let (stop, time) = (whose.stops, self.dice.roll(longest));
        self.events.put(self.now + time, Event::Continue { client, stop });
    }

    fn resume(&mut self, client: ClientNo, stop: u32) {
        let whose = &mut self.clients[client];
        if !whose.stopped || whose.stops != stop {
            return;
        }
        whose.stopped = false;
        let backlog = std::mem::take(&mut whose.backlog);
        let who = whose.who.clone();
        let acts = whose.check_lease(self.now);
        self.act(client, acts);
        backlog.into_iter().for_each(|event| self.happen(event));
        self.deed(&who.0, Deed::Continued);
    }

    /// Breaks a connection over the network; both sides notice.
    fn cut(&mut self, client: ClientNo) {
        let Some(&link) = self.links.get(&client) else { return };
        if !self.clients[client].local && self.swallowed.insert(link) {
            let (up, down) = (self.arrival(link, true), self.arrival(link, false));
            self.events.put(up, Event::Detached(link));
            self.events.put(down, Event::Broken { client, link });
        }
    }

    /// Swallows a connection; no side notices. Another connection would be carried.
    fn swallow(&mut self, client: ClientNo) {
        let whose = &self.clients[client];
        if let (false, Some(link)) = (whose.local, whose.link()) {
            let who = whose.who.clone();
            self.swallowed.insert(link);
            self.deed(&who.0, Deed::Stopping);
            self.events.put(self.now + HOLE, Event::Around(client));
        }
    }

    fn kill_service(&mut self, torn: bool) {
        self.dies_after = None;
        self.deed(SERVICE, Deed::Killing);
        self.put_sent(torn);
        let served: Vec<(ClientNo, LinkNo)> =
            self.links.iter().map(|(client, link)| (*client, *link)).collect();
        let mut served: Vec<_> =
            served.into_iter().filter(|(_, link)| self.service.is_served(*link)).collect();
        served.sort_unstable();
        self.unclaimed = self.claimants();
        self.service.kill(self.now);
        self.deed(SERVICE, Deed::Killed);
        for (client, link) in served {
            let at = self.arrival(link, false);
            self.events.put(at, Event::Broken { client, link });
            if !self.clients[client].alive {
                self.unburied.insert(client);
            }
        }
        let longest = if self.dice.once_in(4) { 2 * LEASE } else { 800 };
        self.events.put(self.now + self.dice.roll(longest), Event::Restart);
    }

    fn deed(&mut self, whom: &str, deed: Deed) {
        self.conductor_writes(What::Deed(Who::from(whom), deed));
    }

    fn conductor_writes(&mut self, what: What) {
        let line = Line { at: Moment(self.now), who: Who::from(CONDUCTOR), what };
        self.lines.push(line);
    }
}

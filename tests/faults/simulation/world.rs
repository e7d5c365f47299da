//! The world: the network between clients and service, virtual time, and the conductor.

use std::collections::HashMap;
use std::time::Duration;

use navlocks_tests::chaos::Dice;
use navlocks_tests::check::Key;
use navlocks_tests::record::{CONDUCTOR, Deed, History, Line, Moment, SERVICE, Step, What, Who};

use crate::simulation::bug::Bug;
use crate::simulation::client::{Acts, Client, LEASE};
use crate::simulation::events::{Event, Events};
use crate::simulation::message::{ClientNo, Down};
use crate::simulation::service::{LATENCY, Service};

const CLIENTS: u64 = 4;
const DEEDS: u32 = 8;
/// How long after a lease the service waits before it ends a client.
const MARGIN: u64 = 10;
/// Longer than any effect takes.
const PATIENCE: u64 = 10 * LEASE;

/// The outcome of a seed.
pub(crate) struct Played {
    pub(crate) history: History,
    /// The request that the bug has struck, if it has.
    pub(crate) struck: Option<Key>,
}

/// Plays a seed. Returns its history.
pub(crate) fn play(seed: u64, bug: Option<Bug>) -> Played {
    let mut world = World {
        now: 1,
        seed,
        dice: Dice::new(seed, 0),
        events: Events::default(),
        service: Service::new(bug),
        clients: Vec::new(),
        arrivals: HashMap::new(),
        lines: Vec::new(),
        deeds: DEEDS,
    };
    world.deed(SERVICE, Deed::Answered);
    let clients = 1 + world.dice.roll(CLIENTS);
    (0..clients).for_each(|_| world.start_client());
    world.events.put(world.dice.roll(500), Event::Deed);
    while let Some((at, event)) = world.events.take() {
        world.now = world.now.max(at);
        world.happen(event);
    }
    world.now += PATIENCE;
    let patience = Duration::from_nanos(PATIENCE);
    world.conductor_writes(What::Over { patience, endurance: Duration::ZERO });
    let struck = world
        .service
        .struck
        .map(|(client, number)| Key { who: world.clients[client].who.clone(), number });
    let clients = world.clients.into_iter().flat_map(|client| client.lines);
    Played { history: History { lines: clients.chain(world.lines).collect() }, struck }
}

struct World {
    now: u64,
    seed: u64,
    dice: Dice,
    events: Events<Event>,
    service: Service,
    clients: Vec<Client>,
    /// The arrival of the last message in each direction: messages keep their order.
    arrivals: HashMap<(ClientNo, bool), u64>,
    /// The lines of the conductor.
    lines: Vec<Line>,
    deeds: u32,
}

impl World {
    fn happen(&mut self, event: Event) {
        // A stopped or dead client does nothing.
        if let Event::Down { client, .. } | Event::Wake { client, .. } = event {
            let whose = &mut self.clients[client];
            if whose.stopped {
                whose.backlog.push_back(event);
                return;
            } else if !whose.alive {
                return;
            }
        }
        match event {
            Event::Up { client, session, message } => {
                let told = self.service.hear(client, session, message, Moment(self.now));
                self.send_down(told);
            }
            Event::Down { client, message: Down::Back, .. } => self.connect(client),
            Event::Down { client, session, message } => {
                let acts = self.clients[client].hear(session, message, self.now);
                self.act(client, acts);
                self.reach_for_service(client);
            }
            Event::Wake { client, task, turn } => {
                let acts = self.clients[client].wake(task, turn, self.now);
                self.act(client, acts);
            }
            Event::Deed => self.disturb(),
            Event::Continue { client, stop } => self.resume(client, stop),
            Event::Lapse { client, stop } => {
                let whose = &self.clients[client];
                if whose.stopped && whose.stops == stop {
                    let told = self.service.end(client, Moment(self.now));
                    self.send_down(told);
                }
            }
            Event::Buried(client) => {
                let told = self.service.end(client, Moment(self.now));
                self.send_down(told);
            }
            Event::Restart => {
                self.service.restart();
                self.deed(SERVICE, Deed::Answered);
                (0..self.clients.len()).for_each(|client| self.reach_for_service(client));
            }
        }
    }

    fn act(&mut self, client: ClientNo, acts: Acts) {
        let session = self.clients[client].session;
        for message in acts.send {
            let at = self.arrival(client, true);
            self.events.put(at, Event::Up { client, session, message });
        }
        for (at, task, turn) in acts.wake {
            self.events.put(at, Event::Wake { client, task, turn });
        }
    }

    fn send_down(&mut self, messages: Vec<(ClientNo, Down)>) {
        for (client, message) in messages {
            if let Some(session) = self.service.session(client) {
                let at = self.arrival(client, false);
                self.events.put(at, Event::Down { client, session, message });
            }
        }
    }

    fn arrival(&mut self, client: ClientNo, up: bool) -> u64 {
        // Most messages are quick, and some take no time.
        let latency = self.dice.roll(1 + self.dice.clone().roll(LATENCY));
        let last = self.arrivals.entry((client, up)).or_default();
        *last = (*last).max(self.now + latency);
        *last
    }

    fn connect(&mut self, client: ClientNo) {
        if self.service.up && !self.clients[client].is_connected() {
            let acts = self.clients[client].connect(self.service.epoch);
            self.act(client, acts);
        }
    }

    /// Connects a client without a service, if the service is up.
    fn reach_for_service(&mut self, client: ClientNo) {
        let whose = &self.clients[client];
        if self.service.up && whose.alive && !whose.is_connected() {
            let (at, session) = (self.arrival(client, false), self.clients[client].session);
            self.events.put(at, Event::Down { client, session, message: Down::Back });
        }
    }

    fn start_client(&mut self) {
        let mut client = Client::new(self.clients.len(), self.seed);
        let (acts, number) = (client.start(self.now), client.number());
        self.clients.push(client);
        self.act(number, acts);
        self.reach_for_service(number);
    }

    fn disturb(&mut self) {
        self.deeds -= 1;
        if self.deeds > 0 {
            self.events.put(self.now + self.dice.roll(600), Event::Deed);
        }
        let client = self.dice.roll(self.clients.len() as u64) as usize;
        match self.dice.roll(8) {
            0 if self.service.up => self.kill_service(),
            1 | 2 if self.clients[client].alive => self.kill(client),
            3..6 if self.clients[client].alive && !self.clients[client].stopped => {
                self.stop(client);
            }
            _ => {}
        }
    }

    fn kill(&mut self, client: ClientNo) {
        let who = self.clients[client].who.clone();
        self.deed(&who.0, Deed::Killing);
        let whose = &mut self.clients[client];
        (whose.alive, whose.stopped) = (false, false);
        whose.backlog.clear();
        // The client may have been killed before it recorded its last message.
        let told = whose.lines.pop_if(|line| {
            !matches!(line.what, What::Request(_, Step::Asked { .. } | Step::Releasing))
        });
        if self.dice.once_in(2) {
            self.clients[client].lines.extend(told);
        }
        self.now += self.dice.roll(5);
        self.deed(&who.0, Deed::Killed);
        let at = self.arrival(client, true);
        self.events.put(at, Event::Buried(client));
        self.start_client();
    }

    fn stop(&mut self, client: ClientNo) {
        let who = self.clients[client].who.clone();
        self.deed(&who.0, Deed::Stopping);
        let whose = &mut self.clients[client];
        whose.stopped = true;
        whose.stops += 1;
        whose.lease_end = whose.lease_end.min(self.now + LEASE);
        let (stop, time) = (whose.stops, self.dice.roll(3 * LEASE));
        self.events.put(self.now + LEASE + MARGIN, Event::Lapse { client, stop });
        self.events.put(self.now + time, Event::Continue { client, stop });
    }

    fn resume(&mut self, client: ClientNo, stop: u32) {
        let whose = &mut self.clients[client];
        if !whose.stopped || whose.stops != stop {
            return;
        }
        whose.stopped = false;
        let backlog = std::mem::take(&mut whose.backlog);
        let mut acts = Acts::default();
        if whose.lease_end <= self.now {
            whose.lose_session(self.now, &mut acts);
        } else if self.service.up && whose.is_connected_to(self.service.epoch) {
            whose.lease_end = u64::MAX;
        }
        let who = whose.who.clone();
        self.act(client, acts);
        backlog.into_iter().for_each(|event| self.happen(event));
        self.reach_for_service(client);
        self.deed(&who.0, Deed::Continued);
    }

    fn kill_service(&mut self) {
        self.deed(SERVICE, Deed::Killing);
        self.service.kill();
        self.deed(SERVICE, Deed::Killed);
        for client in 0..self.clients.len() {
            let lease_end = &mut self.clients[client].lease_end;
            *lease_end = (*lease_end).min(self.now + LEASE);
            let (at, session) = (self.arrival(client, false), self.clients[client].session);
            let message = Down::Gone(self.service.epoch);
            self.events.put(at, Event::Down { client, session, message });
        }
        // Until every earlier holder must know its loss.
        let at = self.now + LEASE + MARGIN + self.dice.roll(LEASE);
        self.events.put(at, Event::Restart);
    }

    fn deed(&mut self, whom: &str, deed: Deed) {
        self.conductor_writes(What::Deed(Who::from(whom), deed));
    }

    fn conductor_writes(&mut self, what: What) {
        let line = Line { at: Moment(self.now), who: Who::from(CONDUCTOR), what };
        self.lines.push(line);
    }
}

//! The conductor: faults of processes, machines, networks and disks.

use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{CONDUCTOR, Deed, Line, Moment, SERVICE, What, Who};

use super::World;
use crate::events::Event;
use crate::services::{ClientNo, LinkNo};

/// A fault. Times are lengths.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// A process of a service is killed, and started again.
    KillNode {
        node: usize,
        down: u64,
    },
    /// The same after so many messages, before it has sent all that follows from the last one.
    KillSoon {
        node: usize,
        messages: u64,
        down: u64,
    },
    /// The disk has no room when the tables of a service grow; then it is killed.
    FillDisk {
        down: u64,
    },
    /// The machine of a node sleeps.
    StopNode {
        node: usize,
        time: u64,
    },
    /// A node gives all its slots away, ends, and is started again.
    DrainNode {
        node: usize,
    },
    /// etcd has no quorum.
    LoseQuorum {
        time: u64,
    },
    KillClient(ClientNo),
    /// The machine of a client sleeps.
    StopClient {
        client: ClientNo,
        time: u64,
    },
    /// A connection breaks, and both sides notice.
    Cut(ClientNo),
    /// A client closes its connection, and has sent no `bye`.
    CloseFrame(ClientNo),
    /// A connection carries nothing any more, and no side notices.
    Swallow(ClientNo),
    /// A connection carries nothing to the client, and breaks some time later: effects without
    /// answers.
    Deafen {
        client: ClientNo,
        time: u64,
    },
    /// All messages of a connection are delayed.
    Delay {
        client: ClientNo,
        time: u64,
    },
    /// Each connection of a client breaks at once, for a time.
    Flap {
        client: ClientNo,
        times: u64,
    },
}

impl Fault {
    /// Returns its name.
    pub(crate) fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split([' ', '(']).next().unwrap_or_default().to_owned()
    }
}

impl World {
    /// Chooses a fault by dice.
    pub(crate) fn disturb(&mut self) {
        self.faults_left -= 1;
        if self.faults_left > 0 {
            // Often while the last act still has effects.
            let pause = if self.dice.once_in(2) { 300 } else { 3000 };
            self.events.put(self.now + self.dice.roll(pause), Event::Disturb);
        }
        let is_cluster = self.services.is_cluster();
        let client = self.dice.roll(self.clients.len() as u64) as usize;
        let node = self.dice.roll(self.services.nodes.len() as u64) as usize;
        let (lease, endurance) = (self.plan.lease, self.plan.endurance);
        let long = if self.dice.once_in(4) { 2 * lease } else { lease / 5 };
        let (down, messages) = (self.dice.roll(long), self.dice.roll(6));
        let fault = match self.dice.roll(20) {
            0..4 => Fault::KillSoon { node, messages, down },
            4..6 => Fault::KillNode { node, down },
            6 => Fault::KillClient(client),
            7..9 => {
                let longest = if self.dice.once_in(3) { 3 * lease } else { endurance };
                Fault::StopClient { client, time: self.dice.roll(longest) }
            }
            9..11 => Fault::Cut(client),
            11 => Fault::CloseFrame(client),
            12..14 => Fault::Swallow(client),
            14 => Fault::Deafen { client, time: 1 + self.dice.roll(endurance / 4) },
            15 => Fault::Delay { client, time: self.dice.roll(endurance / 4) },
            16 => Fault::Flap { client, times: 1 + self.dice.roll(4) },
            17 if is_cluster => Fault::LoseQuorum { time: self.dice.roll(endurance) },
            18 if is_cluster => Fault::StopNode { node, time: self.dice.roll(lease) },
            19 if is_cluster => Fault::DrainNode { node },
            17 => Fault::FillDisk { down },
            _ => Fault::Cut(client),
        };
        self.happen_to(fault);
    }

    /// Lets a fault happen, if it can.
    pub(crate) fn happen_to(&mut self, fault: Fault) {
        let name = fault.name();
        if self.strike(fault) {
            self.disturbed = self.now;
            *self.faults.entry(name).or_default() += 1;
        }
    }

    fn strike(&mut self, fault: Fault) -> bool {
        let is_up = |world: &Self, node: usize| world.services.nodes[node].is_up;
        match fault {
            Fault::KillNode { node, down } if is_up(self, node) => {
                self.kill_node(node, down, false);
            }
            Fault::KillSoon { node, messages, down } if is_up(self, node) => {
                self.dies_after = Some((node, messages, down));
            }
            Fault::FillDisk { down } if is_up(self, 0) => {
                self.services.fill_disk();
                self.kill_node(0, down, false);
            }
            Fault::StopNode { node, time } if is_up(self, node) => {
                self.services.nodes[node].is_asleep = true;
                self.events.put(self.now + time, Event::Awake(node));
            }
            Fault::DrainNode { node } if is_up(self, node) => {
                // Others must be there to take its slots.
                let others = self.services.nodes.iter().enumerate();
                let has_others = others
                    .filter(|it| it.0 != node)
                    .any(|it| it.1.member.as_ref().is_some_and(|member| !member.drains));
                if has_others && let Some(member) = &mut self.services.nodes[node].member {
                    member.drains = true;
                }
            }
            Fault::LoseQuorum { time } if self.services.etcd.has_quorum => {
                self.services.etcd.has_quorum = false;
                self.events.put(self.now + time, Event::Mend);
            }
            Fault::KillClient(client) if self.clients[client].alive => self.kill(client),
            Fault::StopClient { client, time } if self.is_there(client) => {
                self.record(client, Deed::Stopping);
                let stopped = &mut self.clients[client];
                stopped.stopped = true;
                stopped.stops += 1;
                let stop = stopped.stops;
                self.events.put(self.now + time, Event::Continue { client, stop });
            }
            Fault::Cut(client) if self.is_there(client) => self.cut(client, 0),
            Fault::CloseFrame(client) if self.is_there(client) => self.cut(client, 40),
            Fault::Swallow(client) if self.is_there(client) => {
                let Some(link) = self.remote_link(client) else { return false };
                self.carries.entry(link).or_default().is_swallowed = true;
                self.go_around(client);
            }
            Fault::Deafen { client, time } if self.is_there(client) => {
                let Some(link) = self.remote_link(client) else { return false };
                self.carries.entry(link).or_default().is_deaf = true;
                self.go_around(client);
                let (at, closed) = (self.now + time, false);
                self.events.put(at, Event::Detached(link));
                self.events.put(at, Event::Broken { client, link, closed });
            }
            Fault::Delay { client, time } if self.is_there(client) => {
                let Some(link) = self.remote_link(client) else { return false };
                self.carries.entry(link).or_default().delay = time;
                self.go_around(client);
            }
            Fault::Flap { client, times } if self.is_there(client) => {
                self.cut(client, 0);
                for time in 1..times {
                    self.events.put(self.now + 150 * time, Event::Fault(Fault::Cut(client)));
                }
            }
            _ => return false,
        }
        true
    }

    fn is_there(&self, client: ClientNo) -> bool {
        self.clients[client].alive && !self.clients[client].stopped
    }

    /// Counts a connection that carries nothing as an absence that a lock outlasts, and no more.
    fn go_around(&mut self, client: ClientNo) {
        self.record(client, Deed::Stopping);
        let hole = self.plan.endurance - 100;
        self.events.put(self.now + hole, Event::Around(client));
    }

    pub(crate) fn record(&mut self, client: ClientNo, deed: Deed) {
        let who = self.clients[client].who.clone();
        self.write(What::Deed(who, deed));
    }

    pub(crate) fn record_service(&mut self, deed: Deed) {
        self.write(What::Deed(Who::from(SERVICE), deed));
    }

    pub(crate) fn write(&mut self, what: What) {
        self.lines.push(Line { at: Moment(self.now), who: Who::from(CONDUCTOR), what });
    }

    /// Kills a client; another one takes its place.
    pub(crate) fn kill(&mut self, client: ClientNo) {
        self.record(client, Deed::Killing);
        let killed = &mut self.clients[client];
        (killed.alive, killed.stopped) = (false, false);
        killed.backlog.clear();
        let mut traits = killed.traits.clone();
        self.now += self.dice.roll(5);
        self.record(client, Deed::Killed);
        if let Some(&link) = self.links.get(&client) {
            let at = self.arrival(link, true);
            if traits.local {
                self.events.put(at, Event::Buried(client));
            } else if self.dice.once_in(2) {
                self.events.put(at, Event::Detached(link));
            }
        }
        traits.name = format!("c{}", self.clients.len());
        self.start_client(traits);
    }

    pub(super) fn resume(&mut self, client: ClientNo, stop: u32) {
        let resumed = &mut self.clients[client];
        if !resumed.stopped || resumed.stops != stop {
            return;
        }
        self.disturbed = self.now;
        resumed.stopped = false;
        let backlog = std::mem::take(&mut resumed.backlog);
        let acts = resumed.check_deadlines(self.now);
        self.act(client, acts);
        backlog.into_iter().for_each(|event| self.happen(event));
        let acts = self.clients[client].beat(self.now);
        self.act(client, acts);
        self.record(client, Deed::Continued);
    }

    /// Returns the connection of a client over a network.
    pub(crate) fn remote_link(&self, client: ClientNo) -> Option<LinkNo> {
        let there = &self.clients[client];
        there.link().filter(|_| !there.traits.local)
    }

    /// Breaks a connection over the network. Both sides notice, the client so much later.
    pub(crate) fn cut(&mut self, client: ClientNo, later: u64) {
        let Some(&link) = self.links.get(&client) else { return };
        if self.clients[client].traits.local {
            return;
        }
        let carriage = self.carries.entry(link).or_default();
        if !std::mem::replace(&mut carriage.is_swallowed, true) {
            let (up, down) = (self.arrival(link, true), self.arrival(link, false) + later);
            self.events.put(up, Event::Detached(link));
            self.events.put(down, Event::Broken { client, link, closed: false });
        }
    }

    pub(crate) fn kill_node(&mut self, node: usize, down: u64, torn: bool) {
        self.dies_after = None;
        self.record_service(Deed::Killing);
        (self.is_out, self.disturbed) = (true, self.now);
        if torn {
            self.send_down(Some(node));
        }
        self.services.kill(node);
        self.record_service(Deed::Killed);
        self.broken_links(node);
        self.backlogs.remove(&node);
        self.events.put(self.now + down, Event::Restart(node));
    }

    /// Lets clients notice that a process is gone.
    pub(super) fn broken_links(&mut self, node: usize) {
        let mut served: Vec<(ClientNo, LinkNo)> =
            self.links.iter().map(|(client, link)| (*client, *link)).collect();
        served.retain(|(_, link)| self.services.is_of(*link, node));
        served.sort_unstable();
        for (client, link) in served {
            let at = self.arrival(link, false);
            self.events.put(at, Event::Broken { client, link, closed: false });
            if !self.clients[client].alive {
                self.unburied.insert(client);
            }
        }
    }
}

/// The treatment of messages by a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carriage {
    /// It carries nothing.
    pub(crate) is_swallowed: bool,
    /// It carries nothing to the client.
    pub(crate) is_deaf: bool,
    pub(crate) delay: u64,
    /// The arrival of the last message in each direction: messages keep their order.
    pub(crate) last: [u64; 2],
}

/// Returns true if a world has a stranger at this message.
pub(crate) fn is_strange(one_in: u64, dice: &mut Dice) -> bool {
    one_in > 0 && dice.once_in(one_in)
}

//! The connections of services: messages in, frames out, and their ends.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use navlocks_server::cluster::Registry as _;
use navlocks_server::hub::{Frame, Hub, Outbox, Peer};
use navlocks_tests::chaos::Dice;
use navlocks_wire::{self as wire, Fault, FaultCode, Hello, ToClient, ToService};

use super::{ClientNo, Link, LinkNo, Mark, Node, Sent, SentWhat, Services, address, lock};
use crate::bug::Bug;

/// The longest time for a hello to wait at a node.
const PARKED_MAX: u64 = 10_000;

impl Services {
    /// Connects a client to a node that runs.
    pub(crate) fn connect(&mut self, client: ClientNo, node: usize, local: bool) -> LinkNo {
        let (link, life) = (self.links.len(), self.nodes[node].life);
        let peer = if local { Peer::local() } else { Peer::remote("", "") };
        let waker = Waker::from(Arc::new(Mark(link, self.woken.clone())));
        let outbox = Outbox::new(1 << 20);
        outbox.register(&waker);
        self.links.push(Link {
            client,
            node,
            carrier: None,
            lives: (life, life),
            peer: Rc::new(peer),
            outbox,
            session: None,
            slot: 0,
            is_over: false,
            waker,
        });
        link
    }

    /// Returns true if the service at the other end still runs.
    pub(crate) fn is_served(&self, link: LinkNo) -> bool {
        let Link { node, carrier, lives, .. } = &self.links[link];
        let lives_on = |node: &Node, life| node.is_up && node.life == life;
        lives_on(&self.nodes[*node], lives.0)
            && carrier.is_none_or(|carrier| lives_on(&self.nodes[carrier], lives.1))
    }

    /// Returns true if a connection is to this node or through it.
    pub(crate) fn is_of(&self, link: LinkNo, node: usize) -> bool {
        let Link { node: at, carrier, lives, .. } = self.links[link];
        let life = self.nodes[node].life;
        (at == node && lives.0 == life) || (carrier == Some(node) && lives.1 == life)
    }

    /// Returns true if the client of a connection is claiming its session.
    pub(crate) fn awaits_claim(&self, link: LinkNo) -> bool {
        self.spoiler.awaits_claim(self.links[link].client)
    }

    /// Returns the hub of a connection.
    pub(crate) fn hub(&mut self, link: LinkNo) -> Option<&mut Hub> {
        let Link { node, slot, .. } = self.links[link];
        self.nodes[node].hubs.get_mut(&slot)
    }

    /// Takes a message, or a handshake.
    pub(crate) fn receive(&mut self, link: LinkNo, message: Option<ToService>, now: u64) {
        if !self.is_served(link) || self.links[link].is_over {
            return;
        }
        if let Some(member) = &self.nodes[self.links[link].node].member {
            member.belief.now.set(now);
        }
        let client = self.links[link].client;
        let Some(message) = message else {
            return self.next.push(Sent { link, client, what: SentWhat::Opened });
        };
        let is_claimed = message == ToService::Claimed;
        for message in self.spoiler.distort(client, message) {
            match message {
                Some(message) => self.pass(link, message, now),
                None => self.close(link, now),
            }
        }
        if is_claimed && self.nodes[0].life > 1 && self.seeded.strikes_once(Bug::GrantEarly) {
            self.end_unclaimed(now);
        }
    }

    fn pass(&mut self, link: LinkNo, message: ToService, now: u64) {
        let at = self.at(now);
        let taken = match (self.links[link].session, message) {
            (Some((number, _)), message) => {
                if message == ToService::Bye {
                    self.leaving.push(link);
                }
                match self.hub(link) {
                    Some(hub) => {
                        let taken = hub.message(number, message, at);
                        while hub.go_on(at) {}
                        taken
                    }
                    None => Ok(()),
                }
            }
            (None, ToService::Hello(hello)) => self.hello(link, hello, now, now),
            (None, message) => panic!("{message:?} came before the hello"),
        };
        if let Err(fault) = taken {
            self.links[link].outbox.end(fault);
        }
    }

    /// Takes a hello that waits since then, parks it, or leads its client on.
    fn hello(&mut self, link: LinkNo, hello: Hello, since: u64, now: u64) -> Result<(), Fault> {
        let (slot, at, node) =
            (self.slot_of(&hello.partition), self.at(now), self.links[link].node);
        if let Some(member) = &self.nodes[node].member
            && !member.owned.get(&slot).is_some_and(|owned| owned.may_send())
        {
            let owner = self.etcd.slots[slot as usize].owner.map(|owner| owner.0);
            let owner = owner.filter(|owner| *owner != node && self.etcd.has_quorum);
            if let Some(owner) = owner {
                let to = address(owner);
                let is_near = |node: &String| node.trim_end_matches('/') != to;
                if !hello.carry && hello.unreachable.iter().all(is_near) {
                    return Err(Fault::moved(Some(to)));
                }
                if self.nodes[owner].is_up && self.links[link].carrier.is_none() {
                    let life = self.nodes[owner].life;
                    let carried = &mut self.links[link];
                    carried.lives = (life, carried.lives.0);
                    (carried.node, carried.carrier) = (owner, Some(node));
                    return self.hello(link, hello, since, now);
                }
            }
            if now > since + PARKED_MAX {
                return Err(Fault::moved(None));
            }
            self.parked.push((link, hello, since));
            return Ok(());
        }
        let Self { links, nodes, .. } = self;
        let Some(hub) = nodes[node].hubs.get_mut(&slot) else { return Ok(()) };
        let joined = &mut links[link];
        joined.slot = slot;
        joined.session = Some(hub.hello(&joined.peer, &hello, &joined.outbox, at)?);
        Ok(())
    }

    pub(super) fn look_at_parked(&mut self, now: u64) {
        for (link, hello, since) in std::mem::take(&mut self.parked) {
            if !self.is_served(link) || self.links[link].is_over {
                continue;
            }
            if let Err(fault) = self.hello(link, hello, since, now) {
                self.links[link].outbox.end(fault);
            }
        }
    }

    /// Ends a connection without a word.
    fn close(&mut self, link: LinkNo, now: u64) {
        let (at, client) = (self.at(now), self.links[link].client);
        if let Some((number, connection)) = self.links[link].session
            && let Some(hub) = self.hub(link)
        {
            hub.leave(number, connection, at);
        }
        self.links[link].is_over = true;
        self.next.push(Sent { link, client, what: SentWhat::Closed });
    }

    /// Notes that a connection broke, or that the client has closed it.
    pub(crate) fn detach(&mut self, link: LinkNo, now: u64) {
        let (at, is_bye) = (self.at(now), self.seeded.is(Bug::CloseIsBye));
        if self.is_served(link)
            && let Some((number, connection)) = self.links[link].session
            && let Some(hub) = self.hub(link)
        {
            match is_bye {
                true => hub.leave(number, connection, at),
                false => _ = hub.detach(number, connection, at),
            }
            if is_bye {
                self.seeded.strikes(Bug::CloseIsBye);
            }
        }
        self.links[link].is_over = true;
    }

    /// Notes that a client of this machine is gone, in this service or its successor.
    pub(crate) fn bury(&mut self, client: ClientNo, now: u64) {
        let at = self.at(now);
        let Node { life, hubs, .. } = &mut self.nodes[0];
        let Some(hub) = hubs.get_mut(&0) else { return };
        // A service uses the numbers of ended sessions again: the latest connection counts.
        let mut seen = BTreeSet::new();
        for link in self.links.iter().rev() {
            let Some((number, connection)) = link.session else { continue };
            if seen.insert(number) && link.client == client {
                if link.lives.0 == *life {
                    hub.leave(number, connection, at);
                }
                // Its claim may have broken off.
                hub.end_unclaimed(number, at);
            }
        }
    }

    /// Ends the connections of clients that have left, once that is durable.
    fn close_left(&mut self) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain(|&link| {
            let Link { client, node, slot, .. } = self.links[link];
            let member = self.nodes[node].member.as_ref();
            let is_durable = member.is_none_or(|it| {
                // The client takes leave of the next owner.
                it.owned.get(&slot).is_none_or(|owned| owned.is_flushed())
            });
            if is_durable && self.is_served(link) && !self.links[link].is_over {
                self.next.push(Sent { link, client, what: SentWhat::Closed });
                self.links[link].is_over = true;
            }
            !is_durable
        });
        self.leaving = leaving;
    }

    /// Takes the messages to send. Of a node that is about to be killed, the dice choose how many.
    pub(crate) fn send(&mut self, mut torn: Option<(usize, &mut Dice)>, now: u64) -> Vec<Sent> {
        self.close_left();
        let mut all = std::mem::take(&mut self.next);
        loop {
            let Some(link) = lock(&self.woken).pop_first() else { return all };
            if !self.is_served(link) || self.links[link].is_over {
                continue;
            }
            let is_torn = torn.as_ref().is_some_and(|(node, _)| self.is_of(link, *node));
            let Link { client, outbox, waker, session, .. } = &mut self.links[link];
            let (client, session) = (*client, *session);
            let mut texts = Vec::new();
            if outbox.may_send(waker) {
                let mut frames = VecDeque::new();
                outbox.take(&mut frames);
                outbox.written_all();
                if let Some((_, dice)) = torn.as_mut().filter(|_| is_torn) {
                    frames.truncate(dice.roll(1 + frames.len() as u64) as usize);
                }
                texts.extend(frames.iter().map(Frame::text));
                outbox.register(waker);
            }
            let messages: Vec<ToClient> = texts
                .iter()
                .map(|text| wire::read(text).expect("a service writes messages"))
                .collect();
            let ending = outbox.ending();
            let messages = self.spoiler.spoil(client, messages);
            let messages = messages.into_iter().chain(ending.clone().map(ToClient::Error));
            let sent = |message| Sent { link, client, what: SentWhat::Message(Box::new(message)) };
            all.extend(messages.map(sent));
            if let Some(fault) = ending {
                let at = self.at(now);
                if let (Some((number, connection)), Some(hub)) = (session, self.hub(link)) {
                    match fault.code {
                        FaultCode::Moved => _ = hub.detach(number, connection, at),
                        _ => hub.leave(number, connection, at),
                    }
                }
                self.links[link].is_over = true;
                all.push(Sent { link, client, what: SentWhat::Closed });
            }
        }
    }
}

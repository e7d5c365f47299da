//! The driver of a client: carries out the commands of its machine, and passes it what arrives.

use navlocks_client::{Command, DialFailure, Machine, Moment as MachineMoment, Url};
use navlocks_wire::{self as wire, ToClient};

use super::{Acts, Client, at};
use crate::services::LinkNo;

/// The letters of secrets.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Client {
    /// Carries out the commands of the machine, and handles its events.
    pub(super) fn drive(&mut self, now: u64, acts: &mut Acts) {
        loop {
            if let Some(event) = self.machine.poll_event() {
                self.handle(event, now, acts);
                continue;
            }
            let Some(command) = self.machine.poll_command() else { break };
            match command {
                Command::Dial(url) => {
                    self.is_dialing = true;
                    self.tally.dials += 1;
                    acts.dial = Some((now + self.dice.roll(60), node_of(&url)));
                }
                Command::Open => acts.send.extend(self.link.map(|link| (link, None))),
                Command::Send(text) => {
                    let message = wire::read(&text).expect("a client writes messages");
                    acts.send.extend(self.link.map(|link| (link, Some(message))));
                }
                Command::Present(_) => self.machine.present(),
                Command::Drop => {
                    self.is_dialing = false;
                    acts.close.extend(self.link.take());
                }
                Command::Close | Command::Drain => {
                    acts.close.extend(self.link.take());
                    self.machine.broken(at(now));
                }
                Command::StartService => panic!("clients here start no service"),
            }
        }
        let has_lease = self.machine.has_lease();
        self.sessions += u32::from(self.had_lease && !has_lease);
        self.had_lease = has_lease;
        let deadline = self.machine.deadline();
        let next = deadline.saturating_since(at(now)).as_millis();
        let next = now.saturating_add(u64::try_from(next).unwrap_or(u64::MAX)).saturating_add(1);
        if deadline != MachineMoment::NEVER && (next < self.beat || self.beat <= now) {
            self.beat = next;
            acts.beat = Some(next);
        }
    }

    /// Gives the machine an input, and drives it on.
    pub(super) fn input(
        &mut self,
        now: u64,
        input: impl FnOnce(&mut Machine<usize>, MachineMoment),
    ) -> Acts {
        let mut acts = Acts::default();
        input(&mut self.machine, at(now));
        self.drive(now, &mut acts);
        acts
    }

    /// Returns true if this is the latest moment at which the machine is to be called.
    pub(crate) fn is_due(&self, at: u64) -> bool {
        self.beat == at
    }

    /// Lets the moments come that are over.
    pub(crate) fn beat(&mut self, now: u64) -> Acts {
        let is_due = at(now) >= self.machine.deadline();
        self.input(now, |machine, now| {
            if is_due {
                machine.elapsed(now)
            }
        })
    }

    /// Finds that the lease is over, before anything else happens after a stop.
    pub(crate) fn check_deadlines(&mut self, now: u64) -> Acts {
        self.input(now, Machine::check_deadlines)
    }

    /// Connects over this link, or finds that no service listens.
    pub(crate) fn dialed(&mut self, link: Option<LinkNo>, now: u64) -> Acts {
        if !std::mem::take(&mut self.is_dialing) {
            return Acts { close: link.into_iter().collect(), ..Acts::default() };
        }
        self.link = link;
        match link {
            Some(_) => {
                let letter = |_| LETTERS[self.dice.roll(64) as usize] as char;
                let secret = (0..21).map(letter).chain(['A']).collect();
                self.input(now, |machine, now| machine.dialed(true, Some(secret), now))
            }
            None => self.input(now, |machine, now| machine.dial_failed(DialFailure::Absent, now)),
        }
    }

    pub(crate) fn broken(&mut self, link: LinkNo, closed: bool, now: u64) -> Acts {
        if self.link != Some(link) {
            return Acts::default();
        }
        self.link = None;
        self.input(now, if closed { Machine::closed } else { Machine::broken })
    }

    /// Takes a message, or the answer to the handshake.
    pub(crate) fn receive(&mut self, link: LinkNo, message: Option<ToClient>, now: u64) -> Acts {
        if self.link != Some(link) {
            return Acts::default();
        }
        let Some(message) = message else { return self.input(now, Machine::opened) };
        if let ToClient::Welcome(welcome) = &message {
            self.sessions += u32::from(!welcome.resumed);
        }
        self.input(now, |machine, now| machine.received(message, now))
    }
}

/// Returns the number of the node at an address; a lone service has the number 0.
fn node_of(url: &Url) -> usize {
    match url {
        Url::Unix(_) => 0,
        Url::Web { host, .. } => host[1..].parse().expect("a node's number"),
    }
}

//! The driver's side of a session: what it says at the start of a connection, and what the end of one means.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::entry::{Over, Stage};
use super::lease::{Instant, Lease};
use super::session::{LinkState, Session, State};
use crate::error::Loss;
use crate::wire::{self, Hello, Resume, ToService, Welcome};

impl Session {
    /// Ends the belief in all locks when the lease is over. True if it just was.
    pub(super) fn check_lease(&self) -> bool {
        let believed = Instant::from_raw(self.believed.load(Ordering::Acquire));
        if believed == Instant::NEVER || Instant::now() < believed {
            return false;
        }
        self.input(|state| {
            // Whoever came first ended it, or a renewal did come in time.
            let over = state.lease.as_ref().is_some_and(|lease| Instant::now() >= lease.until());
            if over {
                self.lapse(state, Loss::LeaseLapsed);
            }
            over
        })
    }

    /// The session is over without its users' doing: what they hold is lost, and what they wait for waits for the next session.
    pub(super) fn lapse(&self, state: &mut State, loss: Loss) {
        state.secret = None;
        state.lease = None;
        self.believed.store(Instant::NEVER.raw(), Ordering::Release);
        let State { entries, wakes, .. } = state;
        let lost =
            entries.values_mut().filter_map(|entry| entry.lapse(loss, wakes).then_some(())).count();
        self.losses.fetch_add(lost as u64, Ordering::Release);
    }

    pub(super) fn count_loss(&self) {
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// The first message over a new connection.
    pub(super) fn hello(&self) -> Hello {
        let state = self.lock();
        let clients = state.clients.iter();
        let resume = state.secret.clone().map(|secret| Resume {
            session: state.number,
            secret,
            clients: clients.map(|(&number, client)| client.open(number)).collect(),
            alive: state.alive(),
        });
        let lease = self.options.lease;
        Hello {
            version: wire::VERSION,
            partition: self.options.partition.clone(),
            lease_ms: lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
            resume,
        }
    }

    /// The service has answered the hello, which was said at `said`: everything that it must know is said again.
    pub(super) fn welcome(&self, welcome: Welcome, said: Instant) {
        self.input(|state| {
            let Welcome { session, secret, lease_ms, resumed, .. } = welcome;
            state.number = session;
            state.secret = lease_ms.is_some().then_some(secret);
            let length = lease_ms.map(Duration::from_millis);
            state.lease = length.map(|length| Lease::new(length, said));
            if state.link != LinkState::Leaving {
                state.link = LinkState::Up;
            }
            state.say_all(resumed);
        });
    }

    /// The connection broke.
    pub(super) fn link_broken(&self) {
        self.input(|state| {
            state.outbox.clear();
            if state.link == LinkState::Up {
                state.link = LinkState::Down;
            }
            // Over a Unix socket a connection ends with its service, and so does all that the service kept.
            if state.secret.is_none() {
                self.lapse(state, Loss::ServiceGone);
            }
        });
    }

    /// What waits for the service has waited long enough, or for ever in vain.
    pub(super) fn give_up(&self, link: LinkState) {
        self.input(|state| {
            state.link = link;
            let State { entries, wakes, asked, link, .. } = state;
            let error = link.error();
            for entry in entries.values_mut() {
                if let (Stage::Pending(_), Some(error)) = (&entry.stage, &error) {
                    entry.end(Over::Failed(error.clone()), wakes);
                }
            }
            for asked in asked.values_mut() {
                asked.wake(wakes);
            }
        });
    }

    /// Nothing will be said any more.
    pub(super) fn gone(&self) {
        self.input(|state| {
            self.lapse(state, Loss::ServiceGone);
            let leavers = std::mem::take(&mut state.leavers);
            state.wakes.add_all(leavers);
        });
        let refused = self.input(|state| matches!(state.link, LinkState::Refused(_)));
        if !refused {
            self.give_up(LinkState::Gone);
        }
    }

    /// The next thing to say; with nothing to say, `waker` is woken when there is.
    pub(super) fn next_said(&self, waker: &Waker) -> Option<Utf8Bytes> {
        let mut state = self.lock();
        let next = state.outbox.pop_front();
        if next.is_none() && !state.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
        next
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.lock().link == LinkState::Leaving
    }

    pub(super) fn believed_until(&self) -> Instant {
        Instant::from_raw(self.believed.load(Ordering::Acquire))
    }
}

impl State {
    /// Says all that the service does not know at the start of a connection.
    fn say_all(&mut self, resumed: bool) {
        self.outbox.clear();
        let mut said = Vec::new();
        if !resumed {
            let others = self.clients.iter().filter(|&(&number, _)| number != 0);
            said.extend(others.map(|(&number, client)| ToService::Open(client.open(number))));
            if !self.clients.contains_key(&0) {
                said.push(ToService::Close(0));
            }
        }
        for (&number, client) in &self.clients {
            said.extend((0..client.inboxes.len()).map(|_| ToService::Listen(number)));
        }
        for number in self.alive() {
            let Some(entry) = self.entries.get(&number) else { continue };
            if let Stage::Pending(request) = &entry.stage {
                said.push(ToService::Request(request.clone()));
            }
            if entry.watches_contention() {
                said.push(ToService::Contention(number));
            }
        }
        said.extend(self.asked.values().map(|asked| ToService::Ask(asked.ask.clone())));
        if self.link == LinkState::Leaving {
            said.push(ToService::Bye);
        }
        self.outbox.extend(said.iter().map(|message| wire::write(message).into()));
    }

    /// The requests that are still wanted, in the order in which they were made.
    fn alive(&self) -> Vec<u64> {
        let alive = self.entries.iter().filter(|(_, entry)| entry.is_alive());
        let mut numbers: Vec<u64> = alive.map(|(&number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }
}

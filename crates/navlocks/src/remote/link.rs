//! The driver's side of a session: what it says at the start of a connection, and what the end of one means.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::entry::{Over, Stage};
use super::lease::{Instant, Lease};
use super::session::{LinkState, Session, Standing, State};
use crate::error::{Loss, Refusal, RequestErrorKind};
use navlocks_wire::{self as wire, Hello, Resume, ToService, Welcome};

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
        // What else comes over the connection belongs to a session that is no more, whoever was the first to find out.
        if state.link == LinkState::Up {
            state.link = LinkState::Down;
        }
        let State { entries, wakes, driver, .. } = state;
        wakes.add_all(driver.take());
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
            epoch: 0,
            clients: clients.map(|(&number, client)| client.open(number)).collect(),
            alive: state.alive(),
        });
        let lease = self.options.lease;
        Hello {
            version: wire::VERSION,
            partition: self.options.partition.clone(),
            parent: self.options.parent,
            lease_ms: lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
            resume,
        }
    }

    /// The service has answered this hello, which was said at `said`: everything that it must know is said again.
    pub(super) fn welcome(&self, welcome: Welcome, hello: &Hello, said: Instant) {
        self.input(|state| {
            let Welcome { session, secret, lease_ms, resumed, limits, .. } = welcome;
            let asked = hello.resume.as_ref().filter(|resume| resume.session == session);
            let resumed = asked.filter(|_| resumed);
            if resumed.is_none() {
                self.lapse(state, Loss::ServiceGone);
            }
            state.number = session;
            state.message_bytes_max = limits.message_bytes_max;
            state.secret = Some(secret).filter(|_| lease_ms.is_some());
            let length = lease_ms.map(Duration::from_millis);
            state.lease = length.map(|length| Lease::new(length, said));
            if state.link != LinkState::Leaving {
                state.link = LinkState::Up;
            }
            state.outbox.clear();
            state.say_all(resumed);
            state.begin_silence();
        });
    }

    /// The connection broke.
    pub(super) fn link_broken(&self) {
        self.input(|state| {
            state.outbox.clear();
            state.drop_descriptor();
            state.silence = None;
            if state.link == LinkState::Up {
                state.link = LinkState::Down;
            }
            // Over a Unix socket a connection ends with its service, and so does all that the service kept.
            if state.secret.is_none() {
                self.lapse(state, Loss::ServiceGone);
            }
        });
    }

    /// Until when a service that has been out of reach since then is waited for.
    pub(super) fn patient_until(&self, since: Instant) -> Instant {
        match self.options.patience {
            Some(patience) if self.lock().link == LinkState::Down => since.saturating_add(patience),
            _ => Instant::NEVER,
        }
    }

    /// Ends the wait of all who wait for a service that has been out of reach since then, if that was long enough.
    pub(super) fn check_patience(&self, since: Instant) {
        let until = self.patient_until(since);
        if until != Instant::NEVER && Instant::now() >= until {
            self.input(|state| {
                // Meanwhile somebody may have taken leave.
                if state.link == LinkState::Down {
                    state.give_up(LinkState::Hopeless);
                }
            });
        }
    }

    /// The service wants nothing to do with this client.
    pub(super) fn refused(&self, refusal: Refusal) {
        self.input(|state| state.give_up(LinkState::Refused(refusal)));
    }

    /// Nothing will be said any more. All who wait for anything hear of it in one step.
    pub(super) fn gone(&self) {
        self.input(|state| {
            self.lapse(state, Loss::ServiceGone);
            if !state.link.is_over() {
                state.give_up(LinkState::Gone);
            }
            let leavers = std::mem::take(&mut state.leavers);
            state.wakes.add_all(leavers);
        });
    }

    /// Whether the session over this connection goes on.
    pub(super) fn standing(&self) -> Standing {
        match self.lock().link {
            LinkState::Up => Standing::Carried,
            LinkState::Leaving => Standing::Leaving,
            _ => Standing::Over,
        }
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.lock().secret.is_some()
    }

    /// The next thing to say; with nothing to say, `waker` is woken when there is.
    pub(super) fn next_said(&self, waker: &Waker) -> Option<Utf8Bytes> {
        let mut state = self.lock();
        let next = state.outbox.pop_front();
        if next.is_none() {
            state.register(waker);
        }
        next
    }

    /// The driver is woken when there is something to say, or nothing to carry any more.
    pub(super) fn register(&self, waker: &Waker) {
        self.lock().register(waker);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.lock().link == LinkState::Leaving
    }

    /// When the connection counts as dead although it is open, unless the service answers before.
    pub(super) fn silent_from(&self) -> Instant {
        self.lock().lease.as_ref().map_or(Instant::NEVER, Lease::silent_from)
    }

    pub(super) fn believed_until(&self) -> Instant {
        Instant::from_raw(self.believed.load(Ordering::Acquire))
    }
}

impl State {
    fn register(&mut self, waker: &Waker) {
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    /// What waits for the service has waited long enough, or for ever in vain.
    fn give_up(&mut self, link: LinkState) {
        self.link = link;
        let Self { entries, wakes, asked, link, .. } = self;
        let error = link.error();
        for entry in entries.values_mut() {
            if let (Stage::Pending, Some(error)) = (&entry.stage, &error) {
                entry.end(Over::Failed(error.clone()), wakes);
            }
        }
        for asked in asked.values_mut() {
            asked.wake(wakes);
        }
        if self.link.is_over() {
            self.wake_streams();
        }
    }

    /// Says all that the service does not know at the start of a connection. Of a session that goes on it knows what the hello
    /// said, and what came to an end since then it takes for alive.
    fn say_all(&mut self, resumed: Option<&Resume>) {
        let opened: Vec<u64> = match resumed {
            Some(resume) => resume.clients.iter().map(|open| open.client).collect(),
            // Every hello opens it.
            None => vec![0],
        };
        let mut said = Vec::new();
        let unknown =
            self.clients.iter().filter(|&(number, _)| opened.binary_search(number).is_err());
        said.extend(unknown.map(|(&number, client)| ToService::Open(client.open(number))));
        let ended = opened.iter().filter(|number| !self.clients.contains_key(number));
        said.extend(ended.map(|&number| ToService::Close(number)));
        let alive = self.alive();
        let over = resumed.iter().flat_map(|resume| &resume.alive);
        let over = over.filter(|number| alive.binary_search(number).is_err());
        said.extend(over.map(|&number| ToService::Abort(number)));
        for (&number, client) in &mut self.clients {
            if client.inboxes.restart() {
                said.push(ToService::Listen(number));
            } else if std::mem::take(&mut client.subscribed) && resumed.is_some() {
                said.push(ToService::Unlisten(number));
            }
        }
        for message in said {
            self.say(&message);
        }
        for number in alive {
            self.request_again(number);
        }
        self.ask_again();
        // Somebody took leave meanwhile.
        if self.link == LinkState::Leaving {
            self.outbox.push_back(wire::write(&ToService::Bye).into());
        }
    }

    /// Says a request again that was not answered, and what its owner wants to know of it. What is too long for this service fails.
    fn request_again(&mut self, number: u64) {
        let Some(entry) = self.entries.get(&number) else { return };
        let contention = entry.watches_contention();
        if let Stage::Pending = entry.stage {
            let text = wire::write(&ToService::Request(entry.request.clone()));
            match self.fits(&text) {
                Ok(()) => self.say_text(text),
                Err(fault) => {
                    let error = RequestErrorKind::Refused(fault.into());
                    self.not_granted(number, Over::Failed(error));
                }
            }
        }
        if contention {
            self.say(&ToService::Contention(number));
        }
    }

    /// The requests that are still wanted, in the order in which they were made.
    fn alive(&self) -> Vec<u64> {
        let alive = self.entries.iter().filter(|(_, entry)| entry.is_alive());
        let mut numbers: Vec<u64> = alive.map(|(&number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::super::connect::Options;
    use super::super::url::Url;
    use super::*;

    #[test]
    fn whoever_takes_leave_when_patience_ends_has_left() {
        let session = Session::new(Options {
            url: Url::Unix("/nowhere".into()),
            partition: String::new(),
            token: None,
            lease: None,
            patience: Some(Duration::ZERO),
            answers_within: None,
            keep_descriptor: false,
            parent: None,
            own_thread: false,
            roots: Vec::new(),
        });
        let long_ago = Instant::from_raw(0);
        session.leave();
        session.check_patience(long_ago);
        assert!(session.is_leaving());
    }
}

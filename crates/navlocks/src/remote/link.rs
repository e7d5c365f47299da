//! The driver's side of a session: the beginning of a connection, and the effects of its end.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::clock;
use super::entry::Over;
use super::presence::Presence;
use super::secret;
use super::session::{LinkState, Session, Standing, State};
use crate::error::{Loss, Refusal};
use navlocks_client::{KnownSession, Moment, Stage};
use navlocks_wire::{self as wire, Fault, Hello, Welcome};

impl Session {
    /// Ends all locks when the lease is over. Returns true if it just was.
    pub(super) fn check_lease(&self) -> bool {
        if !clock::has_come(self.lease_deadline()) {
            return false;
        }
        self.input(|state| {
            // Another task may have ended it, or a renewal may have come in time.
            let over = clock::has_come(state.known.lease_deadline());
            if over {
                self.lapse(state, Loss::LeaseLapsed);
            }
            over
        })
    }

    /// Ends the session: held locks are lost, and pending requests wait for the next session.
    pub(super) fn lapse(&self, state: &mut State, loss: Loss) {
        state.known.lapse();
        state.presence = None;
        // Later messages of the connection belong to a session that is over.
        state.link_down();
        let State { entries, wakes, driver, .. } = state;
        wakes.add_all(driver.take());
        let lost = entries
            .values_mut()
            .filter_map(|entry| entry.lapse(&loss, wakes).then_some(()))
            .count();
        self.losses.fetch_add(lost as u64, Ordering::Release);
    }

    pub(super) fn count_loss(&self) {
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// The first message over a new connection. Early requests of the connection before count as
    /// not sent.
    pub(super) fn hello(&self) -> Hello {
        let mut state = self.lock();
        state.early.clear();
        let lease = self.options.lease;
        let is_far = self.options.addresses.socket().is_none();
        let hello = Hello {
            version: wire::VERSION,
            partition: self.options.partition.clone(),
            parent: self.options.parent,
            // Over a Unix socket the kernel tells.
            process: is_far.then(own_process),
            lease_ms: lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
            ..Hello::default()
        };
        // A session over a Unix socket ends with its process.
        let hello = state.known.hello(hello, || is_far.then(secret::draw)?);
        Hello { secret: hello.secret.filter(|_| is_far), ..hello }
    }

    /// Returns the requests that were made so far, to be sent with the first hello.
    pub(super) fn early_requests(&self) -> Vec<String> {
        self.lock().take_early()
    }

    /// The largest epoch that a service had here: a smaller one is that of a service that has a
    /// successor.
    pub(super) fn epoch(&self) -> u64 {
        self.lock().known.epoch()
    }

    /// Takes the answer to this hello, which was sent at `said`, and sends the whole state again.
    pub(super) fn welcome(&self, welcome: Welcome, hello: &Hello, said: Moment) {
        self.input(|state| {
            let resumed = KnownSession::is_resumed(&welcome, hello);
            if !resumed {
                // The early requests belong to the session that begins, so their steals go on.
                state.mark_early(false);
                self.lapse(state, Loss::ServiceGone);
                state.mark_early(true);
            }
            state.known.welcomed(&welcome, said);
            if state.link != LinkState::Leaving {
                state.link = LinkState::Up;
                // A service elsewhere must not name paths of this machine.
                let local = self.options.addresses.socket().is_some();
                state.show_presence(welcome.presence.filter(|_| local));
            }
            state.outbox.clear();
            let early = std::mem::take(&mut state.early);
            let now = clock::now();
            let lost = state.say_all(resumed, &early, now);
            self.losses.fetch_add(lost, Ordering::Release);
            state.keepalive.begin(now);
        });
    }

    /// Notes that the connection broke.
    pub(super) fn link_broken(&self) {
        self.input(|state| {
            state.outbox.clear();
            state.keepalive.stop();
            state.link_down();
            state.doubt_effects();
            // Without a secret the session cannot be resumed.
            if !state.known.is_resumable() {
                self.lapse(state, Loss::ServiceGone);
            }
        });
    }

    /// Returns until when the client waits for a service that has been out of reach since then.
    pub(super) fn patient_until(&self, since: Moment) -> Moment {
        match self.options.patience {
            Some(patience) if self.lock().link == LinkState::Down => since.saturating_add(patience),
            _ => Moment::NEVER,
        }
    }

    /// Ends all waits for a service that has been out of reach since then, if that was long enough.
    pub(super) fn check_patience(&self, since: Moment) {
        if clock::has_come(self.patient_until(since)) {
            self.input(|state| {
                // A user may have disconnected meanwhile.
                if state.link == LinkState::Down {
                    state.give_up(LinkState::Hopeless);
                }
            });
        }
    }

    /// Notes that the service refuses this client for good.
    pub(super) fn refused(&self, refusal: Refusal) {
        self.input(|state| state.give_up(LinkState::Refused(refusal)));
    }

    /// Ends everything: no message will be sent any more. All tasks are woken in one step.
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

    /// Returns whether the session over this connection continues.
    pub(super) fn standing(&self) -> Standing {
        match self.lock().link {
            LinkState::Up => Standing::Carried,
            LinkState::Leaving => Standing::Leaving,
            _ => Standing::Over,
        }
    }

    /// Returns true if something here needs a service: a lock, a request or a question.
    pub(super) fn needs_service(&self) -> bool {
        let state = self.lock();
        !state.asked.is_empty() || state.entries.values().any(|entry| entry.is_alive())
    }

    /// Returns for how long no other client can be granted the locks of the latest lease.
    pub(super) fn lease_left(&self) -> Option<Duration> {
        let over = self.lock().known.lease_over()?;
        Some(over.saturating_since(clock::now()))
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.lock().known.is_resumable()
    }

    /// Returns the length of the lease, or of the one that was asked for.
    pub(super) fn lease_length(&self) -> Option<Duration> {
        self.lock().known.lease_length().or(self.options.lease)
    }

    /// Takes the refusal of a service that ended the connection because the locks are elsewhere.
    pub(super) fn take_moved(&self) -> Option<Fault> {
        self.lock().moved.take()
    }

    /// Takes the fault of this client that ended its session.
    pub(super) fn take_fault(&self) -> Option<Fault> {
        self.lock().fault.take()
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

    /// Registers the driver, to be woken for a message to send or the end of the session.
    pub(super) fn register(&self, waker: &Waker) {
        self.lock().register(waker);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.lock().link == LinkState::Leaving
    }

    /// Returns true if the driver may end without a connection. The next owner of a cluster's locks
    /// would wait for a session that has not ended, and other clients with it.
    pub(super) fn may_end(&self) -> bool {
        let state = self.lock();
        state.link == LinkState::Leaving && !(state.known.is_cluster && state.known.is_resumable())
    }

    /// Returns when the connection counts as dead although it is open, unless the service answers
    /// before.
    pub(super) fn silent_from(&self) -> Moment {
        self.lock().known.silent_from()
    }

    /// Returns until when the client may take its locks for held.
    pub(super) fn lease_deadline(&self) -> Moment {
        Moment::from_nanoseconds(self.lease_deadline.load(Ordering::Acquire))
    }
}

/// Returns a description of this process for people on other machines.
fn own_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}@{}", std::process::id(), host.trim())
}

impl State {
    fn register(&mut self, waker: &Waker) {
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    /// Ignores all messages of the connection from here on.
    pub(super) fn link_down(&mut self) {
        if self.link == LinkState::Up {
            self.link = LinkState::Down;
        }
    }

    /// Listens at the path that the service named, unless the session does so already.
    fn show_presence(&mut self, path: Option<String>) {
        let known = |path: &String| self.presence.as_ref().is_some_and(|known| known.is_at(path));
        if !path.as_ref().is_some_and(known) {
            self.presence = path.and_then(Presence::bind);
        }
    }

    /// Fails all requests and questions that wait for the service.
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
}

#[cfg(test)]
mod tests {
    use super::super::connect::Options;
    use super::*;
    use navlocks_client::Addresses;
    use navlocks_client::Url;

    #[test]
    fn client_that_leaves_when_patience_ends_has_left() {
        let session = Session::new(Options {
            patience: Some(Duration::ZERO),
            ..Options::to(Addresses::one(Url::Unix("/nowhere".into())))
        });
        let long_ago = Moment::from_nanoseconds(0);
        session.leave();
        session.check_patience(long_ago);
        assert!(session.is_leaving());
    }

    #[test]
    fn answered_hello_extends_the_lease_also_before_a_claim() {
        let session = Session::new(Options::to(Addresses::one(Url::Unix("/nowhere".into()))));
        let limits = concat!(
            r#""message-bytes-max":9,"name-bytes-max":9,"names-per-request-max":9,"#,
            r#""tag-bytes-max":9,"requests-per-session-max":9,"clients-per-session-max":9"#
        );
        for (said, more) in [(1, ""), (2, r#""resumed":true,"#)] {
            let text = format!(
                r#"{{"welcome":{{"version":1,"service":"a test","session":7,"secret":"s","epoch":{said},{more}"lease-ms":8000,"limits":{{{limits}}}}}}}"#
            );
            let Ok(wire::ToClient::Welcome(welcome)) = wire::read(&text) else { panic!("{text}") };
            let said = clock::now().saturating_add(Duration::from_secs(said));
            session.welcome(welcome, &session.hello(), said);
            assert_eq!(session.lease_deadline(), said.saturating_add(Duration::from_secs(7)));
        }
    }
}

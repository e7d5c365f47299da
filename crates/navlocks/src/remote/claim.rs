//! The messages that a client sends at the start of a connection.
//!
//! Everything follows from the state of the session. A resumed session gets a claim: what the
//! service does not find in it, it releases.

use super::entry::Over;
use super::session::{LinkState, State};
use crate::error::{Loss, RequestErrorKind};
use navlocks_client::{Moment, Stage};
use navlocks_wire::{self as wire, ToService};

/// The most that is sent with a hello: it must fit into the buffer of a socket.
const EARLY_BYTES_MAX: usize = 4 << 10;

impl State {
    /// Sends the whole state: the service has got the `early` requests. Returns how many locks are
    /// lost because this service does not take their claims.
    pub(super) fn say_all(&mut self, resumed: bool, early: &[u64], now: Moment) -> u64 {
        if self.presence.is_some() {
            self.say(&ToService::Present);
        }
        self.say_clients(resumed);
        let alive = self.alive();
        let mut lost = 0;
        if resumed {
            // A request that is over is left out, which releases it.
            lost = alive.iter().filter(|&&number| !self.claim(number, now)).count() as u64;
            self.say(&ToService::Claimed);
            self.listen_again(true);
        } else {
            for &number in early.iter().filter(|number| alive.binary_search(number).is_err()) {
                self.say(&ToService::Abort(number));
            }
            self.listen_again(false);
            for &number in alive.iter().filter(|number| !early.contains(number)) {
                self.request_again(number);
            }
        }
        for number in alive {
            self.watch_again(number);
        }
        self.ask_again();
        // The user disconnected meanwhile.
        if self.link == LinkState::Leaving {
            self.outbox.push_back(wire::write(&ToService::Bye).into());
        }
        lost
    }

    /// Opens or names all clients. The hello of a new session has opened client 0.
    fn say_clients(&mut self, resumed: bool) {
        let opened = |number: u64| number == 0 && !resumed;
        let unknown = self.clients.iter().filter(|&(&number, _)| !opened(number));
        let mut said: Vec<ToService> =
            unknown.map(|(&number, client)| ToService::Open(client.open(number))).collect();
        if opened(0) && !self.clients.contains_key(&0) {
            said.push(ToService::Close(0));
        }
        for message in said {
            self.say(&message);
        }
    }

    /// Subscribes again to events, and unsubscribes where the service still sends some.
    fn listen_again(&mut self, known: bool) {
        let mut said = Vec::new();
        for (&number, client) in &mut self.clients {
            if client.inboxes.restart() {
                said.push(ToService::Listen(number));
            } else if std::mem::take(&mut client.subscribed) && known {
                said.push(ToService::Unlisten(number));
            }
        }
        for message in said {
            self.say(&message);
        }
    }

    /// Claims a held or pending request. Returns false if that loses its lock, because this service
    /// refuses messages of that length.
    fn claim(&mut self, number: u64, now: Moment) -> bool {
        let Some(request) = self.entries.get(&number).and_then(|entry| entry.claim(now)) else {
            return true;
        };
        let held = request.token.is_some();
        let fits = self.say_request(request);
        if held && !fits {
            self.lost(number, Loss::ServiceGone);
        }
        !held || fits
    }

    /// Sends an unanswered request again.
    fn request_again(&mut self, number: u64) {
        let entry = self.entries.get(&number);
        let pending = entry.filter(|entry| matches!(entry.stage, Stage::Pending));
        if let Some(request) = pending.map(|entry| entry.request.clone()) {
            self.say_request(request);
        }
    }

    /// Sends a request. Returns false if it is too long for this service: a pending one fails.
    fn say_request(&mut self, request: wire::Request) -> bool {
        let number = request.id;
        let text = wire::write(&ToService::Request(request));
        match self.known.fits(&text) {
            Ok(()) => {
                self.say_text(text);
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.sent = true;
                }
                true
            }
            Err(fault) => {
                let error = RequestErrorKind::Refused(fault.into());
                self.not_granted(number, Over::Failed(error));
                false
            }
        }
    }

    /// Sends a contention watch again.
    fn watch_again(&mut self, number: u64) {
        if self.entries.get(&number).is_some_and(|entry| entry.watches_contention()) {
            self.say(&ToService::Contention(number));
        }
    }

    /// Returns the messages of the requests so far, as many as fit with the hello, and notes them.
    /// Only the first client is known to a service before the hello is answered.
    pub(super) fn take_early(&mut self) -> Vec<String> {
        let mut room = EARLY_BYTES_MAX;
        let mut texts = Vec::new();
        for number in self.alive() {
            let Some(entry) = self.entries.get_mut(&number) else { continue };
            let text = wire::write(&ToService::Request(entry.request.clone()));
            // A later request must not overtake one that is left out.
            if entry.request.client != 0 || text.len() > room {
                break;
            }
            room -= text.len();
            entry.sent = true;
            self.early.push(number);
            texts.push(text);
        }
        texts
    }

    /// Notes whether a service may have received the early requests.
    pub(super) fn mark_early(&mut self, sent: bool) {
        for number in &self.early {
            if let Some(entry) = self.entries.get_mut(number) {
                entry.sent = sent;
            }
        }
    }

    /// Returns the requests that are still wanted, in the order in which they were made.
    pub(super) fn alive(&self) -> Vec<u64> {
        let alive = self.entries.iter().filter(|(_, entry)| entry.is_alive());
        let mut numbers: Vec<u64> = alive.map(|(&number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }
}

//! The messages at the start of a connection.
//!
//! Everything follows from the state of the session. A resumed session gets a claim: the service
//! releases what it does not find in it.

use navlocks_wire::{self as wire, Downgrade, Request, ToService, Watch};

use super::{Command, LinkState, Machine};
use crate::moment::Moment;
use crate::requests::{LossCause, Over};

/// The most that is sent with a hello: it must fit into the buffer of a socket.
const ZERO_RTT_BYTES_MAX: usize = 4 << 10;

impl<T> Machine<T> {
    /// Sends the whole state, behind the requests that came with the hello.
    pub(super) fn send_all(&mut self, is_resumed: bool, now: Moment) {
        // The user left meanwhile.
        if self.link == LinkState::Leaving {
            self.commands.push_back(Command::Send(wire::write(&ToService::Bye)));
            return self.close(now);
        }
        let sent = std::mem::take(&mut self.zero_rtt);
        self.send_clients(is_resumed);
        let alive = self.alive();
        if is_resumed {
            // A request that is over is left out, which releases it.
            for &number in &alive {
                self.claim(number, now);
            }
            self.send(&ToService::Claimed);
            self.downgrade_again();
            self.listen_again(true);
        } else {
            for &number in sent.iter().filter(|number| alive.binary_search(number).is_err()) {
                self.send(&ToService::End(number));
            }
            self.listen_again(false);
            for number in alive.iter().filter(|number| !sent.contains(number)) {
                let request = self.requests.get(number).map(|known| known.request.clone());
                self.send_request(request, now);
            }
        }
        for number in alive {
            let is_watched = |number| self.requests.get(number).is_some_and(|it| it.is_watched);
            if is_watched(&number) {
                self.send(&ToService::Watch(Watch::Contention(number)));
            }
        }
        self.ask_again();
    }

    /// Claims a held or pending request. Its lock is lost if this service refuses such a request.
    fn claim(&mut self, number: u64, now: Moment) {
        let request = self.requests.get_mut(&number).and_then(|known| {
            // The service counts its wait from the age in the claim.
            known.note_sent(now);
            known.claim(now)
        });
        self.send_request(request, now);
    }

    /// Sends a request again. One that this service would refuse fails, and its lock is lost.
    fn send_request(&mut self, request: Option<Request>, now: Moment) {
        let Some(request) = request else { return };
        let (number, is_held) = (request.id, request.token.is_some());
        let checked = self.session.check_request(&request);
        let text = wire::write(&ToService::Request(request));
        match checked.and_then(|()| self.session.check_length(&text)) {
            Ok(()) => {
                self.send_text(text);
                if let Some(known) = self.requests.get_mut(&number) {
                    known.note_sent(now);
                }
            }
            Err(_) if is_held => self.end_request(number, Over::Lost(LossCause::ServiceGone)),
            Err(fault) => self.end_request(number, Over::refused(fault)),
        }
    }

    /// Sends the requests so far behind the hello, as many as fit. Only the first client is known
    /// to a service before the hello is answered.
    pub(super) fn send_zero_rtt(&mut self, now: Moment) {
        let mut room = ZERO_RTT_BYTES_MAX;
        for (&number, known) in &mut self.requests {
            if !known.is_alive() {
                continue;
            }
            let text = wire::write(&ToService::Request(known.request.clone()));
            // A later request must not overtake one that is left out.
            if known.request.client != 0 || text.len() > room {
                break;
            }
            room -= text.len();
            known.note_sent(now);
            self.zero_rtt.push(number);
            self.commands.push_back(Command::Send(text));
        }
    }

    /// Notes whether a service may have received the requests that came with the hello.
    pub(super) fn mark_zero_rtt(&mut self, sent: bool) {
        for index in 0..self.zero_rtt.len() {
            if let Some(known) = self.requests.get_mut(&self.zero_rtt[index]) {
                known.sent = sent;
            }
        }
    }

    /// Sends the downgrades again that have no answer.
    fn downgrade_again(&mut self) {
        let asked = self.requests.iter().filter_map(|(&id, known)| Some((id, known.downgrade?)));
        for (id, mode) in asked.collect::<Vec<_>>() {
            self.send(&ToService::Downgrade(Downgrade { id, mode }));
        }
    }

    /// Notes that the driver listens at the path of the presence.
    pub fn present(&mut self) {
        if self.link == LinkState::Up {
            // Before all messages that are not sent yet.
            self.commands.push_front(Command::Send(wire::write(&ToService::Present)));
        }
    }
}

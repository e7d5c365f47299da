//! The messages of the service, and their effects.

use navlocks_core::FencingToken;
use navlocks_wire::{Granted, Pending, ToClient};

use super::{Event, Machine, Phase};
use crate::moment::Moment;
use crate::requests::{Over, Stage};

impl<T> Machine<T> {
    /// Takes a message of the service.
    pub fn received(&mut self, message: ToClient, now: Moment) {
        // A grant that was buffered while the lease ran out is void.
        self.check_lease(now);
        match self.phase {
            Phase::Greeting(_) => return self.receive_first(message, now),
            Phase::Connected { .. } => {}
            _ => return,
        }
        self.keepalive.received(now);
        match message {
            ToClient::Granted(Granted { id, token }) => self.granted(id, token, now),
            ToClient::Pending(Pending { id, place }) => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.place = Some(place);
                }
            }
            ToClient::Unavailable(id) => self.end_pending(id, Over::Unavailable),
            ToClient::Lost(lost) => self.end_request(lost.id, Over::Lost(lost.into())),
            ToClient::Refused(refused) => {
                self.end_pending(refused.id, Over::Refused(Box::new(refused)));
            }
            ToClient::Downgraded(_) => {}
            ToClient::Contended(id) => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.is_watched = false;
                    self.events.push_back(Event::Contended(id));
                }
            }
            ToClient::Answer(answer) => self.answered(answer),
            ToClient::Listening(client) => self.events.push_back(Event::Listening(client)),
            ToClient::NotListening(refused) => {
                self.events.push_back(Event::NotListening(refused.client));
            }
            ToClient::Event(event) => self.events.push_back(Event::Happened(event)),
            ToClient::Pong(number) => {
                if let Some(lease) = self.session.lease() {
                    lease.pong(number);
                }
            }
            // A second welcome is ignored.
            ToClient::Welcome(_) => {}
            ToClient::Error(fault) => self.receive_error(fault, now),
        }
    }

    fn granted(&mut self, id: u64, token: u64, now: Moment) {
        // A request that was dropped meanwhile is gone, and the service knows.
        if let Some(request) = self.requests.get_mut(&id)
            && let Stage::Pending = request.stage
        {
            request.grant(FencingToken::new(token), now);
            self.steals.remove(&request.request);
            self.events.push_back(Event::Granted(id));
        }
    }
}

//! The messages of the service, and their effects.

use navlocks_wire::{self as wire, Downgrade, Granted, Pending, ToClient, Why};

use super::{Event, Machine, Phase};
use crate::moment::Moment;
use crate::requests::{Over, Stage};

impl<T> Machine<T> {
    /// Takes a message of the service.
    pub fn received(&mut self, message: ToClient, now: Moment) {
        // A grant that was buffered while the lease ran out is void.
        self.check_deadlines(now);
        match self.phase {
            Phase::Greeting(_) => return self.receive_first(message, now),
            Phase::Connected { .. } => {}
            _ => return,
        }
        self.keepalive.received(now);
        match message {
            ToClient::Granted(granted) => self.granted(granted, now),
            ToClient::Pending(Pending { id, place }) => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.place = Some(place);
                }
            }
            ToClient::Over(wire::Over { id, why }) => match why {
                Why::Unavailable => self.end_pending(id, Over::Unavailable),
                Why::Lost(lost) => self.end_request(id, Over::Lost(lost.into())),
                Why::Refused(refused) => self.end_pending(id, Over::Refused(Box::new(refused))),
            },
            ToClient::Downgraded(Downgrade { id, mode }) => {
                let request = self.requests.get_mut(&id);
                if request.is_some_and(|it| it.downgraded(mode)) {
                    self.events.push_back(Event::Downgraded(id));
                }
            }
            ToClient::Answer(answer) => self.answered(answer),
            ToClient::Event(event) => self.happened(event),
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

    fn happened(&mut self, event: wire::Event) {
        self.events.push_back(match event {
            wire::Event::Watching(client) => Event::Listening(client),
            wire::Event::Refused(refused) => Event::NotListening(refused.client),
            wire::Event::Request(event) => Event::Happened(event),
            wire::Event::Contended(id) => {
                let Some(request) = self.requests.get_mut(&id) else { return };
                request.is_watched = false;
                Event::Contended(id)
            }
        });
    }

    fn granted(&mut self, granted: Granted, now: Moment) {
        let (id, is_far) = (granted.id, self.has_lease());
        // A request that was dropped meanwhile is gone, and the service knows.
        if let Some(request) = self.requests.get_mut(&id)
            && let Stage::Pending = request.stage
        {
            request.grant(&granted, is_far, now);
            if request.until != Moment::NEVER {
                self.holds.begin(request.until, id);
            }
            let was_steal = self.steals.remove(&request.request);
            self.pass_grant(id);
            if was_steal {
                self.pass_crossing(id);
            }
            self.check_holds(now);
        }
    }
}

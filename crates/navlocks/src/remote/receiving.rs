//! The messages of the service, and their effects.

use navlocks_core::{FencingToken, RequestId};

use super::clock;
use super::entry::{Entry, Over};
use super::session::{Session, State};
use crate::error::{Loss, Refusal, RequestErrorKind};
use navlocks_client::{Moment, Stage};
use navlocks_wire::{Fault, FaultCode, Granted, Pending, Refused, ToClient};

impl Session {
    /// Takes one message, and wakes the affected tasks. Returns false when the session is over, and
    /// with it the connection.
    pub(super) fn receive(&self, message: ToClient, now: Moment) -> bool {
        // A grant that was buffered while the lease ran out is void.
        if now >= self.lease_deadline() {
            self.check_lease();
        }
        self.input(|state| {
            if !state.link.carries() {
                return false;
            }
            state.keepalive.received(now);
            match message {
                ToClient::Granted(Granted { id, token }) => state.granted(id, token, now),
                ToClient::Pending(Pending { id, place }) => {
                    if let Some(entry) = state.entries.get_mut(&id) {
                        entry.place = Some(place);
                    }
                }
                ToClient::Unavailable(id) => state.not_granted(id, Over::Unavailable),
                ToClient::Lost(lost) => {
                    state.lost(lost.id, lost.into());
                    self.count_loss();
                }
                ToClient::Refused(Refused { id, fault, cycle }) => {
                    let error = match (fault.code, cycle) {
                        (FaultCode::Deadlock, Some(cycle)) => {
                            RequestErrorKind::Deadlock(cycle.into())
                        }
                        (FaultCode::ExclusiveOvertake, _) => RequestErrorKind::ExclusiveOvertake,
                        _ => RequestErrorKind::Refused(Refusal::from(fault)),
                    };
                    state.not_granted(id, Over::Failed(error));
                }
                ToClient::Downgraded(_) => {}
                ToClient::Contended(id) => {
                    let State { entries, wakes, .. } = state;
                    if let Some(entry) = entries.get_mut(&id) {
                        entry.contended(wakes);
                    }
                }
                ToClient::Answer(answer) => state.answered(answer),
                ToClient::Listening(client) => {
                    if let Some(client) = state.clients.get_mut(&client) {
                        client.inboxes.begin();
                    }
                }
                ToClient::NotListening(refused) => {
                    let State { clients, wakes, .. } = state;
                    if let Some(client) = clients.get_mut(&refused.client) {
                        client.inboxes.refuse(wakes);
                    }
                }
                ToClient::Event(event) => {
                    let State { clients, wakes, .. } = state;
                    if let Some(client) = clients.get_mut(&event.client) {
                        client.inboxes.deliver(&event.into(), wakes);
                    }
                }
                ToClient::Pong(number) => {
                    if let Some(lease) = state.known.lease() {
                        lease.pong(number);
                    }
                }
                // A second welcome is ignored.
                ToClient::Welcome(_) => {}
                // The session goes on with the successor; until then its locks are in doubt.
                ToClient::Error(fault)
                    if state.known.is_resumable()
                        && matches!(fault.code, FaultCode::ShuttingDown | FaultCode::Moved) =>
                {
                    state.moved = Some(fault).filter(|fault| fault.code == FaultCode::Moved);
                    state.link_down();
                }
                // The session ends: the service releases its locks, and a successor need not wait
                // for this client.
                ToClient::Error(Fault { code: FaultCode::LeaseLapsed, .. }) => {
                    self.lapse(state, Loss::LeaseLapsed);
                    state.known.ended(now);
                }
                ToClient::Error(fault) => {
                    state.fault = Some(fault).filter(|fault| fault.code.is_of_client());
                    self.lapse(state, Loss::ServiceGone);
                }
            }
            state.link.carries()
        })
    }

    /// Sends the next ping, if there is a lease.
    pub(super) fn ping(&self) {
        self.input(|state| {
            if let Some(lease) = state.known.lease() {
                let number = lease.ping(clock::now());
                state.say(&navlocks_wire::ToService::Ping(number));
            }
        });
    }

    pub(super) fn ping_interval(&self) -> Option<std::time::Duration> {
        self.input(|state| state.known.lease().map(|lease| lease.ping_interval()))
    }
}

impl State {
    fn granted(&mut self, id: u64, token: u64, now: Moment) {
        let Self { entries, thieves, wakes, .. } = self;
        thieves.remove(&id);
        // A request that was dropped meanwhile is gone, and the service knows.
        if let Some(entry) = entries.get_mut(&id)
            && let Stage::Pending = entry.stage
        {
            wakes.add_all(entry.grant(FencingToken::new(token), now));
        }
    }

    /// Returns the loss of a lock that its client releases while a steal of the same client is
    /// pending: the service receives the steal before the release.
    pub(super) fn predicted_loss(&self, released: &Entry) -> Option<Loss> {
        let thieves = self.thieves.iter().filter_map(|thief| self.entries.get(thief));
        let mut pending = thieves.filter(|thief| matches!(thief.stage, Stage::Pending));
        let thief = pending.find(|thief| released.is_stolen_by(&thief.request))?;
        Some(Loss::Stolen { by: RequestId::foreign(self.known.number(), thief.request.id).into() })
    }

    /// Ends a request without a lock. A held lock is not affected.
    pub(super) fn not_granted(&mut self, id: u64, over: Over) {
        let Self { entries, wakes, .. } = self;
        if let Some(entry) = entries.get_mut(&id)
            && let Stage::Pending = entry.stage
        {
            entry.end(over, wakes);
        }
    }

    pub(super) fn lost(&mut self, id: u64, loss: Loss) {
        let Self { entries, wakes, .. } = self;
        if let Some(entry) = entries.get_mut(&id)
            && entry.is_alive()
        {
            entry.end(Over::Lost(loss), wakes);
        }
    }
}

//! The messages of a session.

use std::time::Instant;

use navlocks_core::{Request, Wait};
use navlocks_wire::{
    self as wire, ClientKey, Event, Fault, FaultCode, LossCause, NotWatching, Open, Over,
    RequestKey, ToClient, ToService, Watch,
};

use super::Hub;
use super::claim::unknown_session;
use super::metrics::Reason;
use super::partitions::{NewRequest, PartitionIndex};
use super::sessions::{Client, Known};

impl Hub {
    /// Takes a message of a session. An error ends the session.
    pub fn message(&mut self, number: u32, message: ToService, now: Instant) -> Result<(), Fault> {
        // Silence would leave the client in the belief that it is served.
        let session = self.sessions.get_mut(number).ok_or_else(unknown_session)?;
        session.heard = now;
        match message {
            ToService::Request(request) if session.is_claiming() => self.claim(number, request)?,
            ToService::Request(request) => self.request(number, request, now)?,
            ToService::End(request) => self.give_up(number, request, Reason::Aborted, now),
            ToService::TimedOut(request) => {
                self.give_up(number, request, Reason::TimedOut, now);
            }
            ToService::Expired(request) => {
                if let Some(Known::Live { partition, id }) = session.requests.get(request) {
                    let (partitions, mut context) = self.context(now);
                    partitions[partition].expire(id, &mut context);
                }
                self.give_up(number, request, Reason::Aborted, now);
            }
            ToService::Ping(ping) => self.sessions.say(number, &ToClient::Pong(ping)),
            ToService::Hello(_) => {
                let text = "hello is the first message of a connection and comes once";
                return Err(Fault::new(FaultCode::BadState, text));
            }
            ToService::Open(Open { client, partition }) => {
                if session.take_client_number(client)? {
                    self.open_or_refuse(number, client, &partition);
                }
            }
            ToService::Close(client) => self.close(number, client, now)?,
            ToService::Downgrade(asked) => self.downgrade(number, asked, now),
            ToService::Watch(watch) => self.watch(number, watch, now)?,
            ToService::Ask(ask) if self.found.whole => self.ask_later(number, ask, now)?,
            ToService::Ask(ask) => self.ask(number, ask, now)?,
            ToService::Claimed => self.claimed(number, now)?,
            ToService::Present => {
                session.present = true;
                self.registry.set_present(session.slot);
            }
            ToService::Bye => {
                session.took_leave = true;
                self.end(number, None, now);
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Begins or ends a subscription.
    fn watch(&mut self, number: u32, watch: Watch, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get(number) else { return Ok(()) };
        match watch {
            Watch::Events(client) => {
                let subscribed = match session.client(client)? {
                    Some(&Client { partition, .. }) => {
                        self.subscribe(partition, ClientKey::new(number, client))
                    }
                    None => Err(session.closed(client, &self.limits)),
                };
                let event = match subscribed {
                    Ok(()) => Event::Watching(client),
                    Err(fault) => Event::Refused(NotWatching { client, fault }),
                };
                self.sessions.say(number, &ToClient::Event(event));
            }
            Watch::NoEvents(client) => {
                if let Some(&Client { partition, .. }) = session.client(client)? {
                    self.partitions[partition].unsubscribe(ClientKey::new(number, client));
                }
            }
            Watch::Contention(request) => {
                if let Some(Known::Live { partition, id }) = session.requests.get(request) {
                    let (partitions, mut context) = self.context(now);
                    partitions[partition].watch_contention(id, &mut context);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn request(&mut self, number: u32, asked: wire::Request, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if !session.take_request_number(asked.id)? {
            self.answer_again(number, &asked, now);
            return Ok(());
        }
        let wire::Request {
            id: request, client, names, mode, wait, tag, traceparent, token, ..
        } = asked;
        let max_hold_ms = asked.max_hold_ms.unwrap_or_default();
        let within = asked.within.map(|within| within.key(number));
        let wire::Names(scope) = names;
        if token.is_some() {
            // The service has released this lock, and the client does not know yet.
            self.metrics.losses.not_reclaimed.inc();
            self.sessions.say(number, &Over::lost(request, LossCause::NotReclaimed).into());
            return Ok(());
        }
        let Some(&Client { partition, id: owner, .. }) = session.client(client)? else {
            let fault = session.closed(client, &self.limits);
            self.refuse(number, request, fault);
            return Ok(());
        };
        let request_of_engine = Request { scope, mode, wait };
        let client = ClientKey::new(number, client);
        let mut new_request = NewRequest {
            owner,
            client,
            number: request,
            request: request_of_engine,
            tag,
            traceparent,
            since: now,
            place: 0,
            is_placed: false,
            slot: 0,
            max_hold_ms,
            within,
        };
        let memory = new_request.memory();
        let within = self.within_limits(number, partition, &new_request, memory);
        let within = within.map_err(|text| Fault::new(FaultCode::Limit, text));
        if let Err(fault) = within.and_then(|()| self.register(partition, &mut new_request)) {
            self.refuse(number, request, fault);
            return Ok(());
        }
        if self.found.hides_holders() || !self.room.is_empty() {
            let Some(free) = self.recover(partition, new_request, now) else { return Ok(()) };
            new_request = free;
        }
        self.go_on_to(partition, new_request, now);
        Ok(())
    }

    /// Gives a request its place, and writes it into the registry.
    #[inline]
    pub(super) fn register(
        &mut self,
        partition: PartitionIndex,
        new_request: &mut NewRequest,
    ) -> Result<(), Fault> {
        let Request { scope, mode, wait } = &new_request.request;
        new_request.place = self.sequence.take(*wait == Wait::Overtake);
        if !self.registry.has_requests() {
            return Ok(());
        }
        self.hashes.clear();
        self.hashes.extend(self.partitions[partition].hashes(scope));
        let key = (new_request.client.session, new_request.number);
        let slot = self.registry.begin_request(key, *mode, new_request.place, &self.hashes);
        new_request.slot = slot.map_err(|error| {
            tracing::error!(%error, "a request cannot be written into the registry");
            let text = "the service cannot write its state, and takes no request: its disk is full";
            Fault::new(FaultCode::Internal, text)
        })?;
        Ok(())
    }

    pub(super) fn refuse(&mut self, number: u32, request: u64, fault: Fault) {
        self.metrics.requests.refused.inc();
        self.sessions.say(number, &Over::refused(request, fault).into());
    }

    /// Gives a lock a mode that allows more holders. A lock that is claimed has it from the claim.
    pub(super) fn downgrade(&mut self, number: u32, asked: wire::Downgrade, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        match session.requests.get(asked.id) {
            Some(Known::Live { partition, id }) => {
                let (partitions, mut context) = self.context(now);
                partitions[partition].downgrade(id, asked.mode, &mut context);
            }
            Some(Known::Guest { .. } | Known::Lost { .. }) => {}
            None => {
                let claim = session.claim.as_mut();
                if let Some(mode) = claim.and_then(|it| it.downgrade(asked)) {
                    let answer = ToClient::Downgraded(wire::Downgrade { mode, ..asked });
                    self.sessions.say(number, &answer);
                }
            }
        }
    }

    /// The owner of a request lets go of it, whatever became of it.
    #[inline]
    pub(crate) fn give_up(&mut self, number: u32, request: u64, reason: Reason, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        match session.forget(request) {
            Some(Known::Live { partition, id }) => {
                let (partitions, mut context) = self.context(now);
                context.reason = reason;
                partitions[partition].give_up(id, &mut context);
            }
            Some(Known::Guest { .. }) => {
                self.metrics.requests.withdrawn(reason);
                self.remove_guest(RequestKey::new(number, request));
                self.admit(now);
            }
            Some(Known::Lost { slot, .. }) => {
                self.registry.end_lost(RequestKey::new(number, request), slot);
            }
            None => {
                if let Some(claim) = self.sessions.get_mut(number).and_then(|it| it.claim.as_mut())
                {
                    claim.remove(request);
                }
            }
        }
    }
}

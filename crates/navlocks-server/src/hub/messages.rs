//! The messages of a session.

use std::time::Instant;

use navlocks_core::{Request, Wait};
use navlocks_wire::{
    self as wire, ClientKey, Fault, FaultCode, Open, Refused, ToClient, ToService,
};

use super::Hub;
use super::partitions::Asking;
use super::sessions::{Client, Known};

impl Hub {
    /// Takes a message of a session. An error ends the session.
    pub fn message(&mut self, number: u32, message: ToService, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        session.heard = now;
        match message {
            ToService::Request(request) => self.request(number, request, now)?,
            ToService::Release(request) | ToService::Abort(request) => {
                self.give_up(number, request, now);
            }
            ToService::Ping(ping) => self.sessions.say(number, &ToClient::Pong(ping)),
            ToService::Hello(_) => {
                let text = "hello is the first message of a connection and comes once";
                return Err(Fault::new(FaultCode::BadState, text));
            }
            ToService::Open(Open { client, partition }) => {
                session.take_client_number(client)?;
                self.open_or_refuse(number, client, &partition)?;
            }
            ToService::Close(client) => self.close(number, client, now)?,
            ToService::Contention(request) => {
                if let Some(Known::Live { partition, id }) = session.requests.get(request) {
                    let (partitions, mut around) = self.around(now);
                    partitions[partition].watch_contention(id, &mut around);
                }
            }
            ToService::Listen(client) => {
                let partition = session.client(client)?.map(|client| client.partition);
                // Nothing happens in the partition of a client that could not be opened.
                let answered = partition.is_some() || session.unopened.contains_key(&client);
                if let Some(partition) = partition {
                    self.subscribe(partition, ClientKey::new(number, client))?;
                }
                if answered {
                    self.sessions.say(number, &ToClient::Listening(client));
                }
            }
            ToService::Unlisten(client) => {
                if let Some(&Client { partition, .. }) = session.client(client)? {
                    self.partitions[partition].unsubscribe(ClientKey::new(number, client));
                }
            }
            ToService::Ask(ask) => self.ask(number, ask, now)?,
            ToService::Claimed | ToService::Present => {}
            ToService::Bye => self.end(number, None, now),
        }
        self.settle(now);
        Ok(())
    }

    #[inline]
    fn request(&mut self, number: u32, asked: wire::Request, now: Instant) -> Result<(), Fault> {
        let wire::Request {
            id: request, client, names: wire::Names(scope), mode, wait, tag, ..
        } = asked;
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if let Some(known) = session.requests.get(request) {
            self.answer_again(number, request, known);
            return Ok(());
        }
        session.take_request_number(request)?;
        let Some(&Client { partition, id: owner, .. }) = session.client(client)? else {
            let fault = session.closed(client);
            self.refuse(number, request, fault);
            return Ok(());
        };
        let request_of_engine = Request { scope, mode, wait };
        let client = ClientKey::new(number, client);
        let asking =
            Asking { owner, client, number: request, request: request_of_engine, tag, since: now };
        let memory = asking.memory();
        if let Err(text) = self.within_limits(number, partition, &asking, memory) {
            self.refuse(number, request, Fault::new(FaultCode::Limit, text));
            return Ok(());
        }
        let known = if self.granting {
            let (partitions, mut around) = self.around(now);
            let id = partitions[partition].request(asking, &mut around);
            id.map(|id| Known::Live { partition, id })
        } else if wait == Wait::IfAvailable {
            self.sessions.say(number, &ToClient::Unavailable(request));
            None
        } else {
            self.partitions[partition].changes += 1;
            let place = self.partitions[partition].early.push(asking);
            Some(Known::Early { partition, place })
        };
        if let (Some(known), Some(session)) = (known, self.sessions.get_mut(number)) {
            session.requests.insert(request, known, memory as u32);
        }
        Ok(())
    }

    fn refuse(&mut self, number: u32, request: u64, fault: Fault) {
        self.metrics.refused_requests.inc();
        let refused = Refused { id: request, fault, cycle: None };
        self.sessions.say(number, &ToClient::Refused(refused));
    }

    /// The owner of a request lets go of it, whatever became of it.
    #[inline]
    pub(crate) fn give_up(&mut self, number: u32, request: u64, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        match session.forget(request) {
            Some(Known::Live { partition, id }) => {
                let (partitions, mut around) = self.around(now);
                partitions[partition].give_up(id, &mut around);
            }
            Some(Known::Early { partition, place }) => {
                self.partitions[partition].changes += 1;
                self.partitions[partition].early.remove(place);
            }
            Some(Known::Lost { .. }) | None => {}
        }
    }
}

//! The clients of a session, and their subscriptions.

use navlocks_wire::{Fault, Open, ToService, Watch};

use super::{Event, LinkState, Machine};
use crate::requests::{LossCause, Over, Stage};

/// A client of the session.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) partition: String,
    /// The user has event streams.
    listens: bool,
    /// The service sends events, or would.
    is_subscribed: bool,
    /// Why the service does not take this client.
    refused: Option<Fault>,
}

impl Client {
    pub(super) fn new(partition: String) -> Self {
        Self { partition, listens: false, is_subscribed: false, refused: None }
    }

    fn open(&self, client: u64) -> ToService {
        ToService::Open(Open { client, partition: self.partition.clone() })
    }
}

impl<T> Machine<T> {
    /// Adds a client in this partition, and returns its number. If the service takes no more
    /// clients, all requests of this one are refused.
    pub fn add_client(&mut self, partition: &str) -> u64 {
        let number = self.next_client;
        self.next_client += 1;
        let mut client = Client::new(partition.to_owned());
        client.refused = self.session.check_clients(self.clients_open()).err();
        if client.refused.is_none() {
            self.send(&client.open(number));
        }
        self.clients.insert(number, client);
        number
    }

    /// Ends a client and all its requests. Its partition is known until
    /// [`forget_client`](Self::forget_client).
    pub fn end_client(&mut self, number: u64) {
        let Some(client) = self.clients.remove(&number) else { return };
        self.end_requests_of(Some(number));
        if client.refused.is_none() {
            self.send(&ToService::Close(number));
        }
        self.ended.insert(number, client.partition);
    }

    /// Forgets an ended client.
    pub fn forget_client(&mut self, number: u64) {
        self.ended.remove(&number);
    }

    /// Returns true if the client has not ended.
    pub fn has_client(&self, number: u64) -> bool {
        self.clients.contains_key(&number)
    }

    /// Returns the partition of a client, also of an ended one.
    pub fn partition_of(&self, number: u64) -> Option<&str> {
        let living = self.clients.get(&number).map(|client| &client.partition);
        living.or_else(|| self.ended.get(&number)).map(String::as_str)
    }

    /// Subscribes a further event stream of a client. An answer follows for each.
    pub fn listen(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if client.refused.is_some() {
            return self.events.push_back(Event::NotListening(number));
        }
        (client.listens, client.is_subscribed) = (true, true);
        self.send(&ToService::Watch(Watch::Events(number)));
    }

    /// Ends the subscription of a client that has no event stream any more.
    pub fn unlisten(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.listens = false;
        if self.link == LinkState::Up {
            client.is_subscribed = false;
            self.send(&ToService::Watch(Watch::NoEvents(number)));
        }
    }

    /// Checks that a request or question of this client can succeed.
    pub(super) fn check_client(&self, client: u64) -> Result<(), Over> {
        let Some(client) = self.clients.get(&client) else {
            return Err(Over::Lost(LossCause::ClientEnded));
        };
        self.link.over().map_or(Ok(()), Err)?;
        let refused = client.refused.clone();
        refused.map_or(Ok(()), |fault| Err(Over::refused(fault)))
    }

    pub(super) fn refusal_of(&self, client: u64) -> Option<Fault> {
        self.clients.get(&client)?.refused.clone()
    }

    fn clients_open(&self) -> usize {
        self.clients.values().filter(|client| client.refused.is_none()).count()
    }

    /// Opens or names all clients. The hello of a new session has opened client 0.
    pub(super) fn send_clients(&mut self, is_resumed: bool) {
        let numbers: Vec<u64> = self.clients.keys().copied().collect();
        for (count, number) in numbers.into_iter().enumerate() {
            let refused = self.session.check_clients(count).err();
            let Some(client) = self.clients.get_mut(&number) else { continue };
            client.refused.clone_from(&refused);
            match refused {
                None if number == 0 && !is_resumed => {}
                None => {
                    let open = client.open(number);
                    self.send(&open);
                }
                Some(fault) => self.refuse_requests_of(number, &fault),
            }
        }
        if !is_resumed && !self.clients.contains_key(&0) {
            self.send(&ToService::Close(0));
        }
    }

    fn refuse_requests_of(&mut self, client: u64, fault: &Fault) {
        for number in self.alive() {
            let Some(known) = self.requests.get(&number) else { continue };
            if known.request.client == client {
                let over = match known.stage {
                    Stage::Held(_) => Over::Lost(LossCause::ServiceGone),
                    _ => Over::refused(fault.clone()),
                };
                self.end_request(number, over);
            }
        }
    }

    /// Subscribes again to events, and unsubscribes where the service still sends some.
    pub(super) fn listen_again(&mut self, is_resumed: bool) {
        let numbers: Vec<u64> = self.clients.keys().copied().collect();
        for number in numbers {
            let Some(client) = self.clients.get_mut(&number) else { continue };
            let was_subscribed = std::mem::replace(&mut client.is_subscribed, client.listens);
            if client.listens {
                self.events.push_back(Event::ListensAgain(number));
                self.send(&ToService::Watch(Watch::Events(number)));
            } else if was_subscribed && is_resumed {
                self.send(&ToService::Watch(Watch::NoEvents(number)));
            }
        }
    }
}

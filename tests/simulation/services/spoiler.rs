//! Bugs at the seams of a service: messages that it receives and sends, and its tables.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use navlocks_core::{Mode, Wait};
use navlocks_wire::{Downgrade, Granted, Request, ToClient, ToService};

use crate::bug::{Bug, Seeded};
use crate::services::ClientNo;

/// A request for this name ends its connection, if that bug is seeded.
pub(crate) const POISON: &str = "poison";

/// The client that most bugs strike.
const VICTIM: ClientNo = 1;

/// The longest claim of a service with that bug.
const CLAIM_MAX: usize = 3;

/// How much longer a failed growth leaves a file: less than a chunk.
const TAIL_BYTES: usize = 5_000;

#[derive(Default)]
pub(crate) struct Spoiler {
    folder: Option<PathBuf>,
    bug: Seeded,
    /// Clients that resume a session and have not claimed, with the claimed requests.
    claiming: HashMap<ClientNo, usize>,
    /// Claimed locks whose limit is forgotten, as soon as their clients send something.
    unlimited: Vec<(ClientNo, u64)>,
    /// A claimed request that is taken for a new one.
    delayed: Option<Request>,
    /// The table of requests before a steal.
    before_steal: Option<Vec<u8>>,
    last_request: u64,
    last_token: u64,
    is_disk_full: bool,
}

impl Spoiler {
    pub(crate) fn new(folder: Option<PathBuf>, bug: Seeded) -> Self {
        Self { folder, bug, ..Self::default() }
    }

    /// Changes a received message. Without a message the connection ends.
    pub(crate) fn distort(
        &mut self,
        client: ClientNo,
        message: ToService,
    ) -> Vec<Option<ToService>> {
        let bug = self.bug.clone();
        let claims = self.claiming.contains_key(&client);
        match message {
            ToService::Hello(hello) => {
                match hello.resume {
                    Some(_) => _ = self.claiming.insert(client, 0),
                    None => _ = self.claiming.remove(&client),
                }
                vec![Some(ToService::Hello(hello))]
            }
            ToService::Request(mut request) => {
                if client == VICTIM {
                    self.last_request = request.id;
                }
                if let Some(count) = self.claiming.get_mut(&client) {
                    *count += 1;
                    if *count > CLAIM_MAX && bug.strikes(Bug::LongClaim) {
                        return vec![None];
                    }
                }
                let is_poison = request.names.0.names().iter().any(|name| name == &POISON.into());
                if is_poison && bug.strikes(Bug::RepeatFault) {
                    return vec![None];
                }
                if request.wait == Wait::Steal && bug.is(Bug::ForgetSteal) && !claims {
                    let table = self.folder.as_ref().map(|it| it.join("requests.table"));
                    self.before_steal = table.and_then(|table| fs::read(table).ok());
                }
                if client > VICTIM && !claims && bug.strikes_once(Bug::Overtake) {
                    request.wait = Wait::Overtake;
                }
                if claims && request.token.is_some() && bug.strikes_once(Bug::RefuseClaim) {
                    request.token = request.token.map(|token| token + 1);
                }
                if claims && request.max_hold_ms.is_some() && bug.strikes(Bug::RestartHold) {
                    request.ms = None;
                }
                if claims && matches!(request.mode, Mode::Limited(_)) && bug.is(Bug::ForgetLimit) {
                    self.unlimited.push((client, request.id));
                }
                let waits = request.token.is_none() && request.wait == Wait::Queue;
                if claims && waits && client == VICTIM && bug.strikes_once(Bug::LoseOrder) {
                    self.delayed = Some(request);
                    return Vec::new();
                }
                vec![Some(ToService::Request(request))]
            }
            ToService::Claimed => {
                self.claiming.remove(&client);
                let delayed = if client == VICTIM { self.delayed.take() } else { None };
                let delayed = delayed.map(ToService::Request);
                [Some(ToService::Claimed)].into_iter().chain(delayed.map(Some)).collect()
            }
            ToService::Downgrade(Downgrade { id, .. }) if bug.strikes(Bug::ReleaseToDowngrade) => {
                vec![Some(ToService::End(id))]
            }
            message => {
                let is_of = |(of, _): &mut (ClientNo, u64)| *of == client;
                let forgotten = self.unlimited.extract_if(.., is_of).map(|(_, id)| {
                    bug.strikes(Bug::ForgetLimit);
                    Some(ToService::Downgrade(Downgrade { id, mode: Mode::Shared }))
                });
                forgotten.chain([Some(message)]).collect()
            }
        }
    }

    /// Returns true if the service waits for the claim of a client.
    pub(crate) fn awaits_claim(&self, client: ClientNo) -> bool {
        self.claiming.contains_key(&client)
    }

    /// Changes the messages to a client.
    pub(crate) fn spoil(&mut self, client: ClientNo, messages: Vec<ToClient>) -> Vec<ToClient> {
        let mut spoilt = Vec::new();
        let bug = self.bug.clone();
        for message in messages {
            match message {
                ToClient::Granted(mut granted) => {
                    let last = std::mem::replace(&mut self.last_token, granted.token);
                    if client == VICTIM {
                        if bug.strikes_once(Bug::DropGrant) {
                            continue;
                        } else if bug.strikes_once(Bug::RepeatToken) {
                            granted.token = last;
                        } else if bug.strikes_once(Bug::ShrinkToken) {
                            granted.token = last - 5;
                        }
                    }
                    spoilt.push(ToClient::Granted(granted));
                }
                ToClient::Answer(answer) => {
                    spoilt.push(ToClient::Answer(answer));
                    if client == VICTIM && bug.strikes_once(Bug::GrantTwo) {
                        let (id, token) = (self.last_request, self.last_token + 1);
                        spoilt.push(ToClient::Granted(Granted::new(id, token)));
                    }
                }
                message => spoilt.push(message),
            }
        }
        spoilt
    }

    /// Notes that the disk has no room: a growth of the tables fails.
    pub(crate) fn fill_disk(&mut self) {
        self.is_disk_full = true;
    }

    /// Leaves the tables as a killed service does.
    pub(crate) fn spoil_tables(&mut self) {
        let Some(folder) = &self.folder else { return };
        let table = folder.join("requests.table");
        if let Some(before) = self.before_steal.take() {
            self.bug.strikes(Bug::ForgetSteal);
            fs::write(&table, before).expect("a table");
        }
        if std::mem::take(&mut self.is_disk_full) {
            // Some file systems lengthen a file by a part of what they have no room for.
            let mut bytes = fs::read(&table).expect("a table");
            bytes.resize(bytes.len() + TAIL_BYTES, 0);
            if self.bug.strikes(Bug::LoseTables) {
                bytes.truncate(TAIL_BYTES);
            }
            fs::write(&table, bytes).expect("a table");
        }
    }
}

//! The clients of a session: opened in a partition, and closed.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use navlocks_wire::{ClientKey, Fault, FaultCode, RequestKey};

use super::Hub;
use super::backlog::Ending;
use super::partitions::PartitionKey;
use super::sessions::{CLIENT_BYTES, Client, Known};
use super::shares::Share;
use crate::config::Limits;

impl Hub {
    /// Opens a client in a bucket of its peer.
    pub(super) fn open(&mut self, number: u32, client: u64, bucket: &str) -> Result<(), Fault> {
        let Self { limits, partitions, tokens, deadlocks, common, store, .. } = self;
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        let refused = |text: String| Err(Fault::new(FaultCode::Limit, text));
        if session.has_no_room(limits) {
            return Err(too_many_clients(limits));
        }
        if bucket.len() > limits.partition_name_bytes_max {
            let max = limits.partition_name_bytes_max;
            return refused(format!("the name of a partition has at most {max} bytes"));
        }
        if let Some(text) = session.over_bytes(limits, CLIENT_BYTES) {
            return refused(text);
        }
        let key = PartitionKey::of(&session.peer, bucket);
        if self.slot.is_some_and(|slot| !slot.has(&key)) {
            return Err(Fault::moved(None));
        }
        let partition = match partitions.find(&key) {
            Some(partition) => partition,
            None => {
                let Limits { partitions_max, partitions_per_tenant_max, .. } = *limits;
                if session.share.partitions.get() >= partitions_per_tenant_max {
                    return refused(format!(
                        "the tenant has {partitions_per_tenant_max} partitions, and takes no more: close clients in others"
                    ));
                }
                let partitions_open =
                    common.shares.borrow().together(&session.peer, |it| it.partitions.get());
                if partitions_open >= partitions_max {
                    return refused(format!(
                        "the service has {partitions_max} partitions, and takes no more"
                    ));
                }
                let (share, table_key) = (session.share.clone(), store.key);
                // The moment of the message that opens the client.
                let now = session.heard;
                let recorder = common.recording.recorder(&key, now);
                let index = partitions.insert(key, tokens.next(), *deadlocks, share, table_key);
                partitions[index].bound_deadlock_search(limits.deadlock_wait_entries_max);
                if let Some(recorder) = recorder {
                    partitions[index].begin_recording(recorder, now);
                }
                index
            }
        };
        let process = session.process.clone();
        let id = partitions[partition].add_client(ClientKey::new(number, client), process);
        let lost = HashMap::new();
        session.clients.insert(client, Client { partition, id, lost });
        session.recount();
        Ok(())
    }

    /// Opens a client. One that cannot be opened is refused alone: its requests, questions and
    /// subscriptions get the fault.
    pub(crate) fn open_or_refuse(&mut self, number: u32, client: u64, bucket: &str) {
        let Err(fault) = self.open(number, client, bucket) else { return };
        let Some(session) = self.sessions.get_mut(number) else { return };
        // Without room not even that is remembered: the fault is the same for all of these.
        if !session.has_no_room(&self.limits) {
            session.unopened.insert(client, fault);
            session.recount();
        }
    }

    /// Ends a client of a session.
    pub(crate) fn close(&mut self, number: u32, client: u64, now: Instant) -> Result<(), Fault> {
        if let Some((share, closed)) = self.remove_client(number, client)? {
            self.end_in_turns(Ending::of_clients(number, share, vec![closed]), now);
        }
        Ok(())
    }

    /// Removes a client from its session. Returns it if it is to be ended in its partition.
    pub(super) fn remove_client(
        &mut self,
        number: u32,
        client: u64,
    ) -> Result<Option<(Rc<Share>, Client)>, Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(None) };
        if session.client(client)?.is_none() {
            session.unopened.remove(&client);
            session.recount();
            return Ok(None);
        }
        let Some(closed) = session.clients.remove(&client) else { return Ok(None) };
        for &request in closed.lost.keys() {
            if let Some(Known::Lost { slot, .. }) = session.requests.remove(request) {
                self.registry.end_lost(RequestKey::new(number, request), slot);
            }
        }
        session.recount();
        Ok(Some((session.share.clone(), closed)))
    }

    /// Ends a client in its partition. Returns the numbers of its requests.
    pub(super) fn end_client(&mut self, client: &Client, now: Instant) -> Vec<u64> {
        let guests = self.remove_guests(client);
        let (partitions, mut context) = self.context(now);
        let partition = &mut partitions[client.partition];
        let mut ended = partition.end_client(client.id, &mut context);
        ended.extend(guests);
        if partition.manager().client_count() == 0 {
            let recorder = partition.recorder.take();
            partitions.remove(client.partition);
            if let Some(recorder) = recorder {
                recorder.end(false, now);
            }
        }
        self.admit(now);
        ended
    }
}

/// Returns the fault of a client beyond the limit of its session.
pub(super) fn too_many_clients(limits: &Limits) -> Fault {
    let max = limits.clients_per_session_max;
    let text = format!("a session has at most {max} clients: close some first");
    Fault::new(FaultCode::Limit, text)
}

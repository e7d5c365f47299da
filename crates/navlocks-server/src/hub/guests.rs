//! How requests pass the waiting room: in, on to their partitions, and out.

use std::rc::Rc;
use std::time::Instant;

use navlocks_core::{Name, Wait};
use navlocks_wire::{LossCause, Pending, RequestKey, ToClient};

use super::Hub;
use super::backlog::{Unfinished, WORK_PER_TURN};
use super::partitions::{NewRequest, PartitionIndex};
use super::sessions::{Client, Known};
use crate::store::RequestRecord;

impl Hub {
    /// Seats a request in the room if an absent session of an earlier service may come before it.
    /// Otherwise returns it.
    #[cold]
    pub(super) fn recover(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        now: Instant,
    ) -> Option<NewRequest> {
        let hashes = self.hashes_of(partition, &new_request);
        let open = !self.found.hides_holders();
        match new_request.request.wait {
            Wait::Steal | Wait::StealAll if open => {
                self.rob_absent(partition, &new_request, &hashes);
                self.go_on_to(partition, new_request, now);
                self.admit(now);
                None
            }
            _ => self.hold_back(partition, new_request, &hashes, open),
        }
    }

    /// Returns the hashes of the names of a request, as the registry keeps them.
    pub(super) fn hashes_of(
        &self,
        partition: PartitionIndex,
        new_request: &NewRequest,
    ) -> Vec<u64> {
        self.partitions[partition].hashes(&new_request.request.scope).collect()
    }

    /// Seats a request in the room. Returns it if it may pass an open room.
    pub(super) fn hold_back(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        hashes: &[u64],
        open: bool,
    ) -> Option<NewRequest> {
        let key = new_request.key();
        let passed = self.room.enter(partition, new_request, hashes, open);
        if passed.is_none() {
            self.note_guest(partition, key);
        }
        passed
    }

    /// Seats a request in the room until [`admit`](Self::admit), even if it may pass.
    pub(super) fn wait_for_admission(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        hashes: &[u64],
        now: Instant,
    ) {
        if let Some(invalid) = self.hold_back(partition, new_request, hashes, false) {
            self.go_on_to(partition, invalid, now);
        }
    }

    /// Notes in all books that a request is in the room.
    pub(super) fn note_guest(&mut self, partition: PartitionIndex, key: RequestKey) {
        let epoch = self.registry.log().map(|log| log.epoch());
        let Some(new_request) = self.room.guest_mut(key) else { return };
        let memory = new_request.memory() as u32;
        self.partitions[partition].take_guest(new_request);
        if let Some(place) = new_request.queue_place(epoch) {
            new_request.is_placed = true;
            let pending = ToClient::Pending(Pending { id: key.request, place });
            self.sessions.say(key.session, &pending);
        }
        if let Some(session) = self.sessions.get_mut(key.session) {
            session.requests.insert(key.request, Known::Guest { partition }, memory);
        }
    }

    /// Lets the guests that are ready go on to their partitions, unless holders are hidden: at once
    /// as many as one turn takes, and the others in turns.
    pub(super) fn admit(&mut self, now: Instant) {
        let mut left = WORK_PER_TURN;
        while !self.found.hides_holders()
            && let Some(partition) = self.room.next_woken()
        {
            left = self.admit_to(partition, left, now);
        }
    }

    /// Lets at most so many guests go on to a partition, and the others later. Returns how many
    /// more there could have been.
    pub(super) fn admit_to(
        &mut self,
        partition: PartitionIndex,
        mut left: usize,
        now: Instant,
    ) -> usize {
        while left > 0
            && let Some(new_request) = self.room.next(partition)
        {
            left -= 1;
            self.admitted += 1;
            self.partitions[partition].lose_guest(&new_request);
            self.go_on_to(partition, new_request, now);
        }
        if self.room.is_ready(partition) {
            self.unfinished.push_back(Unfinished::Admission(partition));
        }
        left
    }

    /// Gives a request to its partition.
    #[inline]
    pub(super) fn go_on_to(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        now: Instant,
    ) {
        let (key, memory) = (new_request.key(), new_request.memory() as u32);
        let (partitions, mut context) = self.context(now);
        let id = partitions[partition].request(new_request, &mut context);
        let Some(session) = self.sessions.get_mut(key.session) else { return };
        match id {
            Some(id) => {
                session.requests.insert(key.request, Known::Live { partition, id }, memory);
            }
            // Lost already, or refused.
            None if matches!(session.requests.get(key.request), Some(Known::Guest { .. })) => {
                session.requests.remove(key.request);
            }
            None => {}
        }
    }

    /// Removes a guest that its client gives up.
    pub(super) fn remove_guest(&mut self, key: RequestKey) {
        if let Some((partition, new_request)) = self.room.leave(key) {
            self.partitions[partition].lose_guest(&new_request);
            self.registry.end_request(new_request.slot);
        }
    }

    /// Removes the guests of a client. Returns their numbers.
    pub(super) fn remove_guests(&mut self, client: &Client) -> Vec<u64> {
        let guests = self.room.guests_of(client.partition, client.id);
        guests.iter().for_each(|&key| self.remove_guest(key));
        guests.into_iter().map(|key| key.request).collect()
    }

    /// Takes away what absent sessions hold on these names, and with the older steal all that waits
    /// in the room for them too.
    fn rob_absent(&mut self, partition: PartitionIndex, thief: &NewRequest, hashes: &[u64]) {
        let cause = LossCause::Stolen(thief.key());
        let words = self.partitions[partition].describe_thief(thief, &self.sessions);
        let mut victims = self.room.holders(hashes);
        if thief.request.wait == Wait::StealAll {
            victims.extend(self.room.waiters(hashes));
        }
        for key in victims {
            self.lose_in_room(key, cause, Some(words.clone()));
        }
    }

    /// Ends all that a recorded request held back.
    pub(super) fn dismiss(&mut self, record: &RequestRecord) {
        self.holds.end(record.key());
        self.room.dismiss(record);
    }

    pub(super) fn lose_in_room(
        &mut self,
        key: RequestKey,
        cause: LossCause,
        thief: Option<Rc<str>>,
    ) {
        if let Some(record) = self.lose_absent(key, cause, thief.clone()) {
            self.dismiss(&record);
        } else if let Some((partition, new_request)) = self.room.leave(key) {
            self.partitions[partition].lose_guest(&new_request);
            self.lose_claimed(&new_request, cause, thief);
        }
    }

    /// Takes away what absent sessions hold on a name. Returns how many locks there were.
    pub(super) fn force_release_absent(
        &mut self,
        partition: PartitionIndex,
        name: &Name,
        now: Instant,
    ) -> usize {
        let hashes: Vec<u64> = self.partitions[partition].hashes(&name.clone().into()).collect();
        let victims = self.room.holders(&hashes);
        victims.iter().for_each(|&key| self.lose_in_room(key, LossCause::ForceReleased, None));
        self.admit(now);
        victims.len()
    }
}

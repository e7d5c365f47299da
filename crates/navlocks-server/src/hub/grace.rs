//! Grace: the time in which a new owner of a slot knows sessions and not their locks.
//!
//! Each partition has its own. When every session that may be in it has claimed or ended, its
//! claims are judged together: held ones by their tokens, then pending ones by their places, then
//! the requests that came meanwhile.

mod missing;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use navlocks_core::Wait;
use navlocks_wire::{
    self as wire, Answer, Ask, Fault, FaultCode, LocksOf, Question, QueuePlace, Reply, ToClient,
};

use super::Hub;
use super::partitions::{NewRequest, PartitionIndex};
use super::verdict::{Verdict, judge};
use crate::store::RequestState;

pub(crate) use missing::Missing;

/// The questions that wait for the end of grace: in the partition with a mark, or in all. Each has
/// a number among those, and its session.
pub(super) type Questions = BTreeMap<(Option<u64>, u64), (u32, Ask)>;

/// The most questions that wait for the end of grace, of one session and in all.
const QUESTIONS_PER_SESSION_MAX: usize = 16;
const QUESTIONS_MAX: usize = 10_000;

/// A request that a client claims, until it is judged.
struct Claimed {
    session: u32,
    request: wire::Request,
}

impl Hub {
    /// Notes that the claim of a session is whole. It is judged in each partition when all others
    /// of that partition are whole, even if its connection breaks before.
    pub(super) fn end_claim(&mut self, number: u32, now: Instant) {
        let Self { sessions, partitions, found, .. } = self;
        let Some(session) = sessions.get_mut(number) else { return };
        let (Some(claim), Some(absent)) = (&mut session.claim, &session.absent) else { return };
        claim.is_whole = true;
        found.claimed(absent);
        for request in claim.iter() {
            if let Some(client) = session.clients.get(&request.client) {
                let mark = partitions[client.partition].key.mark();
                found.missing.waiting(mark).claimed.push((number, request.id));
            }
        }
        self.check_grace(now);
    }

    /// Ends the grace of each partition for which every session of the earlier owner has claimed or
    /// ended, and that of the slot with the last of them.
    pub(super) fn check_grace(&mut self, now: Instant) {
        if !self.found.whole || self.is_retired() {
            return;
        }
        if self.found.is_claimed() {
            self.end_grace(now);
            return;
        }
        while let Some((mark, waiting)) = self.found.missing.next_complete() {
            self.judge_claims(waiting.claimed, now);
            waiting.partitions.into_iter().for_each(|it| self.room.rouse(it));
            self.admit(now);
            self.answer_questions(Some(mark), now);
        }
    }

    fn end_grace(&mut self, now: Instant) {
        self.found.whole = false;
        if let Some(log) = self.registry.log_mut() {
            // Before the first grant: a session that has not claimed by now never can.
            log.end_grace();
        }
        let mut numbers = self.sessions.numbers();
        numbers.sort_unstable();
        numbers.retain(|&it| self.sessions.get(it).is_some_and(|session| session.claim.is_some()));
        let mut claimed = Vec::new();
        for &number in &numbers {
            let claim = self.sessions.get(number).and_then(|session| session.claim.as_ref());
            claimed.extend(claim.iter().flat_map(|it| it.numbers()).map(|it| (number, it)));
        }
        self.judge_claims(claimed, now);
        for number in numbers {
            self.take_claim(number);
        }
        self.found.proofs.clear();
        let waiting = self.found.missing.take_all();
        waiting.flat_map(|it| it.partitions).for_each(|it| self.room.rouse(it));
        self.admit(now);
        while let Some(&(mark, _)) = self.questions.keys().next() {
            self.answer_questions(mark, now);
        }
    }

    /// Judges requests of claims that are whole: held ones from the largest token down, then
    /// pending ones by their places.
    fn judge_claims(&mut self, claimed: Vec<(u32, u64)>, now: Instant) {
        let (mut held, mut pending) = (Vec::new(), Vec::new());
        for (session, number) in claimed {
            let claim = self.sessions.get_mut(session).and_then(|it| it.claim.as_mut());
            // Its client has given it up, or has left.
            let Some(request) = claim.and_then(|it| it.take(number, now)) else { continue };
            let list = if request.token.is_some() { &mut held } else { &mut pending };
            list.push(Claimed { session, request });
        }
        // Where two claims conflict, which no correct owner causes, the larger token wins.
        held.sort_by_key(|it| (Reverse(it.request.token), it.session, it.request.id));
        let last = QueuePlace { epoch: u64::MAX, number: u64::MAX };
        pending.sort_by_key(|it| (it.request.place.unwrap_or(last), it.session, it.request.id));
        for claimed in held {
            self.seat(claimed, now);
        }
        self.queue(pending, now);
    }

    /// Returns true if the record of a session says that it may have clients in this partition.
    fn is_recorded_in(&self, session: u32, partition: PartitionIndex) -> bool {
        let mark = self.partitions[partition].key.mark();
        let absent = self.sessions.get(session).and_then(|session| session.absent.as_ref());
        absent.is_some_and(|it| it.may_be_in(mark))
    }

    /// Seats a lock that its client still holds, unless it was taken away.
    fn seat(&mut self, claimed: Claimed, now: Instant) {
        let token = claimed.request.token.unwrap_or_default();
        let Claimed { session, request } = claimed;
        let Some((partition, new_request)) = self.claimed_request(session, request, 0, now) else {
            return;
        };
        // Its partition was recorded before the grant.
        let was_given = token <= self.found.given && self.is_recorded_in(session, partition);
        let given = was_given.then_some(RequestState::Held(token));
        match self.judge_in_grace(&new_request, given, Some(token)) {
            Verdict::Lost(cause) => {
                if given.is_none() {
                    let session = new_request.client.session;
                    tracing::error!(session, token, "a token is claimed that was never given");
                }
                self.lose_claimed(&new_request, cause, None);
            }
            _ => self.restore(partition, &new_request, (token, false), now),
        }
    }

    /// Judges a claimed request of a slot, whose registry knows only what was taken away.
    fn judge_in_grace(
        &self,
        new_request: &NewRequest,
        known: Option<RequestState>,
        token: Option<u64>,
    ) -> Verdict {
        judge(known, self.found.taken.get(&new_request.key()).copied(), token)
    }

    /// Queues claimed requests before all that came during grace.
    fn queue(&mut self, pending: Vec<Claimed>, now: Instant) {
        let overtaking = pending.iter().filter_map(|it| it.request.place);
        let overtaking = overtaking.filter(|place| place.epoch == 0 && place.number > 0);
        let first = overtaking.map(|place| place.number).min();
        let mut place = self.sequence.make_room(pending.len() as u64, first);
        for claimed in pending {
            let is_placed = claimed.request.place.is_some();
            let Claimed { session, request } = claimed;
            let claimed = self.claimed_request(session, request, 0, now);
            let Some((partition, new_request)) = claimed else { continue };
            if let Verdict::Lost(cause) = self.judge_in_grace(&new_request, None, None) {
                self.lose_claimed(&new_request, cause, None);
                continue;
            }
            let key = new_request.key();
            let hashes = self.hashes_of(partition, &new_request);
            if !self.is_recorded_in(session, partition) {
                // It was never queued: the grace of its partition did not wait for it.
                let place = self.sequence.take(new_request.request.wait == Wait::Overtake);
                let last = NewRequest { place, ..new_request };
                self.wait_for_admission(partition, last, &hashes, now);
                continue;
            }
            self.room.enter_first(
                partition,
                NewRequest { place, is_placed, ..new_request },
                &hashes,
            );
            self.note_guest(partition, key);
            place += 1;
        }
    }

    /// Answers a question, or lets it wait for the end of grace: until then the answer would be a
    /// guess.
    pub(super) fn ask_in_grace(
        &mut self,
        number: u32,
        ask: Ask,
        now: Instant,
    ) -> Result<(), Fault> {
        let Some(session) = self.sessions.get(number) else { return Ok(()) };
        let partition = session.client(ask.client)?.map(|client| client.partition);
        let mark = match (&ask.question, partition) {
            (Question::Locks(LocksOf::Unclaimed), _) | (_, None) => {
                return self.ask(number, ask, now);
            }
            (Question::Locks(LocksOf::All), _) => None,
            (_, Some(partition)) if !self.hides_holders_in(partition) => {
                return self.ask(number, ask, now);
            }
            (_, Some(partition)) => Some(self.partitions[partition].key.mark()),
        };
        let own = self.questions.values().filter(|(asker, _)| *asker == number);
        if self.questions.len() < QUESTIONS_MAX && own.count() < QUESTIONS_PER_SESSION_MAX {
            mark.into_iter().for_each(|mark| _ = self.found.missing.waiting(mark));
            let last = self.questions.range((mark, 0)..=(mark, u64::MAX)).next_back();
            let next = last.map_or(0, |((_, last), _)| last + 1);
            self.questions.insert((mark, next), (number, ask));
            return Ok(());
        }
        let text = "the locks are being recovered, and many questions wait for that: ask again";
        let reply = Reply::Refused(Fault::new(FaultCode::Limit, text));
        self.sessions.say(number, &ToClient::Answer(Answer { id: ask.id, reply }));
        Ok(())
    }

    /// Answers the questions that have waited for the grace of a partition, or of all.
    fn answer_questions(&mut self, mark: Option<u64>, now: Instant) {
        let asked = self.questions.range((mark, 0)..=(mark, u64::MAX));
        let asked: Vec<_> = asked.map(|(&key, _)| key).collect();
        for key in asked {
            let Some((number, ask)) = self.questions.remove(&key) else { continue };
            // A session that asked something wrong would have ended when it asked.
            let _answered = self.ask(number, ask, now);
        }
    }
}

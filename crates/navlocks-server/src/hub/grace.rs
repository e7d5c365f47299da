//! Grace: the time in which a new owner of a slot knows sessions and not their locks.
//!
//! Claims are judged together when every session has claimed or ended: held ones by their tokens,
//! then pending ones by their places, then the requests that came meanwhile.

use std::cmp::Reverse;
use std::time::Instant;

use navlocks_wire::{
    self as wire, Answer, Ask, Fault, FaultCode, LocksOf, Question, QueuePlace, Reply, ToClient,
};

use super::Hub;
use super::partitions::NewRequest;
use super::verdict::{Verdict, judge};
use crate::store::RequestState;

/// The most questions that wait for the end of grace, of one session and in all.
const QUESTIONS_PER_SESSION_MAX: usize = 16;
const QUESTIONS_MAX: usize = 10_000;

/// A request that a client claims, until it is judged.
struct Claimed {
    session: u32,
    request: wire::Request,
}

impl Hub {
    /// Ends grace if every session of the earlier owner has claimed or ended.
    pub(super) fn check_grace(&mut self, now: Instant) {
        if !self.found.whole || !self.found.is_claimed() || self.is_retired() {
            return;
        }
        self.found.whole = false;
        if let Some(log) = self.registry.log_mut() {
            // Before the first grant: a session that has not claimed by now never can.
            log.end_grace();
        }
        let (held, pending) = self.take_claims(now);
        for claimed in held {
            self.seat(claimed, now);
        }
        self.queue(pending, now);
        self.admit(now);
        for (number, ask) in std::mem::take(&mut self.questions) {
            // A session that asked something wrong would have ended when it asked.
            let _answered = self.ask(number, ask, now);
        }
    }

    /// Takes all claims: held requests from the largest token down, pending ones by their places.
    fn take_claims(&mut self, now: Instant) -> (Vec<Claimed>, Vec<Claimed>) {
        let mut numbers = self.sessions.numbers();
        numbers.sort_unstable();
        let (mut held, mut pending) = (Vec::new(), Vec::new());
        for number in numbers {
            let Some((claim, _)) = self.take_claim(number) else { continue };
            let claimed =
                claim.into_values(now).map(|request| Claimed { session: number, request });
            let (held_here, pending_here): (Vec<_>, Vec<_>) =
                claimed.partition(|it| it.request.token.is_some());
            held.extend(held_here);
            pending.extend(pending_here);
        }
        // Where two claims conflict, which no correct owner causes, the larger token wins.
        held.sort_by_key(|it| Reverse(it.request.token));
        let last = QueuePlace { epoch: u64::MAX, number: u64::MAX };
        pending.sort_by_key(|it| (it.request.place.unwrap_or(last), it.session, it.request.id));
        (held, pending)
    }

    /// Seats a lock that its client still holds, unless it was taken away.
    fn seat(&mut self, claimed: Claimed, now: Instant) {
        let token = claimed.request.token.unwrap_or_default();
        let Claimed { session, request } = claimed;
        let Some((partition, new_request)) = self.claimed_request(session, request, 0, now) else {
            return;
        };
        let given = (token <= self.found.given).then_some(RequestState::Held(token));
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
            self.room.enter_first(
                partition,
                NewRequest { place, is_placed, ..new_request },
                &hashes,
            );
            self.note_guest(partition, key);
            place += 1;
        }
    }

    /// Lets a question wait for the end of grace: until then the answer would be a guess.
    pub(super) fn ask_later(&mut self, number: u32, ask: Ask, now: Instant) -> Result<(), Fault> {
        if matches!(ask.question, Question::Locks(LocksOf::Unclaimed)) {
            return self.ask(number, ask, now);
        }
        let own = self.questions.iter().filter(|(asker, _)| *asker == number);
        if self.questions.len() < QUESTIONS_MAX && own.count() < QUESTIONS_PER_SESSION_MAX {
            self.questions.push((number, ask));
            return Ok(());
        }
        let text = "the locks are being recovered, and many questions wait for that: ask again";
        let reply = Reply::Refused(Fault::new(FaultCode::Limit, text));
        self.sessions.say(number, &ToClient::Answer(Answer { id: ask.id, reply }));
        Ok(())
    }
}

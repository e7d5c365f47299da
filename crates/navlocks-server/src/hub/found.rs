//! Found sessions: those of an earlier service, detached, whose clients have not claimed yet.
//!
//! The earlier service left a registry of its sessions and of their live requests. A request that
//! conflicts with one of them waits in the room, and no other. A session leaves this list when its
//! client has claimed, when its lease has passed, or when its process is gone.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{self as wire, LossCause, RequestKey};

use super::Hub;
use super::backlog::{Ending, WORK_PER_TURN};
use crate::store::{
    Found, Registry, RequestRecord, RequestState, SessionRecord, Unknown, boot_ms, millis,
    with_margin,
};

/// The sessions that are waited for.
#[derive(Debug, Default)]
pub(crate) struct FoundSessions {
    unclaimed: HashMap<u32, UnclaimedSession>,
    /// How many of them have claimed, and wait for the others.
    claimed: usize,
    /// The registry was lost: clients of the earlier service may hold any name.
    pub(crate) blind: bool,
    /// The registry has no requests, so nothing is granted before all sessions have claimed.
    pub(crate) whole: bool,
    /// In a cluster: the requests that must not be claimed, and why.
    pub(crate) taken: HashMap<RequestKey, LossCause>,
    /// In a cluster: no token above this was ever given.
    pub(crate) given: u64,
}

/// A session that was not claimed yet.
#[derive(Debug)]
pub(crate) struct UnclaimedSession {
    pub(crate) record: SessionRecord,
    pub(crate) requests: HashMap<u64, RequestRecord>,
    /// The thieves of those that were stolen meanwhile, in words.
    pub(crate) thieves: HashMap<u64, Rc<str>>,
    /// When its lease has passed for certain; none over a Unix socket.
    until: Option<Instant>,
    /// A connection claims it now: the lease counts as that of every other session.
    claiming: bool,
    /// Its claim is whole, and waits for those of the other sessions.
    claimed: bool,
}

impl UnclaimedSession {
    /// Returns true if its lease has passed.
    pub(crate) fn is_lapsed(&self, now: Instant) -> bool {
        !self.claiming && self.until.is_some_and(|at| at <= now)
    }
}

/// Returns how long a session is waited for, and until when. Earlier services may have waited for a
/// part of its lease.
fn left(lease: Duration, noted_ms: u64, boot_ms: u64) -> (Duration, u64) {
    let whole = with_margin(lease);
    match noted_ms {
        0 => (whole, boot_ms + millis(whole)),
        until => (whole.min(Duration::from_millis(until.saturating_sub(boot_ms))), until),
    }
}

impl FoundSessions {
    /// Begins with what the earlier service left. Notes in the registry until when each session is
    /// waited for, so that services which are killed in turn wait for one lease in all.
    pub(crate) fn new(found: Found, registry: &mut Registry, now: Instant) -> Self {
        // At the moment of `now`, because both are the end of one wait.
        let boot_ms = boot_ms();
        let Found { sessions, requests, unknown, whole, taken, given } = found;
        let blind = unknown != Unknown::None;
        let mut all = Self { blind, whole, taken, given, ..Self::default() };
        for record in sessions {
            let until = record.lease.map(|lease| {
                // The earlier owner of a slot sent nothing after it was won, so a lease is enough.
                let slot = || (lease, boot_ms + millis(lease));
                let (left, until_ms) =
                    if whole { slot() } else { left(lease, record.until_ms, boot_ms) };
                registry.set_until(record.slot, until_ms);
                now + left
            });
            let (requests, thieves) = (HashMap::new(), HashMap::new());
            let (claiming, claimed) = (false, false);
            let unclaimed =
                UnclaimedSession { requests, thieves, until, record, claiming, claimed };
            all.unclaimed.insert(unclaimed.record.number, unclaimed);
        }
        for request in requests {
            if let Some(unclaimed) = all.unclaimed.get_mut(&request.session) {
                unclaimed.requests.insert(request.number, request);
            }
        }
        all
    }

    /// Returns true if no session is waited for.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.unclaimed.is_empty() && !self.hides_holders()
    }

    /// Returns true if any name may be held by a client of which only the session is known, or not
    /// even that.
    #[inline]
    pub(crate) fn hides_holders(&self) -> bool {
        self.blind || self.whole
    }

    /// Returns true if every session that is waited for has claimed.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed == self.unclaimed.len()
    }

    /// Notes that the claim of a session is whole.
    pub(crate) fn end_claim(&mut self, session: u32) {
        if let Some(unclaimed) = self.unclaimed.get_mut(&session) {
            self.claimed += usize::from(!unclaimed.claimed);
            unclaimed.claimed = true;
        }
    }

    /// Returns how many sessions of the earlier service have not claimed.
    pub(crate) fn unclaimed(&self) -> usize {
        self.unclaimed.len() - self.claimed
    }

    /// Returns the largest number of a found session, or zero.
    pub(crate) fn last_number(&self) -> u32 {
        self.unclaimed.keys().max().copied().unwrap_or_default()
    }

    /// Returns true if sessions of the earlier service are waited for by name.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.unclaimed.is_empty()
    }

    /// Returns the requests of all sessions that are waited for.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.unclaimed.values().flat_map(|it| it.requests.values())
    }

    /// Returns the session of a cluster with this proof, if no connection claims it.
    pub(crate) fn find(&self, proof: &str) -> Option<u32> {
        let waiting = self.unclaimed.values().filter(|it| !it.claiming);
        waiting.map(|it| &it.record).find(|it| it.proof == proof).map(|it| it.number)
    }

    pub(crate) fn get(&self, session: u32) -> Option<&UnclaimedSession> {
        self.unclaimed.get(&session)
    }

    /// Takes a session off the list.
    pub(crate) fn take(&mut self, session: u32) -> Option<UnclaimedSession> {
        let unclaimed = self.unclaimed.remove(&session)?;
        self.claimed -= usize::from(unclaimed.claimed);
        Some(unclaimed)
    }

    /// Takes a live request away from a session that is waited for. Returns what it was.
    pub(crate) fn lose(
        &mut self,
        key: RequestKey,
        cause: LossCause,
        thief: Option<Rc<str>>,
        registry: &mut Registry,
    ) -> Option<RequestRecord> {
        let unclaimed = self.unclaimed.get_mut(&key.session)?;
        let request = unclaimed.requests.get_mut(&key.request)?;
        unclaimed.thieves.extend(thief.map(|words| (key.request, words)));
        registry.lose(key, request.slot, cause);
        let lost = request.clone();
        request.state = RequestState::Lost(cause);
        Some(lost)
    }

    /// Notes that a connection claims a session: from now on its client may count its lease anew.
    pub(crate) fn begin_claim(&mut self, session: u32, registry: &mut Registry) {
        if let Some(unclaimed) = self.unclaimed.get_mut(&session) {
            registry.set_until(unclaimed.record.slot, 0);
            unclaimed.claiming = true;
        }
    }

    /// Notes that a claim broke off. The client was last heard of at this moment, and may count its
    /// lease from there.
    pub(crate) fn abandon_claim(&mut self, session: u32, heard: Instant, registry: &mut Registry) {
        if let Some(unclaimed) = self.unclaimed.get_mut(&session) {
            if let Some(lease) = unclaimed.record.lease {
                let until_ms = boot_ms() + millis(with_margin(lease));
                registry.set_until(unclaimed.record.slot, until_ms);
            }
            self.claimed -= usize::from(unclaimed.claimed);
            (unclaimed.claiming, unclaimed.claimed) = (false, false);
            unclaimed.until = unclaimed.record.lease.map(|lease| heard + with_margin(lease));
        }
    }

    /// Returns the sessions whose leases have passed, in order of their numbers.
    pub(crate) fn lapsed(&self, now: Instant) -> Vec<u32> {
        let lapsed = self.unclaimed.iter().filter(|(_, it)| it.is_lapsed(now));
        let mut numbers: Vec<u32> = lapsed.map(|(&number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns how long it takes at least until the next lease has passed.
    pub(crate) fn next_lapse(&self, now: Instant) -> Option<Duration> {
        let waiting = self.unclaimed.values().filter(|it| !it.claiming);
        let next = waiting.filter_map(|it| it.until).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// Forgets which clients listen at their paths of presence: the paths are gone.
    pub(crate) fn forget_presence(&mut self) {
        self.unclaimed.values_mut().for_each(|it| it.record.present = false);
    }

    /// Returns the leases of all sessions.
    pub(crate) fn leases(&self) -> impl Iterator<Item = Option<Duration>> + '_ {
        self.unclaimed.values().map(|it| it.record.lease)
    }

    /// Returns the sessions of a Unix socket, which live as long as their processes.
    pub(crate) fn local(&self) -> impl Iterator<Item = &SessionRecord> {
        self.unclaimed.values().filter(|it| it.until.is_none()).map(|it| &it.record)
    }

    /// Describes the sessions of these parties for people who ask what is waited for.
    pub(crate) fn describe(
        &self,
        is_visible: impl Fn(&SessionRecord) -> bool,
        now: Instant,
    ) -> Vec<wire::UnclaimedSession> {
        let mut described: Vec<wire::UnclaimedSession> = self
            .unclaimed
            .values()
            .filter(|it| !it.claimed && is_visible(&it.record))
            .map(|it| wire::UnclaimedSession {
                session: it.record.number,
                pid: it.record.process.map(|process| process.pid),
                left_ms: it.until.map(|at| at.saturating_duration_since(now).as_millis() as u64),
                held: it.requests.values().filter(|it| it.is_held()).count() as u64,
            })
            .collect();
        described.sort_unstable_by_key(|it| it.session);
        described
    }
}

impl Hub {
    /// Makes the registry again where it was removed.
    pub(crate) fn keep_registry(&mut self) -> io::Result<()> {
        if self.registry.keep()? {
            self.sessions.forget_presence();
            self.found.forget_presence();
        }
        Ok(())
    }

    /// Ends a session of an earlier service whose client is gone and has not claimed it. A session
    /// that was claimed goes on.
    pub fn end_unclaimed(&mut self, number: u32, now: Instant) {
        if self.found.get(number).is_none() {
            return;
        }
        if self.sessions.get(number).is_some() {
            // Its claim is under way, and counts as the session's end.
            self.end(number, None, now);
            return;
        }
        self.forget_unclaimed(number, now);
        self.settle(now);
    }

    /// Removes a session of an earlier service, and admits what it held back.
    pub(super) fn forget_unclaimed(&mut self, number: u32, now: Instant) {
        let Some(unclaimed) = self.found.take(number) else { return };
        self.registry.end_session(unclaimed.record.slot, false);
        self.end_records(unclaimed.requests.into_values());
        self.admit(now);
        self.check_grace(now);
    }

    /// Drops a claim that is not whole because its connection broke. The session can be claimed
    /// again.
    pub(super) fn abandon_claim(&mut self, number: u32, now: Instant) {
        let Some(mut session) = self.sessions.remove(number) else { return };
        self.found.abandon_claim(number, session.heard, &mut self.registry);
        let clients = std::mem::take(&mut session.clients).into_values().collect();
        self.end_in_turns(Ending::of_clients(number, session.share.clone(), clients), now);
    }

    /// Ends the sessions of an earlier service whose leases have passed, as many as one turn takes.
    /// Returns how long it takes until the next one has: no time at all if more have passed.
    pub fn check_unclaimed(&mut self, now: Instant) -> Option<Duration> {
        let before = self.admitted;
        for (ended, number) in self.found.lapsed(now).into_iter().enumerate() {
            if ended + self.admitted - before >= WORK_PER_TURN {
                return Some(Duration::ZERO);
            }
            self.metrics.lapsed_leases.inc();
            self.end_unclaimed(number, now);
        }
        self.found.next_lapse(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_owner_of_a_slot_waits_for_the_lease_of_a_session_and_no_longer() {
        let (now, lease) = (Instant::now(), Duration::from_secs(60));
        let wait = |whole| {
            let session = SessionRecord { lease: Some(lease), ..SessionRecord::default() };
            let found = Found { sessions: vec![session], whole, ..Found::default() };
            FoundSessions::new(found, &mut Registry::None, now).next_lapse(now)
        };
        assert_eq!(wait(true), Some(lease));
        assert_eq!(wait(false), Some(with_margin(lease)));
    }
}

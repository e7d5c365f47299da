//! Found sessions: those that an earlier service left, until their clients have claimed them.
//!
//! The earlier service left a registry of its sessions and of their live requests. Each is a
//! session without a connection from the start, and its requests are absent: a request that
//! conflicts with one of them waits in the room, and no other. It ends like every other session,
//! with its lease or its process.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{self as wire, LossCause, RequestKey};

use super::Hub;
use super::backlog::{Ending, WORK_PER_TURN};
use super::sessions::{Absent, Claim, Known, Owner, Peer, Secret, Session, Sessions};
use super::shares::Share;
use crate::store::{
    Found, Registry, RequestRecord, RequestState, SessionRecord, Unknown, boot_ms, millis,
    with_margin,
};

/// The sessions and locks of an earlier service that are still to be recovered.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// How many sessions are absent.
    sessions: usize,
    /// How many of them have claimed, and wait for the others.
    pub(super) claimed: usize,
    /// The registry was lost: clients of the earlier service may hold any name.
    pub(crate) blind: bool,
    /// The registry has no requests, so nothing is granted before all sessions have claimed.
    pub(crate) whole: bool,
    /// In a cluster: the requests that must not be claimed, and why.
    pub(crate) taken: HashMap<RequestKey, LossCause>,
    /// In a cluster: no token above this was ever given.
    pub(crate) given: u64,
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

impl Recovery {
    /// Begins with what the earlier service left, and returns its sessions. Notes in the registry
    /// until when each is waited for, so that services which are killed in turn wait for one lease
    /// in all.
    pub(crate) fn new(found: Found, registry: &mut Registry, now: Instant) -> (Self, Sessions) {
        // At the moment of `now`, because both are the end of one wait.
        let boot_ms = boot_ms();
        let Found { sessions: records, requests, unknown, whole, taken, given } = found;
        let largest = records.iter().map(|record| record.number).max();
        let mut sessions = Sessions::after(largest.unwrap_or_default());
        // They count in no tenant's share until their clients have shown theirs.
        let share = Rc::new(Share::default());
        for record in records {
            let SessionRecord { slot, number, lease, process, present, .. } = record;
            let mut heard = now;
            if let Some(lease) = lease {
                // The earlier owner of a slot sent nothing after it was won, so a lease is enough.
                let (left, until_ms) = match whole {
                    true => (lease, boot_ms + millis(lease)),
                    false => left(lease, record.until_ms, boot_ms),
                };
                registry.set_until(slot, until_ms);
                heard = now + left - lease;
            }
            let owner = match record.proof.is_empty() {
                true => {
                    let secret = Secret::from_bytes(record.secret);
                    Owner::Secret { party: record.party, secret }
                }
                false => Owner::Proof(record.proof),
            };
            let peer = Rc::new(Peer::absent(lease.is_none(), process));
            let mut session = Session::new(peer, share.clone(), owner, lease, heard);
            (session.slot, session.present) = (slot, present);
            session.absent = Some(Absent::default());
            sessions.insert_found(number, session);
        }
        for request in requests {
            let session = sessions.get_mut(request.session);
            if let Some(absent) = session.and_then(|session| session.absent.as_mut()) {
                absent.requests.insert(request.number, request);
            }
        }
        let blind = unknown != Unknown::None;
        let all = Self { sessions: sessions.len(), claimed: 0, blind, whole, taken, given };
        (all, sessions)
    }

    /// Returns true if any name may be held by a client of which only the session is known, or not
    /// even that.
    #[inline]
    pub(crate) fn hides_holders(&self) -> bool {
        self.blind || self.whole
    }

    /// Returns true if every session that is waited for has claimed.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed == self.sessions
    }

    /// Returns how many sessions of the earlier service have not claimed.
    pub(crate) fn unclaimed(&self) -> usize {
        self.sessions - self.claimed
    }

    /// Returns true if a session of the earlier service is waited for, or its claim for others.
    pub(crate) fn has_sessions(&self) -> bool {
        self.sessions > 0
    }

    /// Notes that a session is absent no more; it may have claimed before.
    pub(super) fn ended(&mut self, has_claimed: bool) {
        self.sessions -= 1;
        self.claimed -= usize::from(has_claimed);
    }
}

impl Hub {
    /// Makes the registry again where it was removed.
    pub(crate) fn keep_registry(&mut self) -> io::Result<()> {
        if self.registry.keep()? {
            self.sessions.forget_presence();
        }
        Ok(())
    }

    /// Takes the claim of a session, which is absent no more.
    pub(super) fn take_claim(&mut self, number: u32) -> Option<(Claim, Absent)> {
        let session = self.sessions.get_mut(number)?;
        let claim = session.claim.take()?;
        self.found.ended(claim.is_whole);
        self.metrics.reclaimed_sessions.inc();
        Some((claim, session.absent.take().unwrap_or_default()))
    }

    /// Takes a live request away from an absent session. Returns what it was.
    pub(super) fn lose_absent(
        &mut self,
        key: RequestKey,
        cause: LossCause,
        thief: Option<Rc<str>>,
    ) -> Option<RequestRecord> {
        let absent = self.sessions.get_mut(key.session)?.absent.as_mut()?;
        let request = absent.requests.get_mut(&key.request)?;
        absent.thieves.extend(thief.map(|words| (key.request, words)));
        self.registry.lose(key, request.slot, cause);
        let lost = request.clone();
        request.state = RequestState::Lost(cause);
        Some(lost)
    }

    /// Describes a thief whose theft an earlier service carried out, as far as it is known now: its
    /// request, or the process of its session.
    pub(super) fn describe_thief(&self, cause: LossCause) -> Option<Rc<str>> {
        let LossCause::Stolen(thief) = cause else { return None };
        let session = self.sessions.get(thief.session)?;
        match session.requests.get(thief.request) {
            Some(Known::Live { partition, id }) => {
                self.partitions[partition].describe_live_thief(id)
            }
            _ => Some(session.peer.process?.to_string().into()),
        }
    }

    /// Drops the claim of an absent session, if there is one: its connection broke. The session can
    /// be claimed again, and its client may count its lease from its last message.
    pub(super) fn abandon_claim(&mut self, number: u32, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        let Some(claim) = &session.claim else { return };
        self.found.claimed -= usize::from(claim.is_whole);
        if let Some(lease) = session.lease {
            let whole = with_margin(lease);
            self.registry.set_until(session.slot, boot_ms() + millis(whole));
            session.heard = session.heard + whole - lease;
        }
        let (share, clients) = (session.share.clone(), session.abandon_claim());
        self.end_in_turns(Ending::of_clients(number, share, clients), now);
    }

    /// Ends a session of an earlier service whose client is gone and has not claimed it. A session
    /// that was claimed goes on.
    pub fn end_unclaimed(&mut self, number: u32, now: Instant) {
        if self.sessions.get(number).is_some_and(|session| session.absent.is_some()) {
            self.end(number, None, now);
        }
    }

    /// Ends the sessions of an earlier service whose leases have passed, as many as one turn takes.
    /// Returns how long it takes until the next one has: no time at all if more have passed.
    pub fn check_unclaimed(&mut self, now: Instant) -> Option<Duration> {
        let before = self.admitted;
        let waiting = |sessions: &Sessions| -> Vec<(Duration, u32)> {
            let waiting = sessions.absent().filter(|(_, session)| session.is_unclaimed());
            waiting.filter_map(|(number, it)| Some((it.lease_left(now)?, number))).collect()
        };
        let mut lapsed = waiting(&self.sessions);
        lapsed.retain(|(left, _)| left.is_zero());
        lapsed.sort_unstable();
        for (ended, (_, number)) in lapsed.into_iter().enumerate() {
            if ended + self.admitted - before >= WORK_PER_TURN {
                return Some(Duration::ZERO);
            }
            self.lapse(number, now);
        }
        waiting(&self.sessions).into_iter().map(|(left, _)| left).min()
    }

    /// Returns the absent sessions of a Unix socket, which live as long as their processes.
    pub(crate) fn unclaimed_local(&self) -> Vec<u32> {
        let local = self.sessions.absent().filter(|(_, session)| session.lease.is_none());
        local.map(|(number, _)| number).collect()
    }

    /// Describes the absent sessions for people who ask what is waited for.
    pub(crate) fn describe_unclaimed(
        &self,
        is_visible: impl Fn(&Session) -> bool,
        now: Instant,
    ) -> Vec<wire::UnclaimedSession> {
        let has_claimed = |it: &Session| it.claim.as_ref().is_some_and(|claim| claim.is_whole);
        let absent = self.sessions.absent();
        let absent = absent.filter(|(_, it)| !has_claimed(it) && is_visible(it));
        let mut described: Vec<wire::UnclaimedSession> = absent
            .map(|(number, it)| wire::UnclaimedSession {
                session: number,
                pid: it.peer.pid(),
                left_ms: it.lease_left(now).map(|left| left.as_millis() as u64),
                held: it
                    .absent
                    .iter()
                    .flat_map(|it| it.requests.values())
                    .filter(|it| it.is_held())
                    .count() as u64,
            })
            .collect();
        described.sort_unstable_by_key(|it| it.session);
        described
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
            let (_, sessions) = Recovery::new(found, &mut Registry::None, now);
            sessions.get(0).expect("a session").lease_left(now)
        };
        assert_eq!(wait(true), Some(lease));
        assert_eq!(wait(false), Some(with_margin(lease)));
    }
}

//! The changes that a hub of a cluster writes about its sessions. Locks are not in it: a new owner
//! learns them from the claims of its clients.

use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use navlocks_wire::{LossCause, RequestKey};

use crate::cluster::{
    Change, ChangeNumber, Gate, Registry as SlotRegistry, SessionKey, SessionRecord, TakenRecord,
};

/// The changes of one slot.
#[derive(Debug)]
pub(crate) struct SlotLog {
    registry: Rc<dyn SlotRegistry>,
    pub(crate) gate: Rc<Gate>,
    /// The names of the sessions, by their numbers.
    keys: HashMap<u32, SessionKey>,
    /// The requests that were taken away and whose clients have not taken note.
    taken: HashSet<RequestKey>,
    /// The sessions that end with the grace of this owner because they cannot be claimed.
    unclaimable: Vec<SessionKey>,
}

impl SlotLog {
    /// Begins with the sessions and the losses that an earlier owner left.
    pub(crate) fn new(
        registry: Rc<dyn SlotRegistry>,
        gate: Rc<Gate>,
        sessions: &[SessionRecord],
        taken: impl Iterator<Item = RequestKey>,
    ) -> Self {
        let keys = sessions.iter().map(|session| (session.key.number(), session.key)).collect();
        Self { registry, gate, keys, taken: taken.collect(), unclaimable: Vec::new() }
    }

    /// Returns how many sessions and losses it knows.
    pub(crate) fn len(&self) -> usize {
        self.keys.len() + self.taken.len()
    }

    /// Notes that no session of an earlier owner can be claimed.
    pub(super) fn refuse_claims(&mut self) {
        self.unclaimable.extend(self.keys.drain().map(|(_, key)| key));
    }

    pub(crate) fn slot_registry(&self) -> Rc<dyn SlotRegistry> {
        self.registry.clone()
    }

    /// Returns the owner's epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.registry.epoch().0
    }

    /// Writes that a session begins. Its frames wait for the change.
    pub(super) fn begin_session(
        &mut self,
        number: u32,
        lease: Duration,
        proof: String,
    ) -> io::Result<ChangeNumber> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let random = u128::from_le_bytes(bytes) & !u128::from(u32::MAX);
        let key = SessionKey(random | u128::from(number));
        self.keys.insert(number, key);
        Ok(self.registry.write(Change::Begin(SessionRecord { key, lease, proof })))
    }

    /// Writes that a session ends. All frames wait for the change, unless its client has taken
    /// leave and so believes in nothing.
    pub(super) fn end_session(&mut self, number: u32, took_leave: bool) {
        let Some(key) = self.keys.remove(&number) else { return };
        // The end of a session removes them.
        self.taken.retain(|taken| taken.session != number);
        let change = self.registry.write(Change::End(key));
        self.gate.note_end(change);
        if !took_leave {
            self.gate.hold_until(change);
        }
    }

    /// Writes that a request was taken away. All frames wait for the change.
    pub(super) fn lose(&mut self, victim: RequestKey, cause: LossCause) {
        // A claim that was judged is not claimed again: the judgement is the same.
        let thief = match cause {
            LossCause::Stolen(thief) => {
                self.keys.get(&thief.session).map(|&key| (key, thief.request))
            }
            LossCause::NotReclaimed => return,
            _ => None,
        };
        let Some(&key) = self.keys.get(&victim.session) else { return };
        if self.taken.insert(victim) {
            let taken = TakenRecord { victim: (key, victim.request), thief };
            self.gate.hold_until(self.registry.write(Change::Taken(taken)));
        }
    }

    /// Writes that a client knows of its loss.
    pub(super) fn heard(&mut self, victim: RequestKey) {
        if self.taken.remove(&victim)
            && let Some(&key) = self.keys.get(&victim.session)
        {
            self.registry.write(Change::Heard(key, victim.request));
        }
    }

    /// Writes that grace is over. All frames wait for the change.
    pub(crate) fn end_grace(&mut self) {
        let unclaimed = std::mem::take(&mut self.unclaimable);
        self.gate.hold_until(self.registry.write(Change::GraceOver(unclaimed)));
    }
}

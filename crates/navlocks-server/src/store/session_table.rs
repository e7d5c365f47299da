//! The table of sessions.

use std::collections::HashSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::millis;
use super::process::Process;
use super::table::{Index, Slot, Table};

/// A session as the registry keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    pub(crate) slot: Index,
    pub(crate) number: u32,
    pub(crate) secret: [u8; 16],
    /// None over a Unix socket.
    pub(crate) lease: Option<Duration>,
    /// The process at the other end of a Unix socket, and when it started.
    pub(crate) process: Option<Process>,
    /// A hash of the party that it belongs to.
    pub(crate) party: u64,
    /// The client listens at its path of presence.
    pub(crate) present: bool,
    /// The milliseconds since the start of the machine after which its lease has passed, if an
    /// earlier service waits for it already; otherwise zero.
    pub(crate) until_ms: u64,
    /// In a cluster, instead of secret and party: the proof that its client must show.
    pub(crate) proof: String,
}

/// The word of a session's slot with its lease in milliseconds, and the longest one.
const LEASE: usize = 3;
const LEASE_MS_MAX: u64 = 1 << 53;

/// The word of a session's slot with the end of the wait for it.
const UNTIL: usize = 7;

// The flags of a session's slot.
const LIVE: u64 = 1;
const PRESENT: u64 = 2;

/// A table whose live slots are sessions.
#[derive(Debug)]
pub(super) struct SessionTable(pub(super) Table);

impl Deref for SessionTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl DerefMut for SessionTable {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0
    }
}

impl SessionTable {
    /// Returns true if a service can have written all slots.
    pub(super) fn is_valid(&self) -> bool {
        let mut numbers = HashSet::new();
        self.live().all(|(_, words)| {
            words[0] as u32 as u64 & !PRESENT == LIVE
                && words[0] >> 32 != 0
                && numbers.insert(words[0] >> 32)
                && words[LEASE] <= LEASE_MS_MAX
        })
    }

    /// Returns all sessions.
    pub(super) fn records(&self) -> impl Iterator<Item = SessionRecord> {
        self.live().map(|(slot, words)| session_record(slot, &words))
    }

    /// Adds a session. Returns its slot.
    ///
    /// # Errors
    ///
    /// The disk has no room.
    pub(super) fn add(&mut self, record: &SessionRecord) -> io::Result<Index> {
        let slot = self.take()?;
        self.write(slot, &session_slot(record));
        Ok(slot)
    }

    /// Notes that the client of a session listens at its path of presence.
    pub(super) fn set_present(&mut self, slot: Index) {
        let flags = self.get(slot, 0);
        self.set(slot, 0, flags | PRESENT);
    }

    /// Notes that no client listens at its path of presence.
    pub(super) fn forget_presence(&mut self) {
        let live: Vec<(Index, Slot)> = self.live().collect();
        for (slot, words) in live {
            self.set(slot, 0, words[0] & !PRESENT);
        }
    }

    /// Notes until when a successor waits for the claim of a session.
    pub(super) fn set_until(&mut self, slot: Index, until_ms: u64) {
        self.set(slot, UNTIL, until_ms);
    }

    /// Removes a session. Returns its number if its client listened at its path of presence.
    pub(super) fn remove(&mut self, slot: Index) -> Option<u32> {
        let word = self.get(slot, 0);
        self.free(slot);
        (word & PRESENT != 0).then_some((word >> 32) as u32)
    }
}

fn session_slot(record: &SessionRecord) -> Slot {
    let SessionRecord { number, secret, lease, process, party, present, until_ms, .. } = record;
    let secret = u128::from_le_bytes(*secret);
    let lease = lease.map_or(0, |lease| millis(lease).min(LEASE_MS_MAX));
    let flags = LIVE | if *present { PRESENT } else { 0 };
    let (pid, started) =
        process.map_or((0, 0), |process| (u64::from(process.pid), process.started));
    let number = u64::from(*number) << 32 | flags;
    [number, secret as u64, (secret >> 64) as u64, lease, pid, started, *party, *until_ms]
}

fn session_record(slot: Index, words: &Slot) -> SessionRecord {
    let secret = u128::from(words[2]) << 64 | u128::from(words[1]);
    let process = Process { pid: words[4] as u32, started: words[5] };
    SessionRecord {
        slot,
        number: (words[0] >> 32) as u32,
        secret: secret.to_le_bytes(),
        lease: (words[LEASE] != 0).then(|| Duration::from_millis(words[LEASE])),
        process: (process.pid != 0).then_some(process),
        party: words[6],
        present: words[0] & PRESENT != 0,
        until_ms: words[UNTIL],
        proof: String::new(),
    }
}

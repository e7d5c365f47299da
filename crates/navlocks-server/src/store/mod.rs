//! The store: what must outlive a service. How far fencing tokens are reserved, for how long
//! clients may believe in their locks, and which sessions have which requests.

mod mapping;
mod process;
mod registry;
mod request_table;
mod session_table;
mod slot_log;
mod slot_tokens;
mod state_file;
mod table;

use std::hash::RandomState;
use std::io;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use navlocks_core::HashKey;
use navlocks_wire::{LossCause, RequestKey};
use rustix::time::{ClockId, clock_gettime};

use crate::cluster::{Gate, Inherited, Registry as SlotRegistry};
use crate::config::{LEASE_BOUND, Limits};
pub(crate) use slot_log::SlotLog;
use slot_tokens::SlotTokens;
use state_file::{Earlier, State};

pub(crate) use process::{Process, program};
pub(crate) use registry::{Found, PRESENCE, Registry, Unknown};
pub(crate) use request_table::{RequestRecord, RequestState};
pub(crate) use session_table::SessionRecord;
pub(crate) use state_file::{FolderLock, StateFile};
pub(crate) use table::Index as Slot;

/// JavaScript's numbers are exact below this.
const NUMBERS_END: u64 = 1 << 53;

/// The state that outlives a service, on the disk if it has a state folder.
#[derive(Debug)]
pub(crate) struct Store {
    file: Option<StateFile>,
    /// In a cluster, instead of the file.
    slot: Option<SlotTokens>,
    /// As it is on the disk.
    state: State,
    /// So many tokens are reserved at a time.
    block: u64,
    /// So many tokens may be given in one step.
    step: u64,
    /// Writing failed; it is tried again when the largest token is this.
    try_again_at: u64,
    /// For how long sessions of an earlier service may live on that the registry does not know.
    earlier: Duration,
    /// Why.
    unknown: Unknown,
    /// The key of the hashes in the registry.
    pub(crate) key: HashKey,
    /// The sessions and requests of the earlier service, until they are taken.
    found: Found,
}

/// The rest of the reserve is too small to go on: the service must end before a token could
/// repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Store {
    /// Reads what the earlier service left, and reserves the first tokens. Returns the registry
    /// beside the store. Without any record the service is the first one if it is `fresh`; else
    /// the record may have been removed.
    pub(crate) fn new(
        file: Option<StateFile>,
        limits: &Limits,
        fresh: bool,
    ) -> io::Result<(Self, Registry)> {
        let earlier = file.as_ref().map_or(Ok(Earlier::None), StateFile::read)?;
        let unrecorded = earlier == Earlier::None && file.is_some() && !fresh;
        let (reserved, mut believed, epoch) = match earlier {
            Earlier::None => (0, unrecorded.then_some(limits.lease_max), 0),
            Earlier::State(state) => {
                let lease = Duration::from_millis(state.lease_ms_max);
                (state.tokens_reserved_to, (!state.clean).then_some(lease), state.epoch)
            }
            Earlier::Unreadable => {
                tracing::warn!(
                    "the state file is gone or cannot be read; what was there is service.json.bad now"
                );
                (0, Some(limits.lease_max), 0)
            }
        };
        let trusted = matches!(earlier, Earlier::State(_));
        let unknown = match believed {
            Some(_) if unrecorded => Unknown::Unrecorded,
            Some(_) => Unknown::Lost,
            None => Unknown::None,
        };
        let (registry, key, found) = match (&file, boot()) {
            (Some(file), Some(boot)) => file.registry(boot, trusted, unknown, fresh)?,
            _ => {
                let found = Found { unknown, ..Found::default() };
                (Registry::None, HashKey::from_bytes([0; 16]), found)
            }
        };
        let unknown = found.unknown;
        let lease_ms_max = believed.map_or(0, millis);
        if unknown == Unknown::None {
            // Every session of the earlier service is known, with its own lease.
            believed = None;
        }
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (start, block, step) = first_block(reserved, limits)?;
        let earlier = believed.map_or(Duration::ZERO, with_margin);
        // By the clock too, so that a client of an earlier service whose state is gone believes it.
        let epoch = (epoch + 1).max(clock.as_secs());
        // Until they know that it is over, clients of the earlier service count as this one's.
        let state = State::new(false, start, lease_ms_max, epoch);
        let (slot, try_again_at) = (None, 0);
        let mut store =
            Self { file, slot, state, block, step, try_again_at, earlier, unknown, key, found };
        store.write(State { tokens_reserved_to: start + block, ..state })?;
        Ok((store, registry))
    }

    /// Takes over a slot of a cluster from its earlier owner, and reserves the first tokens.
    ///
    /// # Errors
    ///
    /// No tokens are left.
    pub(crate) fn of_slot(
        slot: &Rc<dyn SlotRegistry>,
        inherited: Inherited,
        limits: &Limits,
    ) -> io::Result<(Self, Registry)> {
        let Inherited { sessions, taken, tokens_reserved_to: before, is_complete, .. } = inherited;
        let (start, block, step) = first_block(before, limits)?;
        let gate = Rc::new(Gate::new(slot.clone()));
        let key_of = |taken: &crate::cluster::TakenRecord| {
            RequestKey::new(taken.victim.0.number(), taken.victim.1)
        };
        let victims = taken.iter().map(key_of);
        let mut log = SlotLog::new(slot.clone(), gate.clone(), &sessions, victims);
        if !is_complete {
            log.refuse_claims();
        }
        let cause_of = |taken: &crate::cluster::TakenRecord| match taken.thief {
            Some((thief, request)) => LossCause::Stolen(RequestKey::new(thief.number(), request)),
            None => LossCause::ForceReleased,
        };
        let found = Found {
            taken: taken.iter().map(|taken| (key_of(taken), cause_of(taken))).collect(),
            given: before,
            unknown: if is_complete { Unknown::None } else { Unknown::Lost },
            whole: is_complete,
            sessions: match is_complete {
                true => sessions.into_iter().map(session_record).collect(),
                false => Vec::new(),
            },
            requests: Vec::new(),
        };
        let store = Self {
            file: None,
            slot: Some(SlotTokens::new(slot.clone(), gate, start + block)),
            state: State::new(false, start + block, 0, slot.epoch().0),
            block,
            step,
            try_again_at: 0,
            earlier: if is_complete { Duration::ZERO } else { with_margin(limits.lease_max) },
            unknown: Unknown::Lost,
            key: HashKey::drawn_from(&RandomState::new()),
            found,
        };
        Ok((store, Registry::Slot(log)))
    }

    /// Takes what the registry of the earlier service had.
    pub(crate) fn take_found(&mut self) -> Found {
        std::mem::take(&mut self.found)
    }

    /// Returns the number of this start of the service.
    pub(crate) fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// The state file. It is made again, with its folder, if it was removed.
    pub(crate) fn kept_file(&mut self) -> io::Result<Option<&StateFile>> {
        if self.file.as_ref().is_some_and(|file| !file.is_there()) {
            self.write(self.state)?;
        }
        Ok(self.file.as_ref())
    }

    /// The largest token that may have been given by earlier services.
    pub(crate) fn tokens_before(&self) -> u64 {
        self.state.tokens_reserved_to - self.block
    }

    /// For how long nothing must be granted, because of clients of an earlier service.
    pub(crate) fn earlier(&self) -> Duration {
        self.earlier
    }

    /// Returns why nothing is granted for so long.
    pub(crate) fn why_earlier(&self) -> &'static str {
        if self.unknown == Unknown::Unrecorded {
            "its state folder has no record of an earlier service, whose clients may still use their locks (navlocks serve --fresh says that there was none)"
        } else {
            "the one before did not end in good order, and its clients may still use their locks"
        }
    }

    /// Returns the longest lease of clients that the registry does not know.
    pub(crate) fn unknown_lease(&self) -> Duration {
        Duration::from_millis(self.state.lease_ms_max)
    }

    fn write(&mut self, state: State) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write(&state)?;
        }
        self.state = state;
        Ok(())
    }

    /// Takes note of the largest token given, and reserves more before they run out.
    #[inline]
    pub(crate) fn given(&mut self, largest: u64) -> Result<(), Exhausted> {
        // More may be given in one step than was reserved; then nothing is left, and not a huge
        // number.
        let left = self.state.tokens_reserved_to.saturating_sub(largest);
        if left > self.block / 2 || largest < self.try_again_at {
            return Ok(());
        }
        self.reserve(largest)
    }

    #[cold]
    fn reserve(&mut self, largest: u64) -> Result<(), Exhausted> {
        let left = self.state.tokens_reserved_to.saturating_sub(largest);
        if let Some(slot) = &mut self.slot {
            if let Some(upto) = slot.reserve(largest + self.block, left <= self.step) {
                self.state.tokens_reserved_to = upto;
            }
            return Ok(());
        }
        let reserved = State { tokens_reserved_to: largest + self.block, ..self.state };
        let failed = if reserved.tokens_reserved_to > NUMBERS_END {
            Some(io::Error::other("all numbers are used up"))
        } else {
            self.write(reserved).err()
        };
        let Some(error) = failed else { return Ok(()) };
        tracing::error!(%error, left, "no more fencing tokens can be reserved");
        self.try_again_at = largest + self.block / 64 + 1;
        if left <= self.step { Err(Exhausted) } else { Ok(()) }
    }

    /// A session is about to get this lease.
    pub(crate) fn lease_given(&mut self, lease: Duration, limits: &Limits) -> io::Result<()> {
        if self.slot.is_some() {
            // The registry of a slot has the lease of each session.
            return Ok(());
        }
        if millis(lease) <= self.state.lease_ms_max {
            return Ok(());
        }
        // One of two values, so that the file is not written for every millisecond more.
        let rounded =
            if lease <= limits.lease_default { limits.lease_default } else { limits.lease_max };
        let lease_ms_max = millis(rounded.max(lease));
        self.write(State { lease_ms_max, ..self.state })
    }

    /// The service ends in good order; clients that could not be told believe in their locks for so
    /// long at most.
    pub(crate) fn ended(&mut self, untold: Option<Duration>) -> io::Result<()> {
        let lease_ms_max = untold.map_or(0, millis);
        self.write(State { clean: untold.is_none(), lease_ms_max, ..self.state })
    }
}

/// Returns where tokens begin above those that were reserved, how many are reserved at a time, and
/// how many may be given in one step.
fn first_block(reserved: u64, limits: &Limits) -> io::Result<(u64, u64, u64)> {
    // By the clock too, so that they grow although what was reserved is lost.
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = reserved.max(clock.as_micros() as u64);
    let block = limits.tokens_reserved_ahead.max(8);
    if start > NUMBERS_END.saturating_sub(block) {
        let text = format!(
            "fencing tokens would begin at {start}, and must stay below {NUMBERS_END}: is the clock right, and is the state file whole?"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((start, block, (limits.requests_per_partition_max as u64).min(block / 4)))
}

fn session_record(session: crate::cluster::SessionRecord) -> SessionRecord {
    SessionRecord {
        slot: session.key.number(),
        number: session.key.number(),
        secret: [0; 16],
        lease: Some(session.lease),
        process: None,
        party: 0,
        present: false,
        until_ms: 0,
        proof: session.proof,
    }
}

/// Returns what tells this start of the machine from others, where the system says it.
fn boot() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

/// Returns the milliseconds since the start of the machine, sleep included: all processes agree.
pub(crate) fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}

/// A little more than a lease: clocks differ, and a client that is told by a closed socket needs a
/// moment as well. A lease of an embedder's own limits counts as its [bound](LEASE_BOUND) at most.
pub(crate) fn with_margin(lease: Duration) -> Duration {
    let lease = lease.min(LEASE_BOUND);
    lease + lease / 10 + Duration::from_millis(100)
}

pub(crate) fn millis(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_that_gives_more_tokens_than_were_reserved_reserves_more() {
        let limits = Limits { tokens_reserved_ahead: 8, ..Limits::default() };
        let (mut store, _) = Store::new(None, &limits, true).expect("a store");
        let largest = store.state.tokens_reserved_to + 100;
        assert_eq!(store.given(largest), Ok(()));
        assert!(store.state.tokens_reserved_to > largest);
    }
}

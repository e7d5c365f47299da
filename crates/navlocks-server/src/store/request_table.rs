//! The table of live requests. Names are kept as keyed hashes: enough to hold a name back, and
//! nothing that a reader of the file could learn.

use std::collections::HashSet;
use std::io;
use std::ops::{Deref, DerefMut};

use navlocks_core::Mode;
use navlocks_wire::{LossCause, RequestKey};

use super::NUMBERS_END;
use super::table::{Index, Slot, Table, WORDS};

/// A live request as the registry keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    pub(crate) slot: Index,
    pub(crate) session: u32,
    pub(crate) number: u64,
    pub(crate) mode: Mode,
    pub(crate) state: RequestState,
    /// The milliseconds since the start of the machine at which its time is over, if it holds a
    /// lock with a maximum hold; otherwise zero.
    pub(crate) until_ms: u64,
    /// Of its names, in its partition.
    pub(crate) hashes: Vec<u64>,
}

impl RequestRecord {
    pub(crate) fn key(&self) -> RequestKey {
        RequestKey::new(self.session, self.number)
    }

    /// Returns true if it held its lock.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state, RequestState::Held(_))
    }
}

/// How far a request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// It waited, at this place.
    Pending(u64),
    /// It held its lock, under this token.
    Held(u64),
    /// It was taken away, and its client has not taken note.
    Lost(LossCause),
}

// The kinds of a request's slot.
const PENDING: u64 = 1;
const HELD: u64 = 2;
const LOST: u64 = 3;
/// Further hashes of a request with many names.
const MORE: u64 = 4;

// The modes of a live request.
const EXCLUSIVE: u64 = 0;
const SHARED: u64 = 1;
const LIMITED: u64 = 2;

// The words of a request's slot; the first has kind, mode or cause, count of names, session.
const NUMBER: usize = 1;
/// The place of a pending request, the token of a held one.
const ORDER: usize = 2;
const HASHES: std::ops::Range<usize> = 3..5;
/// The limit of a live request that has one.
const LIMIT: usize = 5;
/// The end of the time of a held lock.
const UNTIL: usize = 6;
const THIEF_SESSION: usize = 5;
const THIEF_REQUEST: usize = 6;
const NEXT: usize = 7;
/// The hashes in a slot of kind [`MORE`].
const MORE_HASHES: std::ops::Range<usize> = 1..7;

/// The places that a request can have. One that is about to be held has its token there.
const PLACES: std::ops::Range<u64> = 1..1 << 63;

/// A table whose live slots are requests, or pieces of requests with many names.
#[derive(Debug)]
pub(super) struct RequestTable(pub(super) Table);

impl Deref for RequestTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl DerefMut for RequestTable {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0
    }
}

impl RequestTable {
    /// Returns true if a service can have written all slots.
    pub(super) fn is_valid(&self) -> bool {
        let mut pieces = HashSet::new();
        self.live().all(|(_, words)| match words[0] & 0xff {
            PENDING => PLACES.contains(&words[ORDER]) && self.has_pieces(&words, &mut pieces),
            HELD => words[ORDER] < NUMBERS_END && self.has_pieces(&words, &mut pieces),
            LOST => self.has_pieces(&words, &mut pieces),
            _ => words[0] == MORE,
        })
    }

    /// Returns true if a request has the pieces that its number of names takes, and shares none.
    fn has_pieces(&self, words: &Slot, pieces: &mut HashSet<u64>) -> bool {
        let further = count_names(words).saturating_sub(HASHES.len());
        let mut next = words[NEXT];
        for _ in 0..further.div_ceil(MORE_HASHES.len()) {
            let is_slot = next != 0 && next < u64::from(self.slots());
            if !is_slot || !pieces.insert(next) || self.get(next as Index, 0) != MORE {
                return false;
            }
            next = self.get(next as Index, NEXT);
        }
        next == 0
    }

    /// Takes the requests of these sessions, and frees the slots that belong to nothing.
    pub(super) fn records(&mut self, sessions: &HashSet<u32>) -> Vec<RequestRecord> {
        let mut reached = HashSet::new();
        let mut records = Vec::new();
        for (slot, words) in self.live() {
            if let Some(record) = request_record(self, slot, &words, &mut reached)
                && sessions.contains(&record.session)
            {
                reached.insert(slot);
                records.push(record);
            }
        }
        let over: Vec<Index> =
            self.live().map(|(slot, _)| slot).filter(|slot| !reached.contains(slot)).collect();
        for slot in over {
            self.set(slot, 0, 0);
        }
        records
    }

    /// Adds a pending request. Returns its slot.
    ///
    /// # Errors
    ///
    /// The disk has no room.
    #[inline]
    pub(super) fn add(
        &mut self,
        (session, number): (u32, u64),
        mode: Mode,
        place: u64,
        hashes: &[u64],
    ) -> io::Result<Index> {
        let slot = self.take()?;
        let own = hashes.len().min(HASHES.len());
        let next = match hashes.len() > own {
            true => match self.add_more(&hashes[own..]) {
                Ok(next) => next,
                Err(error) => {
                    self.free(slot);
                    return Err(error);
                }
            },
            false => 0,
        };
        let (mode, limit) = mode_words(mode);
        let count = (hashes.len() as u64) << 16;
        let mut words: Slot = [0; WORDS];
        words[0] = PENDING | mode << 8 | count | u64::from(session) << 32;
        words[LIMIT] = limit;
        words[NUMBER] = number;
        words[ORDER] = place;
        words[HASHES][..own].copy_from_slice(&hashes[..own]);
        words[NEXT] = u64::from(next);
        self.write(slot, &words);
        Ok(slot)
    }

    /// Takes slots for the hashes that do not fit into the first one. Returns the first of them.
    #[cold]
    fn add_more(&mut self, hashes: &[u64]) -> io::Result<Index> {
        let mut next = 0;
        // From the last to the first, so that each one names a slot that is written.
        for piece in hashes.chunks(MORE_HASHES.len()).rev() {
            let slot = match self.take() {
                Ok(slot) => slot,
                Err(error) => {
                    self.free_pieces(next);
                    return Err(error);
                }
            };
            let mut words: Slot = [0; WORDS];
            words[0] = MORE;
            words[MORE_HASHES][..piece.len()].copy_from_slice(piece);
            words[NEXT] = u64::from(next);
            self.write(slot, &words);
            next = slot;
        }
        Ok(next)
    }

    /// Notes that a request holds its lock, until this moment if it is not zero.
    #[inline]
    pub(super) fn hold(&mut self, slot: Index, token: u64, until_ms: u64) {
        if until_ms != 0 {
            self.set(slot, UNTIL, until_ms);
        }
        self.set(slot, ORDER, token);
        let word = self.get(slot, 0);
        self.set(slot, 0, word & !0xff | HELD);
    }

    /// Notes that a live request has another mode. Between the two stores it has its old mode, or a
    /// limit of which only the number is new.
    pub(super) fn set_mode(&mut self, slot: Index, mode: Mode) {
        let (mode, limit) = mode_words(mode);
        if limit != 0 {
            self.set(slot, LIMIT, limit);
        }
        let word = self.get(slot, 0);
        self.set(slot, 0, word & !0xff00 | mode << 8);
    }

    /// Notes that a request was taken away.
    pub(super) fn lose(&mut self, slot: Index, cause: LossCause) {
        if let LossCause::Stolen(by) = cause {
            self.set(slot, THIEF_SESSION, u64::from(by.session));
            self.set(slot, THIEF_REQUEST, by.request);
        }
        let word = self.get(slot, 0);
        self.set(slot, 0, word & !0xffff | LOST | cause_number(cause) << 8);
    }

    /// Removes a request.
    #[inline]
    pub(super) fn remove(&mut self, slot: Index) {
        let next = self.get(slot, NEXT) as Index;
        self.free(slot);
        self.free_pieces(next);
    }

    /// Frees the pieces of a request, from this one on.
    #[inline]
    fn free_pieces(&mut self, mut next: Index) {
        while next != 0 {
            let piece = next;
            next = self.get(piece, NEXT) as Index;
            self.free(piece);
        }
    }
}

/// Reads a request, unless the slot is a piece of another one. Notes the pieces that it has.
fn request_record(
    requests: &Table,
    slot: Index,
    words: &Slot,
    reached: &mut HashSet<Index>,
) -> Option<RequestRecord> {
    let state = match words[0] & 0xff {
        PENDING => RequestState::Pending(words[ORDER]),
        HELD => RequestState::Held(words[ORDER]),
        LOST => {
            let by = RequestKey::new(words[THIEF_SESSION] as u32, words[THIEF_REQUEST]);
            RequestState::Lost(cause_of(words[0] >> 8 & 0xff, by))
        }
        _ => return None,
    };
    // A lost request has its cause there, and its mode does not matter. An unknown limit is taken
    // for the strictest.
    let mode = match words[0] >> 8 & 0xff {
        _ if matches!(state, RequestState::Lost(_)) => Mode::Exclusive,
        SHARED => Mode::Shared,
        LIMITED => Mode::limited(words[LIMIT] as u32).unwrap_or_default(),
        _ => Mode::Exclusive,
    };
    let count = count_names(words);
    let mut hashes: Vec<u64> = words[HASHES].to_vec();
    let mut next = words[NEXT] as Index;
    while next != 0 && hashes.len() < count && reached.insert(next) {
        let more = requests.read(next);
        hashes.extend(&more[MORE_HASHES]);
        next = more[NEXT] as Index;
    }
    hashes.truncate(count);
    let session = (words[0] >> 32) as u32;
    let until_ms = if matches!(state, RequestState::Held(_)) { words[UNTIL] } else { 0 };
    Some(RequestRecord { slot, session, number: words[NUMBER], mode, state, until_ms, hashes })
}

/// Returns a mode as a slot has it, and its limit if there is one.
fn mode_words(mode: Mode) -> (u64, u64) {
    match mode {
        Mode::Exclusive => (EXCLUSIVE, 0),
        Mode::Shared => (SHARED, 0),
        Mode::Limited(limit) => (LIMITED, u64::from(limit.get())),
    }
}

fn count_names(words: &Slot) -> usize {
    (words[0] >> 16 & 0xffff) as usize
}

fn cause_number(cause: LossCause) -> u64 {
    match cause {
        LossCause::Stolen(_) => 1,
        LossCause::ForceReleased => 2,
        LossCause::Evicted => 3,
        LossCause::Suspended => 4,
        LossCause::ClientEnded => 5,
        LossCause::NotReclaimed => 6,
        LossCause::HeldTooLong => 7,
    }
}

fn cause_of(number: u64, by: RequestKey) -> LossCause {
    match number {
        1 => LossCause::Stolen(by),
        2 => LossCause::ForceReleased,
        3 => LossCause::Evicted,
        4 => LossCause::Suspended,
        5 => LossCause::ClientEnded,
        7 => LossCause::HeldTooLong,
        _ => LossCause::NotReclaimed,
    }
}

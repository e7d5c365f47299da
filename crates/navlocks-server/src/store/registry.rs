//! The registry: sessions and their live requests, so that a successor of this service can wait for
//! the claims of its clients.
//!
//! Two tables beside the state file. They survive the end of the process, not that of the machine:
//! after a restart of the machine they count as missing. Names are kept as keyed hashes: enough to
//! hold a name back, and nothing that a reader of the file could learn.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use navlocks_core::{HashKey, Mode};
use navlocks_wire::{Cause, RequestKey};

use super::slot_log::SlotLog;
use super::table::{Index, Slot, Table, WORDS};
use crate::cluster::ChangeNumber;

/// The files of the tables.
const SESSIONS: &str = "sessions.table";
const REQUESTS: &str = "requests.table";

/// The first words of both tables, for this layout.
const MAGIC: u64 = u64::from_le_bytes(*b"navlocks");
const LAYOUT: u64 = 1;
/// The word of a header that says whether sessions live that the tables do not know.
const BLIND: usize = 6;

/// The longest path of a Unix socket, with some room.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// The sessions and requests of a service, where they outlive it.
#[derive(Debug)]
pub(crate) struct Registry {
    tables: Option<Tables>,
    /// In a cluster: the changes that the next owner of the slot inherits.
    pub(crate) log: Option<SlotLog>,
}

#[derive(Debug)]
struct Tables {
    sessions: Table,
    requests: Table,
    /// Where clients listen to show that they are alive.
    presence: PathBuf,
}

/// A session as the registry keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A process, as long as its number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// In ticks of the kernel since the start of the machine; zero if unknown.
    pub(crate) started: u64,
}

impl Process {
    /// Returns the process that has this number now.
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, started: started(pid).unwrap_or_default() }
    }

    /// Returns true if it has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        started(self.pid).is_some_and(|started| self.started == 0 || started == self.started)
    }
}

/// Returns when a process started, unless it has ended.
fn started(pid: u32) -> Option<u64> {
    let mut bytes = [0; 1 << 10];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut bytes).ok()?;
    // The name of the program, in parentheses, may have spaces, and end within a character.
    let stat = String::from_utf8_lossy(&bytes[..length]);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

/// A live request as the registry keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    pub(crate) slot: Index,
    pub(crate) session: u32,
    pub(crate) number: u64,
    pub(crate) mode: Mode,
    pub(crate) standing: Standing,
    /// Of its names, in its partition.
    pub(crate) hashes: Vec<u64>,
}

impl RequestRecord {
    /// Returns true if it held its lock.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Held(_))
    }
}

/// How far a request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It waited, at this place.
    Pending(u64),
    /// It held its lock, under this token.
    Held(u64),
    /// It was taken away, and its client has not taken note.
    Lost(Cause),
}

/// The sessions and requests that an earlier service left.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) sessions: Vec<SessionRecord>,
    pub(crate) requests: Vec<RequestRecord>,
    /// Clients may hold locks of which the tables know nothing.
    pub(crate) blind: bool,
    /// In a cluster, where requests are not kept: nothing is granted until all sessions have
    /// claimed or ended.
    pub(crate) whole: bool,
    /// In a cluster: the requests that were taken away and must not be claimed.
    pub(crate) taken: HashMap<RequestKey, Cause>,
    /// In a cluster: no token above this was ever given.
    pub(crate) given: u64,
}

// The kinds of a request's slot.
const PENDING: u64 = 1;
const HELD: u64 = 2;
const LOST: u64 = 3;
/// Further hashes of a request with many names.
const MORE: u64 = 4;

// The words of a request's slot; the first has kind, mode or cause, count of names, session.
const NUMBER: usize = 1;
/// The place of a pending request, the token of a held one.
const ORDER: usize = 2;
const HASHES: std::ops::Range<usize> = 3..5;
const THIEF_SESSION: usize = 5;
const THIEF_REQUEST: usize = 6;
const NEXT: usize = 7;
/// The hashes in a slot of kind [`MORE`].
const MORE_HASHES: std::ops::Range<usize> = 1..7;

/// The word of a session's slot with the end of the wait for it.
const UNTIL: usize = 7;

// The flags of a session's slot.
const LIVE: u64 = 1;
const PRESENT: u64 = 2;

impl Registry {
    /// The registry of a slot.
    pub(crate) fn of_slot(log: SlotLog) -> Self {
        Self { tables: None, log: Some(log) }
    }

    /// A registry that keeps nothing: sessions end with their service.
    pub(crate) fn none() -> Self {
        Self { tables: None, log: None }
    }

    /// Opens the tables in this folder. Those of another start of the machine, or of an earlier
    /// service that is not to be `trusted`, are emptied. `believed` says whether clients of an
    /// earlier service may still believe in their locks, in case that the tables do not know.
    pub(crate) fn open(
        folder: &Path,
        boot: u128,
        trusted: bool,
        believed: bool,
    ) -> io::Result<(Self, HashKey, Found)> {
        let mut sessions = Table::open(&folder.join(SESSIONS))?;
        let mut requests = Table::open(&folder.join(REQUESTS))?;
        let header = sessions.header();
        let kept = trusted
            && is_of_boot(&header, boot)
            && requests.header() == header
            && sessions.is_whole()
            && requests.is_whole();
        let found = if kept { find(&mut sessions, &mut requests) } else { None };
        let kept = found.is_some();
        let (key, found) = if let Some(found) = found {
            let key = u128::from(header[5]) << 64 | u128::from(header[4]);
            let blind = header[BLIND] != 0 && believed;
            (key, Found { blind, ..found })
        } else {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            let key = u128::from_le_bytes(bytes);
            let header = new_header(boot, key, believed);
            // A table that a kill leaves without a header is emptied again.
            requests.reset(&header);
            sessions.reset(&header);
            (key, Found { blind: believed, ..Found::default() })
        };
        let presence = folder.join("presence");
        make_private(&presence)?;
        if !kept {
            clear(&presence)?;
        }
        let tables = Tables { sessions, requests, presence };
        Ok((
            Self { tables: Some(tables), log: None },
            HashKey::from_bytes(key.to_le_bytes()),
            found,
        ))
    }

    /// Returns true if a service left sessions in this folder.
    pub(super) fn has_sessions(folder: &Path) -> bool {
        let path = folder.join(SESSIONS);
        path.exists() && Table::open(&path).is_ok_and(|table| table.live().next().is_some())
    }

    /// Makes the files again that were removed from the folder. Returns true if the sockets of
    /// presence were removed too: then processes are known by their numbers alone.
    ///
    /// # Errors
    ///
    /// They cannot be made. The next service would know nothing of the sessions.
    pub(crate) fn keep(&mut self) -> io::Result<bool> {
        let Some(Tables { sessions, requests, presence }) = &mut self.tables else {
            return Ok(false);
        };
        let Some(folder) = presence.parent() else { return Ok(false) };
        for (table, name) in [(&mut *requests, REQUESTS), (&mut *sessions, SESSIONS)] {
            let path = folder.join(name);
            if !table.is_at(&path) {
                *table = table.copy_to(&path)?;
            }
        }
        if presence.is_dir() {
            return Ok(false);
        }
        make_private(presence)?;
        let live: Vec<(Index, Slot)> = sessions.live().collect();
        for (slot, words) in live {
            sessions.set(slot, 0, words[0] & !PRESENT);
        }
        Ok(true)
    }

    /// Notes that no client believes any more in a lock that the tables do not know.
    pub(crate) fn end_blindness(&mut self) {
        if let Some(Tables { sessions, requests, .. }) = &mut self.tables {
            // While the headers differ the tables count as missing.
            requests.set(0, BLIND, 0);
            sessions.set(0, BLIND, 0);
        }
    }

    /// Returns true if sessions outlive this service.
    pub(crate) fn is_durable(&self) -> bool {
        self.tables.is_some() || self.log.is_some()
    }

    /// Returns true if it has the live requests too.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.tables.is_some()
    }

    /// Returns where the client of a session should listen to show that it is alive.
    pub(crate) fn presence(&self, session: u32) -> Option<PathBuf> {
        let path = self.tables.as_ref()?.presence.join(session.to_string());
        (path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX).then_some(path)
    }

    /// Adds a session. Its slot in the record means nothing yet. Returns its slot, and in a cluster
    /// the change that its welcome depends on.
    ///
    /// # Errors
    ///
    /// The disk has no room.
    pub(crate) fn begin_session(
        &mut self,
        record: &SessionRecord,
    ) -> io::Result<(Index, ChangeNumber)> {
        if let (Some(log), Some(lease)) = (&mut self.log, record.lease) {
            let begun = log.begin_session(record.number, lease, record.proof.clone())?;
            return Ok((record.number, begun));
        }
        self.add_session(record).map(|slot| (slot, ChangeNumber::default()))
    }

    fn add_session(&mut self, record: &SessionRecord) -> io::Result<Index> {
        let Some(Tables { sessions, .. }) = &mut self.tables else { return Ok(0) };
        let slot = sessions.take()?;
        sessions.write(slot, &session_slot(record));
        Ok(slot)
    }

    /// Notes that the client of a session listens at its path of presence.
    pub(crate) fn set_present(&mut self, slot: Index) {
        if let Some(Tables { sessions, .. }) = &mut self.tables
            && slot != 0
        {
            let flags = sessions.get(slot, 0);
            sessions.set(slot, 0, flags | PRESENT);
        }
    }

    /// Notes until when a successor waits for the claim of a session, in milliseconds since the
    /// start of the machine; zero if its client is here.
    pub(crate) fn set_until(&mut self, slot: Index, until_ms: u64) {
        if let Some(Tables { sessions, .. }) = &mut self.tables
            && slot != 0
        {
            sessions.set(slot, UNTIL, until_ms);
        }
    }

    /// Removes a session. Its requests are over with it, whatever their slots say.
    pub(crate) fn end_session(&mut self, slot: Index, took_leave: bool) {
        if slot == 0 {
            return;
        }
        if let Some(log) = &mut self.log {
            log.end_session(slot, took_leave);
        }
        let Some(Tables { sessions, presence, .. }) = &mut self.tables else { return };
        let word = sessions.get(slot, 0);
        sessions.free(slot);
        if word & PRESENT != 0 {
            // The client may have removed it.
            let _gone = std::fs::remove_file(presence.join(((word >> 32) as u32).to_string()));
        }
    }

    /// Adds a pending request.
    ///
    /// # Errors
    ///
    /// The disk has no room.
    #[inline]
    pub(crate) fn begin_request(
        &mut self,
        (session, number): (u32, u64),
        mode: Mode,
        place: u64,
        hashes: &[u64],
    ) -> io::Result<Index> {
        let Some(Tables { requests, .. }) = &mut self.tables else { return Ok(0) };
        let slot = requests.take()?;
        let own = hashes.len().min(HASHES.len());
        let next = match hashes.len() > own {
            true => match add_more(requests, &hashes[own..]) {
                Ok(next) => next,
                Err(error) => {
                    requests.free(slot);
                    return Err(error);
                }
            },
            false => 0,
        };
        let shared = u64::from(mode == Mode::Shared);
        let count = (hashes.len() as u64) << 16;
        let mut words: Slot = [0; WORDS];
        words[0] = PENDING | shared << 8 | count | u64::from(session) << 32;
        words[NUMBER] = number;
        words[ORDER] = place;
        words[HASHES][..own].copy_from_slice(&hashes[..own]);
        words[NEXT] = u64::from(next);
        requests.write(slot, &words);
        Ok(slot)
    }

    /// Notes that a request holds its lock.
    #[inline]
    pub(crate) fn hold(&mut self, slot: Index, token: u64) {
        let Some(Tables { requests, .. }) = &mut self.tables else { return };
        if slot != 0 {
            requests.set(slot, ORDER, token);
            let word = requests.get(slot, 0);
            requests.set(slot, 0, word & !0xff | HELD);
        }
    }

    /// Notes that a request was taken away: its client cannot claim it any more.
    pub(crate) fn lose(&mut self, request: RequestKey, slot: Index, cause: Cause) {
        if let Some(log) = &mut self.log {
            log.lose(request, cause);
        }
        let Some(Tables { requests, .. }) = &mut self.tables else { return };
        if slot == 0 {
            return;
        }
        if let Cause::Stolen(by) = cause {
            requests.set(slot, THIEF_SESSION, u64::from(by.session));
            requests.set(slot, THIEF_REQUEST, by.request);
        }
        let word = requests.get(slot, 0);
        requests.set(slot, 0, word & !0xffff | LOST | cause_number(cause) << 8);
    }

    /// Removes a request that was taken away, because its client has taken note or is gone.
    pub(crate) fn end_lost(&mut self, request: RequestKey, slot: Index) {
        if let Some(log) = &mut self.log {
            log.heard(request);
        }
        self.end_request(slot);
    }

    /// Removes a request.
    #[inline]
    pub(crate) fn end_request(&mut self, slot: Index) {
        let Some(Tables { requests, .. }) = &mut self.tables else { return };
        if slot == 0 {
            return;
        }
        let mut next = requests.get(slot, NEXT) as Index;
        requests.free(slot);
        while next != 0 {
            let more = next;
            next = requests.get(more, NEXT) as Index;
            requests.free(more);
        }
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes the sockets of sessions that the tables do not know: their numbers are given again.
fn clear(presence: &Path) -> io::Result<()> {
    for socket in std::fs::read_dir(presence)? {
        std::fs::remove_file(socket?.path())?;
    }
    Ok(())
}

fn new_header(boot: u128, key: u128, blind: bool) -> Slot {
    let (boot, key) = ([boot as u64, (boot >> 64) as u64], [key as u64, (key >> 64) as u64]);
    [MAGIC, LAYOUT, boot[0], boot[1], key[0], key[1], u64::from(blind), 0]
}

fn is_of_boot(header: &Slot, boot: u128) -> bool {
    header[..4] == new_header(boot, 0, false)[..4]
}

/// Takes slots for the hashes that do not fit into the first one. Returns the first of them.
#[cold]
fn add_more(requests: &mut Table, hashes: &[u64]) -> io::Result<Index> {
    let mut next = 0;
    // From the last to the first, so that each one names a slot that is written.
    for piece in hashes.chunks(MORE_HASHES.len()).rev() {
        let slot = match requests.take() {
            Ok(slot) => slot,
            Err(error) => {
                while next != 0 {
                    let more = next;
                    next = requests.get(more, NEXT) as Index;
                    requests.free(more);
                }
                return Err(error);
            }
        };
        let mut words: Slot = [0; WORDS];
        words[0] = MORE;
        words[MORE_HASHES][..piece.len()].copy_from_slice(piece);
        words[NEXT] = u64::from(next);
        requests.write(slot, &words);
        next = slot;
    }
    Ok(next)
}

/// Reads what an earlier service left, and frees the slots that belong to nothing. Returns none if
/// no service can have written a slot.
fn find(sessions: &mut Table, requests: &mut Table) -> Option<Found> {
    let is_session =
        |words: &Slot| words[0] >> 32 != 0 && words[0] as u32 as u64 & !PRESENT == LIVE;
    let is_request = |words: &Slot| (PENDING..=MORE).contains(&(words[0] & 0xff));
    if !sessions.live().all(|(_, words)| is_session(&words))
        || !requests.live().all(|(_, words)| is_request(&words))
    {
        return None;
    }
    let mut found = Found::default();
    for (slot, words) in sessions.live() {
        found.sessions.push(session_record(slot, &words));
    }
    let mut reached = std::collections::HashSet::new();
    let known: std::collections::HashSet<u32> =
        found.sessions.iter().map(|session| session.number).collect();
    for (slot, words) in requests.live() {
        if let Some(record) = request_record(requests, slot, &words, &mut reached)
            && known.contains(&record.session)
        {
            reached.insert(slot);
            found.requests.push(record);
        }
    }
    let over: Vec<Index> =
        requests.live().map(|(slot, _)| slot).filter(|slot| !reached.contains(slot)).collect();
    for slot in over {
        requests.set(slot, 0, 0);
    }
    sessions.find_free();
    requests.find_free();
    Some(found)
}

fn session_slot(record: &SessionRecord) -> Slot {
    let SessionRecord { number, secret, lease, process, party, present, until_ms, .. } = record;
    let secret = u128::from_le_bytes(*secret);
    let lease = lease.map_or(0, |lease| lease.as_millis() as u64);
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
        lease: (words[3] != 0).then(|| Duration::from_millis(words[3])),
        process: (process.pid != 0).then_some(process),
        party: words[6],
        present: words[0] & PRESENT != 0,
        until_ms: words[UNTIL],
        proof: String::new(),
    }
}

/// Reads a request, unless the slot is a piece of another one. Notes the pieces that it has.
fn request_record(
    requests: &Table,
    slot: Index,
    words: &Slot,
    reached: &mut std::collections::HashSet<Index>,
) -> Option<RequestRecord> {
    let standing = match words[0] & 0xff {
        PENDING => Standing::Pending(words[ORDER]),
        HELD => Standing::Held(words[ORDER]),
        LOST => {
            let by = RequestKey::new(words[THIEF_SESSION] as u32, words[THIEF_REQUEST]);
            Standing::Lost(cause_of(words[0] >> 8 & 0xff, by))
        }
        _ => return None,
    };
    let is_lost = matches!(standing, Standing::Lost(_));
    let mode = if words[0] >> 8 & 1 != 0 && !is_lost { Mode::Shared } else { Mode::Exclusive };
    let count = (words[0] >> 16 & 0xffff) as usize;
    let mut hashes: Vec<u64> = words[HASHES].to_vec();
    let mut next = words[NEXT] as Index;
    while next != 0 && hashes.len() < count && reached.insert(next) {
        let more = requests.read(next);
        hashes.extend(&more[MORE_HASHES]);
        next = more[NEXT] as Index;
    }
    hashes.truncate(count);
    let session = (words[0] >> 32) as u32;
    Some(RequestRecord { slot, session, number: words[NUMBER], mode, standing, hashes })
}

fn cause_number(cause: Cause) -> u64 {
    match cause {
        Cause::Stolen(_) => 1,
        Cause::ForceReleased => 2,
        Cause::Evicted => 3,
        Cause::Suspended => 4,
        Cause::ClientEnded => 5,
        Cause::NotReclaimed => 6,
    }
}

fn cause_of(number: u64, by: RequestKey) -> Cause {
    match number {
        1 => Cause::Stolen(by),
        2 => Cause::ForceReleased,
        3 => Cause::Evicted,
        4 => Cause::Suspended,
        5 => Cause::ClientEnded,
        _ => Cause::NotReclaimed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{folder, killed_at_every_store};
    use super::*;

    const BOOT: u128 = 7;

    fn opened(folder: &Path) -> (Registry, Found) {
        opened_at(folder, BOOT, true, false)
    }

    fn opened_at(folder: &Path, boot: u128, trusted: bool, believed: bool) -> (Registry, Found) {
        let opened = Registry::open(folder, boot, trusted, believed);
        let (registry, _, found) = opened.expect("a registry");
        (registry, found)
    }

    /// The kernel cuts names of programs after 15 bytes.
    #[test]
    fn process_whose_name_ends_within_a_character_is_alive() {
        let program = folder("name").join("äääääääää");
        std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
        let mut child = std::process::Command::new(program).arg("1000").spawn().expect("a process");
        let process = Process::of(child.id());
        assert!(process.started > 0 && process.is_alive(), "{process:?}");
        child.kill().and_then(|()| child.wait()).expect("its end");
        assert!(!process.is_alive());
    }

    fn session(number: u32) -> SessionRecord {
        SessionRecord {
            slot: 0,
            number,
            secret: [number as u8; 16],
            lease: number.is_multiple_of(2).then(|| Duration::from_secs(u64::from(number))),
            process: Some(Process { pid: 4711, started: 99 }),
            party: 12,
            present: false,
            until_ms: 0,
            proof: String::new(),
        }
    }

    fn hashes(count: usize) -> Vec<u64> {
        (0..count as u64).map(|hash| hash + 100).collect()
    }

    #[test]
    fn sessions_and_requests_are_found_by_the_next_service() {
        let folder = folder("registry");
        let (mut registry, found) = opened(&folder);
        assert_eq!(found.sessions, []);
        let slots: Vec<Index> =
            (1..4).map(|number| registry.add_session(&session(number)).expect("room")).collect();
        registry.set_present(slots[0]);
        registry.end_session(slots[2], false);
        let mut made = Vec::new();
        for (number, count) in [1, 2, 3, 8, 9, 1000].into_iter().enumerate() {
            let key = (1, number as u64);
            let slot = registry.begin_request(key, Mode::Shared, 50, &hashes(count));
            made.push(slot.expect("room"));
        }
        registry.hold(made[1], 77);
        registry.lose(RequestKey::new(0, 0), made[3], Cause::Stolen(RequestKey::new(2, 9)));
        registry.end_request(made[4]);
        let orphan = registry.begin_request((3, 1), Mode::Exclusive, 51, &hashes(20));
        orphan.expect("room");
        drop(registry);

        let (_, found) = opened(&folder);
        let Found { sessions, requests, .. } = found;
        let present = SessionRecord { slot: slots[0], present: true, ..session(1) };
        assert_eq!(sessions, [present, SessionRecord { slot: slots[1], ..session(2) }]);
        let told: Vec<_> =
            requests.iter().map(|it| (it.number, it.standing, it.hashes.len())).collect();
        let stolen = Standing::Lost(Cause::Stolen(RequestKey::new(2, 9)));
        let pending = Standing::Pending(50);
        assert_eq!(
            told,
            [
                (0, pending, 1),
                (1, Standing::Held(77), 2),
                (2, pending, 3),
                (3, stolen, 8),
                (5, pending, 1000)
            ]
        );
        assert!(requests.iter().all(|it| it.session == 1 && it.hashes == hashes(it.hashes.len())));
        assert!(requests.iter().filter(|it| it.number != 3).all(|it| it.mode == Mode::Shared));
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn tables_of_another_boot_or_of_no_trust_are_empty() {
        let folder = folder("boot");
        for (boot, trusted, count) in
            [(BOOT, true, 0), (BOOT, true, 1), (BOOT + 1, true, 0), (BOOT + 1, false, 0)]
        {
            let (mut registry, found) = opened_at(&folder, boot, trusted, false);
            assert_eq!(found.sessions.len(), count);
            registry.add_session(&session(1)).expect("room");
        }
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn sockets_of_sessions_that_the_tables_do_not_know_are_removed() {
        let folder = folder("sockets");
        opened(&folder);
        let socket = folder.join("presence/7");
        std::fs::write(&socket, "").expect("a file");
        opened(&folder);
        assert!(socket.exists());
        opened_at(&folder, BOOT + 1, true, false);
        assert!(!socket.exists());
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn tables_that_were_removed_are_made_again() {
        let folder = folder("removed");
        let (mut registry, _) = opened(&folder);
        let slot = registry.add_session(&session(1)).expect("room");
        registry.set_present(slot);
        registry.begin_request((1, 5), Mode::Shared, 50, &hashes(3)).expect("room");
        assert!(!registry.keep().expect("all is there"));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        std::fs::create_dir(&folder).expect("a new folder");
        assert!(registry.keep().expect("they can be made"));
        registry.begin_request((1, 6), Mode::Shared, 51, &hashes(1)).expect("room");
        let (_, found) = opened(&folder);
        assert_eq!(found.sessions, [SessionRecord { slot, ..session(1) }]);
        assert_eq!(found.requests.len(), 2);
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn blindness_lasts_over_further_starts_until_it_is_ended() {
        let folder = folder("blind");
        assert!(opened_at(&folder, BOOT, true, true).1.blind);
        let (mut registry, found) = opened_at(&folder, BOOT, true, true);
        assert!(found.blind);
        registry.end_blindness();
        drop(registry);
        assert!(!opened_at(&folder, BOOT, true, true).1.blind);
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    /// A kill after any store leaves each request as it was before or after the input.
    #[test]
    fn a_kill_between_two_stores_leaves_no_wrong_request() {
        let folder = folder("kill");
        let copy = super::super::table::tests::folder("killed");
        let (mut registry, _) = opened(&folder);
        let slot = registry.add_session(&session(1)).expect("room");
        let sessions = std::fs::read(folder.join("sessions.table")).expect("the table");
        std::fs::write(copy.join("sessions.table"), sessions).expect("a copy");
        let look = copy.clone();
        killed_at_every_store(
            || {
                for count in [1, 3, 30] {
                    let made = registry.begin_request((1, 5), Mode::Shared, 50, &hashes(count));
                    let made = made.expect("room");
                    registry.hold(made, 77);
                    registry.lose(
                        RequestKey::new(0, 0),
                        made,
                        Cause::Stolen(RequestKey::new(2, 9)),
                    );
                    registry.end_request(made);
                }
            },
            move |bytes| {
                std::fs::write(look.join("requests.table"), bytes).expect("a copy");
                let (_, found) = opened(&look);
                for request in found.requests {
                    assert_eq!((request.session, request.number), (1, 5));
                    assert_eq!(request.hashes, hashes(request.hashes.len()));
                    match request.standing {
                        // A request that is about to be held counts as the first that waits.
                        Standing::Pending(place) => assert!(place == 50 || place == 77),
                        Standing::Held(token) => assert_eq!(token, 77),
                        Standing::Lost(cause) => {
                            assert_eq!(cause, Cause::Stolen(RequestKey::new(2, 9)));
                        }
                    }
                }
            },
        );
        registry.end_session(slot, false);
        std::fs::remove_dir_all(folder).expect("the folder goes");
        std::fs::remove_dir_all(copy).expect("the folder goes");
    }
}

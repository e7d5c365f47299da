//! The registry: sessions and their live requests, so that a successor of this service can wait for
//! the claims of its clients.
//!
//! Two tables beside the state file. They survive the end of the process, not that of the machine:
//! after a restart of the machine they count as missing.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navlocks_core::{HashKey, Mode};
use navlocks_wire::{LossCause, RequestKey};

use super::request_table::{RequestRecord, RequestTable};
use super::session_table::{SessionRecord, SessionTable};
use super::slot_log::SlotLog;
use super::state_file::VERSION;
use super::table::{Index, Slot, Table};
use super::{boot_ms, millis};
use crate::cluster::ChangeNumber;

/// The files of the tables.
const SESSIONS: &str = "sessions.table";
const REQUESTS: &str = "requests.table";

/// The first word of both tables. The version of the folder follows.
const MAGIC: u64 = u64::from_le_bytes(*b"navlocks");
/// The word of a header that says whether sessions live that the tables do not know.
const UNKNOWN: usize = 6;

/// The folder of the sockets of presence.
pub(crate) const PRESENCE: &str = "presence";

/// The longest path of the folder: that of a Unix socket without its terminator has 107 bytes.
pub(super) const FOLDER_BYTES_MAX: usize = 107 - "/presence/4294967295".len();

/// The sessions and requests of a service, where they outlive it.
#[derive(Debug)]
pub(crate) enum Registry {
    /// Nothing is kept: sessions end with their service.
    None,
    /// Sessions and requests in mapped files, for the next service on this machine.
    Tables(Box<Tables>),
    /// In a cluster: the changes that the next owner of the slot inherits.
    Slot(SlotLog),
}

#[derive(Debug)]
pub(crate) struct Tables {
    sessions: SessionTable,
    requests: RequestTable,
    /// Where clients listen to show that they are alive.
    presence: PathBuf,
}

/// Whether clients may hold locks of which the tables know nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They cannot.
    #[default]
    None,
    /// The tables of their service were lost.
    Lost,
    /// There is no record of a service before this one.
    Unrecorded,
}

/// The sessions and requests that an earlier service left.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) sessions: Vec<SessionRecord>,
    pub(crate) requests: Vec<RequestRecord>,
    pub(crate) unknown: Unknown,
    /// In a cluster, where requests are not kept: nothing is granted until all sessions have
    /// claimed or ended.
    pub(crate) whole: bool,
    /// In a cluster: the requests that were taken away and must not be claimed.
    pub(crate) taken: HashMap<RequestKey, LossCause>,
    /// In a cluster: no token above this was ever given.
    pub(crate) given: u64,
}

impl Registry {
    /// Opens the tables in this folder. Those of another start of the machine, or of an earlier
    /// service that is not to be `trusted`, are emptied. `unknown` says whether clients of an
    /// earlier service may still believe in their locks, in case that the tables do not know. A
    /// `fresh` service has none from before the records.
    pub(crate) fn open(
        folder: &Path,
        boot: u128,
        trusted: bool,
        unknown: Unknown,
        fresh: bool,
    ) -> io::Result<(Self, HashKey, Found)> {
        let mut sessions = SessionTable(Table::open(&folder.join(SESSIONS))?);
        let mut requests = RequestTable(Table::open(&folder.join(REQUESTS))?);
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
            let unknown = match header[UNKNOWN] {
                _ if unknown == Unknown::None => Unknown::None,
                0 => Unknown::None,
                number if number == Unknown::Unrecorded as u64 => match fresh {
                    true => Unknown::None,
                    false => Unknown::Unrecorded,
                },
                _ => Unknown::Lost,
            };
            (key, Found { unknown, ..found })
        } else {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            let key = u128::from_le_bytes(bytes);
            let header = new_header(boot, key, unknown);
            // A table that a kill leaves without a header is emptied again.
            requests.reset(&header)?;
            sessions.reset(&header)?;
            (key, Found { unknown, ..Found::default() })
        };
        let presence = folder.join(PRESENCE);
        make_private(&presence)?;
        if !kept {
            clear(&presence)?;
        }
        let tables = Tables { sessions, requests, presence };
        let mut registry = Self::Tables(Box::new(tables));
        if found.unknown == Unknown::None {
            registry.end_unknown();
        }
        Ok((registry, HashKey::from_bytes(key.to_le_bytes()), found))
    }

    fn tables(&mut self) -> Option<&mut Tables> {
        match self {
            Self::Tables(tables) => Some(tables),
            Self::None | Self::Slot(_) => None,
        }
    }

    /// Returns the changes of the slot, in a cluster.
    #[inline]
    pub(crate) fn log(&self) -> Option<&SlotLog> {
        match self {
            Self::Slot(log) => Some(log),
            Self::None | Self::Tables(_) => None,
        }
    }

    /// The same, to add one.
    #[inline]
    pub(crate) fn log_mut(&mut self) -> Option<&mut SlotLog> {
        match self {
            Self::Slot(log) => Some(log),
            Self::None | Self::Tables(_) => None,
        }
    }

    /// Returns true if a service left sessions in this folder.
    pub(super) fn has_sessions(folder: &Path) -> bool {
        Table::is_used(&folder.join(SESSIONS))
    }

    /// Makes the files again that were removed from the folder. Returns true if the sockets of
    /// presence were removed too: then processes are known by their numbers alone.
    ///
    /// # Errors
    ///
    /// They cannot be made. The next service would know nothing of the sessions.
    pub(crate) fn keep(&mut self) -> io::Result<bool> {
        let Some(Tables { sessions, requests, presence }) = self.tables() else { return Ok(false) };
        let Some(folder) = presence.parent() else { return Ok(false) };
        for (table, name) in [(&mut requests.0, REQUESTS), (&mut sessions.0, SESSIONS)] {
            let path = folder.join(name);
            if !table.is_at(&path) {
                *table = table.copy_to(&path)?;
            }
        }
        if presence.is_dir() {
            return Ok(false);
        }
        make_private(presence)?;
        sessions.forget_presence();
        Ok(true)
    }

    /// Notes that no client believes any more in a lock that the tables do not know.
    pub(crate) fn end_unknown(&mut self) {
        if let Some(Tables { sessions, requests, .. }) = self.tables() {
            // While the headers differ the tables count as missing.
            requests.set(0, UNKNOWN, 0);
            sessions.set(0, UNKNOWN, 0);
        }
    }

    /// Returns true if sessions outlive this service.
    pub(crate) fn is_durable(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns true if it has the live requests too.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        matches!(self, Self::Tables(_))
    }

    /// Returns where the client of a session should listen to show that it is alive.
    pub(crate) fn presence(&self, session: u32) -> Option<PathBuf> {
        match self {
            Self::Tables(tables) => Some(tables.presence.join(session.to_string())),
            Self::None | Self::Slot(_) => None,
        }
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
        match self {
            Self::Slot(log) => {
                let lease = record.lease.unwrap_or_default();
                let begun = log.begin_session(record.number, lease, record.proof.clone())?;
                Ok((record.number, begun))
            }
            Self::Tables(tables) => Ok((tables.sessions.add(record)?, ChangeNumber::default())),
            Self::None => Ok((0, ChangeNumber::default())),
        }
    }

    /// Notes that the client of a session listens at its path of presence.
    pub(crate) fn set_present(&mut self, slot: Index) {
        if let Self::Tables(tables) = self
            && slot != 0
        {
            tables.sessions.set_present(slot);
        }
    }

    /// Notes until when a successor waits for the claim of a session, in milliseconds since the
    /// start of the machine; zero if its client is here.
    pub(crate) fn set_until(&mut self, slot: Index, until_ms: u64) {
        if let Self::Tables(tables) = self
            && slot != 0
        {
            tables.sessions.set_until(slot, until_ms);
        }
    }

    /// Removes a session. Its requests are over with it, whatever their slots say.
    pub(crate) fn end_session(&mut self, slot: Index, took_leave: bool) {
        if slot == 0 {
            return;
        }
        match self {
            Self::None => {}
            Self::Slot(log) => log.end_session(slot, took_leave),
            Self::Tables(tables) => {
                if let Some(number) = tables.sessions.remove(slot) {
                    // The client may have removed it.
                    let _gone = std::fs::remove_file(tables.presence.join(number.to_string()));
                }
            }
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
        key: (u32, u64),
        mode: Mode,
        place: u64,
        hashes: &[u64],
    ) -> io::Result<Index> {
        match self {
            Self::Tables(tables) => tables.requests.add(key, mode, place, hashes),
            Self::None | Self::Slot(_) => Ok(0),
        }
    }

    /// Notes that a request holds its lock, for so long at most if that is known.
    #[inline]
    pub(crate) fn hold(&mut self, slot: Index, token: u64, left: Option<Duration>) {
        let Self::Tables(tables) = self else { return };
        if slot != 0 {
            let until_ms = left.map_or(0, |left| boot_ms().saturating_add(millis(left)));
            tables.requests.hold(slot, token, until_ms);
        }
    }

    /// Notes that a lock has another mode, which allows as many holders or more.
    pub(crate) fn set_mode(&mut self, slot: Index, mode: Mode) {
        let Self::Tables(tables) = self else { return };
        if slot != 0 {
            tables.requests.set_mode(slot, mode);
        }
    }

    /// Notes that a request was taken away: its client cannot claim it any more.
    pub(crate) fn lose(&mut self, request: RequestKey, slot: Index, cause: LossCause) {
        match self {
            Self::Slot(log) => log.lose(request, cause),
            Self::Tables(tables) if slot != 0 => tables.requests.lose(slot, cause),
            Self::None | Self::Tables(_) => {}
        }
    }

    /// Removes a request that was taken away, because its client has taken note or is gone.
    pub(crate) fn end_lost(&mut self, request: RequestKey, slot: Index) {
        if let Self::Slot(log) = self {
            log.heard(request);
        }
        self.end_request(slot);
    }

    /// Removes a request.
    #[inline]
    pub(crate) fn end_request(&mut self, slot: Index) {
        let Self::Tables(tables) = self else { return };
        if slot != 0 {
            tables.requests.remove(slot);
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

fn new_header(boot: u128, key: u128, unknown: Unknown) -> Slot {
    let (boot, key) = ([boot as u64, (boot >> 64) as u64], [key as u64, (key >> 64) as u64]);
    [MAGIC, VERSION.into(), boot[0], boot[1], key[0], key[1], unknown as u64, 0]
}

fn is_of_boot(header: &Slot, boot: u128) -> bool {
    header[..4] == new_header(boot, 0, Unknown::None)[..4]
}

/// Reads what an earlier service left, and frees the slots that belong to nothing. Returns none if
/// no service can have written a slot.
fn find(sessions: &mut SessionTable, requests: &mut RequestTable) -> Option<Found> {
    if !sessions.is_valid() || !requests.is_valid() {
        return None;
    }
    let records: Vec<SessionRecord> = sessions.records().collect();
    let known = records.iter().map(|session| session.number).collect();
    let found = Found { sessions: records, requests: requests.records(&known), ..Found::default() };
    sessions.find_free();
    requests.find_free();
    Some(found)
}

#[cfg(test)]
mod tests;

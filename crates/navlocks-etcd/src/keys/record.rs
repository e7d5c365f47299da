//! The values of the keys: JSON, so that an operator can read them.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use etcd_client::KeyValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use navlocks_server::cluster::{SessionKey, SessionRecord, TakenRecord};

/// The version of all records that a node writes for a new cluster. A cluster keeps its version.
pub(crate) const VERSION: u32 = 1;

/// The versions that a node reads: its own, and the one before from the first release on.
pub(crate) const READS: RangeInclusive<u32> = VERSION..=VERSION;

/// One run of a node. A node that starts again is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Incarnation(u64);

impl Incarnation {
    pub(crate) fn new() -> Result<Self, Error> {
        getrandom::u64()
            .map(Self)
            .map_err(|error| Error::Unknown(format!("no randomness: {error}")))
    }

    pub(crate) fn of_key(key: &str) -> Option<Self> {
        u64::from_str_radix(last_part(key), 16).ok().map(Self)
    }

    #[cfg(test)]
    pub(crate) fn numbered(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<Incarnation> for String {
    fn from(incarnation: Incarnation) -> Self {
        incarnation.to_string()
    }
}

impl TryFrom<String> for Incarnation {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Self)
    }
}

/// The constants that are the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterRecord {
    pub(crate) version: u32,
    pub(crate) slots: u32,
    pub(crate) node_lease_ms: u64,
    /// etcd's own id, which changes when it is restored from a backup.
    pub(crate) etcd: String,
    /// When the last restore of etcd was noted, in microseconds since 1970; 0 if it never was.
    /// Sessions may be missing since, and tokens given earlier are smaller.
    pub(crate) restored: u64,
    /// Added to revisions to make epochs, which must grow even if revisions do not.
    pub(crate) epoch_floor: u64,
    /// By this secret nodes know each other when they carry messages of clients.
    pub(crate) secret: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NodeRecord {
    pub(crate) name: String,
    pub(crate) address: String,
    /// How many sessions it can serve; 0 if that is not known.
    #[serde(default)]
    pub(crate) seats: u64,
    /// Grows, so that every renewal is a change.
    pub(crate) renewal: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SlotRecord {
    /// None after the owner has given it away.
    pub(crate) node: Option<Incarnation>,
    pub(crate) epoch_floor: u64,
}

/// The last grace of a slot that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GraceRecord {
    pub(crate) epoch: u64,
    /// As in the cluster's record when its owner took the slot. Sessions may be missing until an
    /// owner has ended a grace after the last restore.
    pub(crate) restored: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SessionValue {
    lease_ms: u64,
    proof: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TakenValue {
    thief: Option<(String, u64)>,
}

/// The JSON of a record.
pub(crate) fn text(record: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(record).map_err(|error| Error::Unknown(error.to_string()))
}

/// Reads a record.
pub(crate) fn read<T: DeserializeOwned>(pair: &KeyValue) -> Result<T, Error> {
    serde_json::from_slice(pair.value()).map_err(|error| wrong(pair, &error.to_string()))
}

fn wrong(pair: &KeyValue, reason: &str) -> Error {
    let key = String::from_utf8_lossy(pair.key()).into_owned();
    Error::Record { key, reason: reason.to_owned() }
}

pub(crate) fn session_text(session: &SessionRecord) -> Result<Vec<u8>, Error> {
    let lease_ms = u64::try_from(session.lease.as_millis()).unwrap_or(u64::MAX);
    text(&SessionValue { lease_ms, proof: session.proof.clone() })
}

pub(crate) fn read_session(pair: &KeyValue) -> Result<SessionRecord, Error> {
    let value: SessionValue = read(pair)?;
    let key = key_text(pair)?;
    let key = session_key(last_part(key)).ok_or_else(|| wrong(pair, "no session key"))?;
    Ok(SessionRecord { key, lease: Duration::from_millis(value.lease_ms), proof: value.proof })
}

pub(crate) fn taken_text(taken: &TakenRecord) -> Result<Vec<u8>, Error> {
    let thief = taken.thief.map(|(session, request)| (format!("{session:?}"), request));
    text(&TakenValue { thief })
}

pub(crate) fn read_taken(pair: &KeyValue) -> Result<TakenRecord, Error> {
    let value: TakenValue = read(pair)?;
    let mut parts = key_text(pair)?.rsplit('/');
    let request = parts.next().and_then(|part| part.parse().ok());
    let session = parts.next().and_then(session_key);
    let (Some(session), Some(request)) = (session, request) else {
        return Err(wrong(pair, "no request"));
    };
    let thief = match value.thief {
        None => None,
        Some((thief, request)) => {
            let thief = session_key(&thief).ok_or_else(|| wrong(pair, "no session key"))?;
            Some((thief, request))
        }
    };
    Ok(TakenRecord { victim: (session, request), thief })
}

pub(crate) fn key_text(pair: &KeyValue) -> Result<&str, Error> {
    pair.key_str().map_err(|error| wrong(pair, &error.to_string()))
}

fn session_key(text: &str) -> Option<SessionKey> {
    u128::from_str_radix(text, 16).ok().map(SessionKey)
}

/// The part of a key behind the last slash.
fn last_part(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads<T: DeserializeOwned>(value: &str) -> bool {
        // A member of a later version is ignored.
        let later = value.replacen('{', r#"{"later":[{}],"#, 1);
        serde_json::from_str::<T>(value).is_ok()
            && (value == "{}" || serde_json::from_str::<T>(&later).is_ok())
    }

    #[test]
    fn recorded_keys_of_each_version_are_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/compat");
        let mut versions = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the recorded versions") {
            let path = entry.expect("an entry").path().join("keys.txt");
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            for line in text.lines() {
                let (key, value) = line.split_once(' ').expect("a key and its value");
                let kind = key.split('/').nth(2).expect("a kind");
                let is_session = |text: &str| session_key(text).is_some();
                let is_read = match kind {
                    "cluster" => {
                        let record: ClusterRecord = serde_json::from_str(value).expect(value);
                        versions.push(record.version);
                        READS.contains(&record.version) && reads::<ClusterRecord>(value)
                    }
                    "nodes" => reads::<NodeRecord>(value) && Incarnation::of_key(key).is_some(),
                    "slots" => reads::<SlotRecord>(value),
                    "grace" => reads::<GraceRecord>(value),
                    "sessions" => reads::<SessionValue>(value) && is_session(last_part(key)),
                    "taken" => {
                        let victim = key.rsplit('/').nth(1).is_some_and(is_session);
                        victim && reads::<TakenValue>(value)
                    }
                    "drain" => value == "{}",
                    "batches" => value.contains(':'),
                    "tokens" => value.parse::<u64>().is_ok(),
                    _ => false,
                };
                assert!(is_read, "{line}");
            }
        }
        assert!(versions.contains(&VERSION), "{versions:?}");
    }
}

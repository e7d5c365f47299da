//! The record of a cluster: its constants, and whether etcd has lost what was known of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, Txn, TxnOp, TxnOpResponse};
use tokio::time::timeout;

use super::key::Keys;
use super::record::{self, ClusterRecord, Incarnation, READS, VERSION};
use super::store::Store;
use crate::config::{Config, Known};
use crate::error::Error;
use navlocks_server::cluster::Epoch;

/// No epoch is larger, so that every client can count with it.
const EPOCH_MAX: u64 = (1 << 53) - 1;
/// No floor is larger, so that all revisions of etcd fit above it.
const FLOOR_MAX: u64 = 1 << 52;
/// For etcd to show its history of one key.
const HISTORY_MAX: Duration = Duration::from_secs(5);

/// The part of the record that a node remembers.
pub(crate) struct Agreed {
    pub(crate) secret: String,
    pub(crate) restored: u64,
}

/// Reads the constants of the cluster, or writes them if this node is the first.
pub(crate) async fn agree(store: &Store, keys: &Keys, config: &Config) -> Result<Agreed, Error> {
    let (key, slots, node_lease) = (keys.cluster(), config.slots, config.node_lease);
    let node_lease_ms = u64::try_from(node_lease.as_millis()).unwrap_or(u64::MAX);
    loop {
        // An answer to a write says which etcd this is; this one writes nothing.
        let answer = store.transact(Txn::new().and_then([TxnOp::get(&*key, None)])).await?;
        let etcd = format!("{:016x}", store.cluster());
        let answers = answer.op_responses();
        let Some(pair) = first_pair(&answers) else {
            let is_new = config.known.is_none() && is_new(store, keys).await?;
            let restored = if is_new { 0 } else { note(None, config.known.as_ref()) };
            let ours = ClusterRecord {
                version: VERSION,
                slots,
                node_lease_ms,
                etcd,
                restored,
                epoch_floor: restored,
                secret: format!("{}{}", Incarnation::new()?, Incarnation::new()?),
            };
            let transaction =
                Txn::new().when([Compare::create_revision(&*key, CompareOp::Equal, 0)]).and_then([
                    TxnOp::put(&*key, record::text(&ours)?, None),
                    TxnOp::delete(keys.beginning(), None),
                ]);
            if store.transact(transaction).await?.succeeded() {
                return Ok(Agreed { secret: ours.secret, restored });
            }
            continue;
        };
        let theirs: ClusterRecord = record::read(pair)?;
        if !READS.contains(&theirs.version)
            || (theirs.slots, theirs.node_lease_ms) != (slots, node_lease_ms)
        {
            let words = |version, slots, node_lease_ms| {
                format!(
                    "{slots} slots, a node lease of {node_lease_ms} ms, records of version {version}"
                )
            };
            let ours = words(VERSION, slots, node_lease_ms);
            let theirs = words(theirs.version, theirs.slots, theirs.node_lease_ms);
            let prefix = config.address.prefix.clone();
            return Err(Error::OtherCluster { prefix, ours, theirs });
        }
        let revision = answer.header().map(|header| header.revision()).unwrap_or_default();
        let is_restored = config.known.as_ref().is_some_and(|known| {
            let has_gone_back = known.secret != theirs.secret || revision < known.revision;
            // A larger number was noted by another node since.
            theirs.restored <= known.restored && (known.saw_restore || has_gone_back)
        });
        if theirs.etcd == etcd && !is_restored {
            return Ok(Agreed { secret: theirs.secret, restored: theirs.restored });
        }
        let restored = note(Some(&theirs), config.known.as_ref());
        write_restored(store, keys, pair, ClusterRecord { etcd, ..theirs }, restored).await?;
    }
}

fn first_pair(answers: &[TxnOpResponse]) -> Option<&KeyValue> {
    match answers.first() {
        Some(TxnOpResponse::Get(found)) => found.kvs().first(),
        _ => None,
    }
}

/// Returns the number of a restore that is noted now: larger than all before, on any clock.
fn note(record: Option<&ClusterRecord>, known: Option<&Known>) -> u64 {
    tracing::warn!(
        "etcd was restored or its keys were deleted: nothing is granted before the longest lease has passed"
    );
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = u64::try_from(clock.as_micros()).unwrap_or_default();
    let before = record.map(|it| it.restored).max(known.map(|it| it.restored));
    clock.max(before.unwrap_or_default() + 1)
}

/// Writes that etcd was restored, unless the record has changed: another node may have written it.
async fn write_restored(
    store: &Store,
    keys: &Keys,
    pair: &KeyValue,
    record: ClusterRecord,
    restored: u64,
) -> Result<bool, Error> {
    let epoch_floor = record.epoch_floor.max(restored);
    let record = ClusterRecord { restored, epoch_floor, ..record };
    let key = keys.cluster();
    let transaction = Txn::new()
        .when([Compare::mod_revision(&*key, CompareOp::Equal, pair.mod_revision())])
        .and_then([TxnOp::put(&*key, record::text(&record)?, None)]);
    store.transact(transaction).await.map(|answer| answer.succeeded())
}

/// Notes a restore for an operator: all nodes begin anew, and wait for the longest lease.
pub(crate) async fn note_restored(store: &Store, keys: &Keys) -> Result<(), Error> {
    loop {
        let found = store.get(&keys.cluster(), GetOptions::new()).await?;
        let Some(pair) = found.kvs().first() else { return Err(Error::NoCluster) };
        let record: ClusterRecord = record::read(pair)?;
        let restored = note(Some(&record), None);
        if write_restored(store, keys, pair, record, restored).await? {
            return Ok(());
        }
    }
}

/// Returns true if etcd's history shows that no cluster was ever below this prefix. A history that
/// was compacted shows nothing.
async fn is_new(store: &Store, keys: &Keys) -> Result<bool, Error> {
    let (cluster, mark) = (keys.cluster(), keys.beginning());
    // The mark is the end of the history that matters, and goes when the record is there.
    let transaction = Txn::new()
        .when([Compare::create_revision(&*cluster, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(&*mark, "{}", None)]);
    let marked = store.transact(transaction).await?;
    let end = marked.header().map(|header| header.revision()).unwrap_or_default();
    let mut history = store.watch(&cluster, Some(1)).await?;
    let read = async {
        while let Ok(Some(message)) = history.message().await {
            for pair in message.events().iter().filter_map(|event| event.kv()) {
                if pair.mod_revision() >= end {
                    return true;
                }
                if pair.key() == cluster.as_bytes() {
                    return false;
                }
            }
            if message.canceled() {
                return false;
            }
        }
        false
    };
    Ok(timeout(HISTORY_MAX, read).await.unwrap_or(false))
}

/// Returns the epoch of an owner whose slot has this revision.
pub(crate) fn epoch(revision: i64, floor: u64) -> Result<Epoch, Error> {
    let epoch = revision.unsigned_abs().checked_add(floor).filter(|&epoch| epoch <= EPOCH_MAX);
    epoch.filter(|_| floor <= FLOOR_MAX).map(Epoch).ok_or(Error::Epoch(floor))
}

/// Makes epochs larger than one that a client has seen. Returns the floor.
pub(crate) async fn raise_floor(store: &Store, keys: &Keys, seen: Epoch) -> Result<u64, Error> {
    let key = keys.cluster();
    if seen.0 > FLOOR_MAX {
        return Err(Error::Epoch(seen.0));
    }
    loop {
        let found = store.get(&key, GetOptions::new()).await?;
        let pair = found.kvs().first().ok_or(Error::Restored)?;
        let mut cluster: ClusterRecord = record::read(pair)?;
        if cluster.epoch_floor >= seen.0 {
            return Ok(cluster.epoch_floor);
        }
        cluster.epoch_floor = seen.0;
        let transaction = Txn::new()
            .when([Compare::mod_revision(&*key, CompareOp::Equal, pair.mod_revision())])
            .and_then([TxnOp::put(&*key, record::text(&cluster)?, None)]);
        if store.transact(transaction).await?.succeeded() {
            return Ok(cluster.epoch_floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_grows_with_the_floor_and_never_wraps() {
        assert_eq!(epoch(7, 1_000), Ok(Epoch(1_007)));
        assert_eq!(epoch(7, FLOOR_MAX), Ok(Epoch(FLOOR_MAX + 7)));
        for (revision, floor) in [(7, u64::MAX), (7, FLOOR_MAX + 1), (i64::MAX, 0)] {
            assert_eq!(epoch(revision, floor), Err(Error::Epoch(floor)));
        }
    }
}

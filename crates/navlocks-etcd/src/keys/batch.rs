//! Changes of a slot's registry, made one transaction each of as many as etcd takes.

use std::collections::BTreeSet;

use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp};

use super::key::Keys;
use super::record::{self, GraceRecord};
use crate::error::Error;
use navlocks_server::cluster::{Change, ChangeNumber, Epoch};

/// etcd refuses more operations in a transaction, unless it is told otherwise.
const OPERATIONS_MAX: usize = 100;

/// The owner of a slot, as its writes compare it.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    pub(crate) slot: u32,
    /// The revision of the slot's key.
    pub(crate) revision: i64,
    pub(crate) epoch: Epoch,
    /// As in the cluster's record.
    pub(crate) restored: u64,
    /// The name of this ownership, unique for ever.
    pub(crate) name: String,
}

impl Ownership {
    /// The value of the batch key after a batch.
    pub(crate) fn batch_text(&self, number: u64) -> String {
        format!("{}:{number}", self.name)
    }
}

/// Operations of one transaction. etcd refuses two on one key.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    operations: Vec<TxnOp>,
    keys: BTreeSet<String>,
    /// The last change that is in it as a whole.
    pub(crate) upto: ChangeNumber,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn add(&mut self, key: String, operation: TxnOp) {
        self.keys.insert(key);
        self.operations.push(operation);
    }

    /// Whether the keys of a change are in it already, or there is no room.
    fn is_closed_for(&self, keys: &[String]) -> bool {
        let touches = |one: &String, other: &String| {
            (one.ends_with('/') && other.starts_with(one.as_str())) || one == other
        };
        self.operations.len() + keys.len() > OPERATIONS_MAX
            || keys
                .iter()
                .any(|key| self.keys.iter().any(|there| touches(there, key) || touches(key, there)))
    }

    /// The transaction with a number. It changes nothing if the slot has another owner, or if
    /// this batch or a later one was applied already.
    pub(crate) fn transaction(&self, keys: &Keys, owner: &Ownership, number: u64) -> Txn {
        let (slot_key, batch_key) = (keys.slot(owner.slot), keys.batch(owner.slot));
        let mut operations = vec![TxnOp::put(&*batch_key, owner.batch_text(number), None)];
        operations.extend(self.operations.iter().cloned());
        Txn::new()
            .when([
                Compare::mod_revision(&*slot_key, CompareOp::Equal, owner.revision),
                Compare::value(&*batch_key, CompareOp::Equal, owner.batch_text(number - 1)),
            ])
            .and_then(operations)
            .or_else([TxnOp::get(slot_key, None), TxnOp::get(batch_key, None)])
    }
}

/// Divides changes into batches, in order.
pub(crate) fn batches(
    keys: &Keys,
    owner: &Ownership,
    changes: &[(ChangeNumber, Change)],
) -> Result<Vec<Batch>, Error> {
    let slot = owner.slot;
    let mut batches = vec![Batch::default()];
    let mut add = |parts: Vec<(String, TxnOp)>| {
        let names: Vec<String> = parts.iter().map(|(key, _)| key.clone()).collect();
        if batches.last().is_none_or(|batch| batch.is_closed_for(&names)) {
            let upto = batches.last().map(|batch| batch.upto).unwrap_or_default();
            batches.push(Batch { upto, ..Batch::default() });
        }
        if let Some(batch) = batches.last_mut() {
            parts.into_iter().for_each(|(key, operation)| batch.add(key, operation));
        }
        batches.len() - 1
    };
    let put = |key: String, value: Vec<u8>| (key.clone(), TxnOp::put(key, value, None));
    let delete = |key: String| (key.clone(), TxnOp::delete(key, None));
    let end = |session| {
        let all = DeleteOptions::new().with_prefix();
        let taken = keys.taken_from(slot, session);
        let rest = (taken.clone(), TxnOp::delete(taken, Some(all)));
        vec![delete(keys.session(slot, session)), rest]
    };
    let mut ends = Vec::new();
    for (number, change) in changes {
        let last = match change {
            Change::Begin(session) => {
                let value = record::session_text(session)?;
                add(vec![put(keys.session(slot, session.key), value)])
            }
            Change::End(session) => add(end(*session)),
            Change::Taken(taken) => {
                let (session, request) = taken.victim;
                let key = keys.taken_request(slot, session, request);
                add(vec![put(key, record::taken_text(taken)?)])
            }
            Change::Heard(session, request) => {
                add(vec![delete(keys.taken_request(slot, *session, *request))])
            }
            Change::Reserve(tokens) => {
                add(vec![put(keys.tokens(slot), tokens.to_string().into_bytes())])
            }
            Change::GraceOver(sessions) => {
                sessions.iter().for_each(|session| _ = add(end(*session)));
                let grace = GraceRecord { epoch: owner.epoch.0, restored: owner.restored };
                add(vec![put(keys.grace(slot), record::text(&grace)?)])
            }
        };
        ends.push((last, *number));
    }
    for (last, number) in ends {
        batches[last].upto = number;
    }
    // A batch that ends in the middle of a change confirms only the changes before.
    let mut upto = ChangeNumber::default();
    for batch in &mut batches {
        batch.upto = batch.upto.max(upto);
        upto = batch.upto;
    }
    batches.retain(|batch| !batch.is_empty());
    Ok(batches)
}

/// The options to read a page of keys.
pub(crate) fn page(limit: i64) -> GetOptions {
    GetOptions::new().with_prefix().with_limit(limit)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use navlocks_server::cluster::{SessionKey, SessionRecord, TakenRecord};

    fn parts(changes: &[Change]) -> Vec<(usize, u64)> {
        let (epoch, name) = (Epoch(9), "n".to_owned());
        let owner = Ownership { slot: 3, revision: 9, epoch, restored: 0, name };
        let numbered = (1..).map(ChangeNumber).zip(changes.iter().cloned());
        let numbered: Vec<_> = numbered.collect();
        let batches = batches(&Keys::new("/p/"), &owner, &numbered).unwrap();
        batches.iter().map(|batch| (batch.operations.len(), batch.upto.0)).collect()
    }

    fn begin(number: u128) -> Change {
        let (lease, proof) = (Duration::from_secs(10), String::new());
        Change::Begin(SessionRecord { key: SessionKey(number), lease, proof })
    }

    #[test]
    fn changes_of_many_sessions_are_one_batch() {
        let changes: Vec<Change> = (0..60).map(begin).collect();
        assert_eq!(parts(&changes), [(60, 60)]);
    }

    #[test]
    fn batch_has_no_more_operations_than_etcd_takes() {
        let changes: Vec<Change> = (0..250).map(begin).collect();
        assert_eq!(parts(&changes), [(100, 100), (100, 200), (50, 250)]);
    }

    #[test]
    fn two_changes_of_one_session_are_in_two_batches() {
        let session = SessionKey(1);
        assert_eq!(parts(&[begin(1), Change::End(session)]), [(1, 1), (2, 2)]);
        let taken = Change::Taken(TakenRecord { victim: (session, 5), thief: None });
        assert_eq!(parts(&[taken.clone(), Change::Heard(session, 5)]), [(1, 1), (1, 2)]);
        assert_eq!(parts(&[taken, Change::End(session)]), [(1, 1), (2, 2)]);
        assert_eq!(parts(&[Change::Reserve(1), Change::Reserve(2)]), [(1, 1), (1, 2)]);
    }

    #[test]
    fn end_of_grace_is_confirmed_with_its_last_batch_only() {
        let sessions: Vec<SessionKey> = (0..120).map(SessionKey).collect();
        let parts = parts(&[begin(999), Change::GraceOver(sessions)]);
        assert_eq!(parts.last().map(|part| part.1), Some(2));
        assert!(parts[..parts.len() - 1].iter().all(|part| part.1 == 1), "{parts:?}");
        assert_eq!(parts.iter().map(|part| part.0).sum::<usize>(), 1 + 240 + 1);
    }
}

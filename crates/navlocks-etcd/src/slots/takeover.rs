//! How slots change their owner.

use std::time::Instant;

use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp, TxnOpResponse};

use super::plan::Former;
use crate::error::Error;
use crate::keys::agreement;
use crate::keys::batch::{self, Ownership};
use crate::keys::key::Keys;
use crate::keys::record::{self, GraceRecord, Incarnation, SlotRecord};
use crate::keys::store::Store;
use crate::view::View;
use navlocks_server::cluster::{Epoch, Inherited};

/// Sessions read with the transaction; the others follow in pages as of the same revision.
const PAGE: i64 = 2_000;

/// Slots taken in one transaction. etcd takes a hundred operations and a few more.
pub(crate) const SLOTS_MAX: usize = 16;

/// A node as its transactions name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    pub(crate) incarnation: Incarnation,
    /// The revision in which its key was created.
    pub(crate) created: i64,
}

/// Takes slots of one former owner, and reads their registries. None if anything has changed since
/// the view.
pub(crate) async fn take(
    store: &Store,
    keys: &Keys,
    me: Me,
    view: &View,
    slots: &[u32],
    former: Former,
) -> Result<Option<Vec<(Ownership, Inherited)>>, Error> {
    let (epoch_floor, restored) = (view.cluster.epoch_floor, view.cluster.restored);
    let record = SlotRecord { node: Some(me.incarnation), epoch_floor };
    let mine = keys.node(me.incarnation);
    let mut conditions = vec![Compare::create_revision(mine, CompareOp::Equal, me.created)];
    let (mut operations, mut names) = (Vec::new(), Vec::new());
    for &slot in slots {
        let Some(seen) = view.slots.get(slot as usize) else { return Ok(None) };
        agreement::epoch(seen.revision, epoch_floor)?;
        // The revision of the slot's key before makes the name of this ownership unique.
        let name = format!("{}-{}", me.incarnation, seen.revision);
        let key = keys.slot(slot);
        conditions.push(Compare::mod_revision(&*key, CompareOp::Equal, seen.revision));
        operations.extend([
            TxnOp::get(keys.sessions(slot), Some(batch::page(PAGE))),
            TxnOp::get(keys.taken(slot), Some(GetOptions::new().with_prefix())),
            TxnOp::get(keys.tokens(slot), None),
            TxnOp::get(keys.grace(slot), None),
            TxnOp::put(key, record::text(&record)?, None),
            TxnOp::put(keys.batch(slot), format!("{name}:0"), None),
        ]);
        names.push(name);
    }
    let operations_of_a_slot = operations.len() / slots.len().max(1);
    match former {
        Former::None => {}
        Former::Ended(node) => {
            let key = keys.ended_node(node);
            conditions.push(Compare::create_revision(key, CompareOp::Greater, 0));
        }
        Former::Silent { node, revision } => {
            conditions.push(Compare::mod_revision(keys.node(node), CompareOp::Equal, revision));
            operations.push(TxnOp::delete(keys.node(node), None));
            operations.push(TxnOp::put(keys.ended_node(node), "{}", None));
        }
        Former::Missing(node) => {
            conditions.push(Compare::create_revision(keys.node(node), CompareOp::Equal, 0));
            operations.push(TxnOp::put(keys.ended_node(node), "{}", None));
        }
    }
    let answer = store.transact(Txn::new().when(conditions).and_then(operations)).await?;
    let won_at = Instant::now();
    if !answer.succeeded() {
        return Ok(None);
    }
    let revision = answer.header().map(|header| header.revision()).unwrap_or_default();
    let epoch = agreement::epoch(revision, epoch_floor)?;
    let answers = answer.op_responses();
    let mut taken = Vec::new();
    for ((&slot, name), answers) in
        slots.iter().zip(names).zip(answers.chunks(operations_of_a_slot))
    {
        let ownership = Ownership { slot, revision, epoch, restored, name };
        let inherited = inherit(store, keys, &ownership, answers, won_at).await?;
        taken.push((ownership, inherited));
    }
    Ok(Some(taken))
}

/// The state that earlier owners left, all of it as of the revision of the take-over.
async fn inherit(
    store: &Store,
    keys: &Keys,
    ownership: &Ownership,
    answers: &[TxnOpResponse],
    won_at: Instant,
) -> Result<Inherited, Error> {
    let [
        TxnOpResponse::Get(sessions),
        TxnOpResponse::Get(taken),
        TxnOpResponse::Get(tokens),
        TxnOpResponse::Get(grace),
        ..,
    ] = answers
    else {
        return Err(Error::Unknown("etcd answered another transaction".to_owned()));
    };
    let tokens: Option<u64> = tokens.kvs().first().map(record::read).transpose()?;
    let grace: Option<GraceRecord> = grace.kvs().first().map(record::read).transpose()?;
    let mut inherited = Inherited {
        sessions: sessions.kvs().iter().map(record::read_session).collect::<Result<_, _>>()?,
        taken: taken.kvs().iter().map(record::read_taken).collect::<Result<_, _>>()?,
        // The reservation of a backup may be smaller than tokens that were given since.
        tokens_reserved_to: tokens.unwrap_or_default().max(ownership.restored),
        grace_over: grace.as_ref().map(|grace| Epoch(grace.epoch)),
        won_at,
        is_complete: grace.unwrap_or_default().restored == ownership.restored,
    };
    let prefix = keys.sessions(ownership.slot);
    let mut has_more = sessions.more();
    while has_more {
        let Some(last) = inherited.sessions.last() else { break };
        let start = format!("{}\0", keys.session(ownership.slot, last.key));
        let end = prefix.trim_end_matches('/').to_owned() + "0"; // '0' follows '/'
        let options =
            GetOptions::new().with_range(end).with_limit(PAGE).with_revision(ownership.revision);
        let page = store.get(&start, options).await?;
        for pair in page.kvs() {
            inherited.sessions.push(record::read_session(pair)?);
        }
        has_more = page.more() && !page.kvs().is_empty();
    }
    Ok(inherited)
}

/// Gives a slot away. Returns the new revision of its key; none if it has another owner already.
pub(crate) async fn give(
    store: &Store,
    keys: &Keys,
    owner: &Ownership,
    view: &View,
) -> Result<Option<i64>, Error> {
    let record = SlotRecord { node: None, epoch_floor: view.cluster.epoch_floor };
    let key = keys.slot(owner.slot);
    let transaction = Txn::new()
        .when([Compare::mod_revision(&*key, CompareOp::Equal, owner.revision)])
        .and_then([TxnOp::put(&*key, record::text(&record)?, None)]);
    let answer = store.transact(transaction).await?;
    let revision = answer.header().map(|header| header.revision());
    Ok(revision.filter(|_| answer.succeeded()))
}

//! The key of a node: how it is made, renewed and removed, and what is read along with that.

use std::collections::BTreeMap;

use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp, TxnOpResponse};

use crate::clock::Moment;
use crate::error::Error;
use crate::keys::key::Keys;
use crate::keys::record::{self, Incarnation, NodeRecord};
use crate::keys::store::Store;
use crate::slots::takeover::Me;
use crate::view::{self, Answers, View};

/// The oldest version of etcd whose transactions and watches are as relied on.
const ETCD_MIN: (u32, u32) = (3, 4);

/// Refuses an etcd that does not answer or is too old.
pub(crate) async fn check_version(store: &Store) -> Result<String, Error> {
    let status = store.ask_each(async |mut client: Client| client.status().await).await?;
    let version = status.version().to_owned();
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let found = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if found < ETCD_MIN {
        return Err(Error::TooOld(version));
    }
    if status.leader() == 0 {
        return Err(Error::NoQuorum("no member is the leader".to_owned()));
    }
    Ok(version)
}

/// Makes the node's key. Also returns the nodes at other addresses that have its name already,
/// with the revisions of their keys.
pub(crate) async fn register(
    store: &Store,
    keys: &Keys,
    incarnation: Incarnation,
    record: &NodeRecord,
) -> Result<(Me, BTreeMap<Incarnation, i64>), Error> {
    let key = keys.node(incarnation);
    let transaction =
        Txn::new().when([Compare::create_revision(&*key, CompareOp::Equal, 0)]).and_then([
            TxnOp::get(keys.nodes(), Some(GetOptions::new().with_prefix())),
            TxnOp::put(&*key, record::text(record)?, None),
        ]);
    let answer = store.transact(transaction).await?;
    if !answer.succeeded() {
        return Err(Error::Ended);
    }
    let created = answer.header().map(|header| header.revision()).unwrap_or_default();
    let mut namesakes = BTreeMap::new();
    if let Some(TxnOpResponse::Get(nodes)) = answer.op_responses().first() {
        for pair in nodes.kvs() {
            let node: NodeRecord = record::read(pair)?;
            // At this node's own address there is no other: a key there is of its earlier run.
            if node.name == record.name && node.address != record.address {
                namesakes.insert(view::incarnation(pair)?, pair.mod_revision());
            }
        }
    }
    Ok((Me { incarnation, created }, namesakes))
}

/// Renews the node's key and reads nodes and slots in the same transaction. Also returns the
/// revision.
pub(crate) async fn renew(
    store: &Store,
    keys: &Keys,
    me: Me,
    record: &NodeRecord,
    last: Option<&View>,
    now: impl Fn() -> Moment,
) -> Result<(View, i64), Error> {
    let key = keys.node(me.incarnation);
    let mut operations = questions(keys);
    operations.push(TxnOp::put(&*key, record::text(record)?, None));
    let transaction = Txn::new()
        .when([Compare::create_revision(&*key, CompareOp::Equal, me.created)])
        .and_then(operations);
    let before = store.revision();
    let answer = store.transact(transaction).await?;
    if !answer.succeeded() {
        return Err(Error::Ended);
    }
    // A write has a larger revision than all that was known before, unless etcd has lost writes.
    let revision = answer.header().map(|header| header.revision()).unwrap_or_default();
    if revision <= before {
        return Err(Error::Restored);
    }
    Ok((read_view(keys, &answer.op_responses(), last, now())?, revision))
}

/// Reads nodes and slots without a part in the cluster.
pub(crate) async fn look(store: &Store, keys: &Keys, now: Moment) -> Result<View, Error> {
    let answer = store.transact(Txn::new().and_then(questions(keys))).await?;
    read_view(keys, &answer.op_responses(), None, now)
}

fn questions(keys: &Keys) -> Vec<TxnOp> {
    let all = || Some(GetOptions::new().with_prefix());
    vec![
        TxnOp::get(keys.cluster(), None),
        TxnOp::get(keys.nodes(), all()),
        TxnOp::get(keys.ended_nodes(), all()),
        TxnOp::get(keys.drains(), all()),
        TxnOp::get(keys.slots(), all()),
    ]
}

fn read_view(
    keys: &Keys,
    answers: &[TxnOpResponse],
    last: Option<&View>,
    now: Moment,
) -> Result<View, Error> {
    let [
        TxnOpResponse::Get(cluster),
        TxnOpResponse::Get(nodes),
        TxnOpResponse::Get(ended),
        TxnOpResponse::Get(drains),
        TxnOpResponse::Get(slots),
        ..,
    ] = answers
    else {
        return Err(Error::Unknown("etcd answered another transaction".to_owned()));
    };
    View::read(keys, &Answers { cluster, nodes, ended, drains, slots }, last, now)
}

/// Removes the node's key after its slots were given away.
pub(crate) async fn remove(store: &Store, keys: &Keys, me: Me) -> Result<(), Error> {
    let transaction = Txn::new().and_then([
        TxnOp::delete(keys.node(me.incarnation), None),
        TxnOp::delete(keys.drain(me.incarnation), None),
    ]);
    store.transact(transaction).await.map(|_| ())
}

//! The key of a node: how it is made, renewed and removed, and what is read along with that.

use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp, TxnOpResponse};

use crate::clock::Moment;
use crate::config::Config;
use crate::error::Error;
use crate::key::Keys;
use crate::record::{self, ClusterRecord, Incarnation, NodeRecord, VERSION};
use crate::store::Store;
use crate::takeover::Me;
use crate::view::{Answers, View};
use navlocks_server::cluster::Epoch;

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

/// Reads the constants of the cluster, or writes them if this node is the first.
///
/// Returns the secret of its nodes.
pub(crate) async fn agree(store: &Store, keys: &Keys, config: &Config) -> Result<String, Error> {
    let (key, slots, node_lease) = (keys.cluster(), config.slots, config.node_lease);
    let node_lease_ms = u64::try_from(node_lease.as_millis()).unwrap_or(u64::MAX);
    // An answer to a write says which etcd this is; this one writes nothing.
    store.transact(Txn::new().and_then([TxnOp::get(&*key, None)])).await?;
    let etcd = format!("{:016x}", store.cluster());
    let ours = ClusterRecord {
        version: VERSION,
        slots,
        node_lease_ms,
        etcd: etcd.clone(),
        restored: u64::from(config.is_after_restore),
        epoch_floor: 0,
        secret: format!("{}{}", Incarnation::new()?, Incarnation::new()?),
    };
    let transaction = Txn::new()
        .when([Compare::create_revision(&*key, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(&*key, record::text(&ours)?, None)])
        .or_else([TxnOp::get(&*key, None)]);
    let answer = store.transact(transaction).await?;
    if answer.succeeded() {
        return Ok(ours.secret);
    }
    let answers = answer.op_responses();
    let pair = match answers.first() {
        Some(TxnOpResponse::Get(found)) => found.kvs().first(),
        _ => None,
    };
    let other = || Error::Unknown("etcd answered another transaction".to_owned());
    let pair = pair.ok_or_else(other)?;
    let theirs: ClusterRecord = record::read(pair)?;
    if (theirs.version, theirs.slots, theirs.node_lease_ms) != (VERSION, slots, node_lease_ms) {
        let words = |it: &ClusterRecord| {
            let ClusterRecord { version, slots, node_lease_ms, .. } = it;
            format!(
                "{slots} slots, a node lease of {node_lease_ms} ms, records of version {version}"
            )
        };
        let (ours, theirs) = (words(&ours), words(&theirs));
        let prefix = config.address.prefix.clone();
        return Err(Error::OtherCluster { prefix, ours, theirs });
    }
    if theirs.etcd != etcd {
        tracing::warn!(
            "etcd was restored from a backup: nothing is granted before the longest lease has passed"
        );
        let restored = theirs.restored + 1;
        let restored = ClusterRecord { etcd, restored, ..theirs.clone() };
        let transaction = Txn::new()
            .when([Compare::mod_revision(&*key, CompareOp::Equal, pair.mod_revision())])
            .and_then([TxnOp::put(&*key, record::text(&restored)?, None)]);
        // Another node may have written the same.
        store.transact(transaction).await?;
    }
    Ok(theirs.secret)
}

/// Makes the node's key. The revision is that of its creation.
pub(crate) async fn register(
    store: &Store,
    keys: &Keys,
    incarnation: Incarnation,
    record: &NodeRecord,
) -> Result<Me, Error> {
    let key = keys.node(incarnation);
    let transaction = Txn::new()
        .when([Compare::create_revision(&*key, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(&*key, record::text(record)?, None)]);
    let answer = store.transact(transaction).await?;
    if !answer.succeeded() {
        return Err(Error::Ended);
    }
    let created = answer.header().map(|header| header.revision()).unwrap_or_default();
    Ok(Me { incarnation, created })
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
    let answer = store.transact(transaction).await?;
    if !answer.succeeded() {
        return Err(Error::Ended);
    }
    let revision = answer.header().map(|header| header.revision()).unwrap_or_default();
    Ok((view(keys, &answer.op_responses(), last, now())?, revision))
}

/// Reads nodes and slots without a part in the cluster.
pub(crate) async fn look(store: &Store, keys: &Keys, now: Moment) -> Result<View, Error> {
    let answer = store.transact(Txn::new().and_then(questions(keys))).await?;
    view(keys, &answer.op_responses(), None, now)
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

fn view(
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

/// Makes epochs larger than one that a client has seen. Returns the floor.
pub(crate) async fn raise_floor(store: &Store, keys: &Keys, seen: Epoch) -> Result<u64, Error> {
    let key = keys.cluster();
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

/// Removes the node's key after its slots were given away.
pub(crate) async fn remove(store: &Store, keys: &Keys, me: Me) -> Result<(), Error> {
    let transaction = Txn::new().and_then([
        TxnOp::delete(keys.node(me.incarnation), None),
        TxnOp::delete(keys.drain(me.incarnation), None),
    ]);
    store.transact(transaction).await.map(|_| ())
}

//! Looking at a cluster from outside, and asking a node to give its slots away.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, Client, GetOptions, Txn, TxnOp};

use super::renewal;
use crate::address::{Address, TlsFiles};
use crate::clock::Moment;
use crate::error::Error;
use crate::keys::agreement;
use crate::keys::hashing;
use crate::keys::key::Keys;
use crate::keys::record::{self, GraceRecord};
use crate::keys::store::Store;
use crate::view::View;
use navlocks_server::cluster::Epoch;

const CALL_MAX: Duration = Duration::from_secs(3);

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// Its nodes, in the order of their names.
    pub nodes: Vec<NodeView>,
    /// Its slots, by number.
    pub slots: Vec<SlotView>,
    /// How long a node may be silent.
    pub node_lease: Duration,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// The run of the node.
    pub incarnation: String,
    /// Its name.
    pub name: String,
    /// The address at which it can be reached.
    pub address: String,
    /// It gives its slots away.
    pub is_draining: bool,
    /// The time since its last renewal was seen; zero for a first look.
    pub silent: Duration,
    /// How many slots it owns.
    pub slots: usize,
    /// How many sessions it can serve; 0 if that is not known.
    pub seats: u64,
}

/// A slot of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// The epoch of its last owner; none if it never had one.
    pub epoch: Option<Epoch>,
    /// The address of its owner; none if it is free or its owner is gone.
    pub address: Option<String>,
    /// How many sessions it has. Only an [`Inspection`] counts them.
    pub sessions: usize,
    /// Its owner waits for the claims of its sessions. Only an [`Inspection`] looks.
    pub is_rebuilt: bool,
}

impl ClusterView {
    pub(crate) fn new(view: &View, now: Moment) -> Self {
        let slots = |number| view.slots.iter().filter(|slot| slot.node == Some(number)).count();
        let mut nodes: Vec<NodeView> = view
            .nodes
            .iter()
            .map(|(number, node)| NodeView {
                incarnation: number.to_string(),
                name: node.name.clone(),
                address: node.address.clone(),
                is_draining: node.is_draining,
                silent: now.since(node.since),
                slots: slots(*number),
                seats: node.seats,
            })
            .collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        let slots = view.slots.iter().map(|slot| SlotView {
            epoch: agreement::epoch(slot.revision, slot.epoch_floor)
                .ok()
                .filter(|_| slot.revision != 0),
            address: slot.node.and_then(|node| view.nodes.get(&node)).map(|it| it.address.clone()),
            sessions: 0,
            is_rebuilt: false,
        });
        Self { slots: slots.collect(), nodes, node_lease: view.node_lease() }
    }

    /// Returns true if each slot has the same owner as in another view.
    pub(crate) fn has_owners_of(&self, other: &Self) -> bool {
        let owners = self.slots.iter().map(|slot| &slot.address);
        owners.eq(other.slots.iter().map(|slot| &slot.address))
    }

    /// Returns a node whose sessions the others could not all serve if it died, with how many
    /// sessions there are and how many seats the others have.
    pub fn unreplaceable(&self) -> Option<(&NodeView, u64, u64)> {
        let sessions = self.slots.iter().map(|slot| slot.sessions as u64).sum();
        let is_known = self.nodes.len() > 1 && self.nodes.iter().all(|node| node.seats > 0);
        let seats: u64 = self.nodes.iter().map(|node| node.seats).sum();
        let largest = self.nodes.iter().filter(|_| is_known).max_by_key(|node| node.seats)?;
        let left = seats - largest.seats;
        (left < sessions).then_some((largest, sessions, left))
    }

    /// Returns true if each slot is owned by the node where it belongs, so that none will move.
    pub fn is_balanced(&self) -> bool {
        let staying = || self.nodes.iter().filter(|node| !node.is_draining);
        let is_at_home = |(number, slot): (u32, &SlotView)| {
            let name = hashing::node_of(number, staying().map(|node| node.name.as_str()));
            let named = || staying().filter(|node| Some(node.name.as_str()) == name);
            named().any(|node| slot.address.as_ref() == Some(&node.address))
        };
        (0..).zip(&self.slots).all(is_at_home)
    }
}

/// The health of etcd, for `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Its version.
    pub version: String,
    /// A known bug of this version that the cluster is guarded against, and how to be rid of it.
    pub advice: Option<&'static str>,
    /// Its store is full.
    pub is_full: bool,
    /// The bytes of the database of the member that was asked.
    pub bytes: u64,
    /// The longest of a few writes.
    pub write: Duration,
}

/// An operator's way into a cluster.
#[derive(Debug)]
pub struct Inspection {
    store: Store,
    keys: Keys,
}

impl Inspection {
    /// Prepares to ask; nothing is sent yet.
    ///
    /// # Errors
    /// If a certificate cannot be read.
    pub fn new(address: &Address, tls: &TlsFiles) -> Result<Self, Error> {
        let keys = Keys::new(&address.prefix);
        Ok(Self { store: Store::new(address, tls, CALL_MAX)?, keys })
    }

    /// Reads nodes and slots in one transaction, then sessions and recoveries.
    ///
    /// # Errors
    /// Each cause has an error of its own.
    pub async fn look(&self) -> Result<ClusterView, Error> {
        renewal::check_version(&self.store).await?;
        let view = renewal::look(&self.store, &self.keys, Moment::MIN).await?;
        let mut view = ClusterView::new(&view, Moment::MIN);
        let (sessions, graces) = (self.keys.all_sessions(), self.keys.graces());
        let found = GetOptions::new().with_prefix().with_keys_only();
        for pair in self.store.get(&sessions, found).await?.kvs() {
            let slot = Keys::slot_of(&sessions, pair.key()).and_then(|it| view.slots.get_mut(it));
            slot.into_iter().for_each(|slot| slot.sessions += 1);
        }
        let mut over: BTreeMap<usize, u64> = BTreeMap::new();
        for pair in self.store.get(&graces, GetOptions::new().with_prefix()).await?.kvs() {
            if let Some(slot) = Keys::slot_of(&graces, pair.key()) {
                let grace: GraceRecord = record::read(pair)?;
                over.insert(slot, grace.epoch);
            }
        }
        for (number, slot) in view.slots.iter_mut().enumerate() {
            let epoch = slot.epoch.filter(|_| slot.address.is_some());
            slot.is_rebuilt = epoch.is_some_and(|it| over.get(&number).is_none_or(|&o| o < it.0));
        }
        Ok(view)
    }

    /// Asks a node to give its slots away, or no longer to.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] if none has the name.
    pub async fn drain(&self, name: &str, is_draining: bool) -> Result<(), Error> {
        let view = renewal::look(&self.store, &self.keys, Moment::MIN).await?;
        let named = view.nodes.iter().filter(|(_, node)| node.name == name);
        let named: Vec<_> = named.map(|(number, _)| self.keys.drain(*number)).collect();
        if named.is_empty() {
            return Err(Error::NoSuchNode(name.to_owned()));
        }
        let operation = |key: String| match is_draining {
            true => TxnOp::put(key, "{}", None),
            false => TxnOp::delete(key, None),
        };
        let operations: Vec<TxnOp> = named.into_iter().map(operation).collect();
        self.store.transact(Txn::new().and_then(operations)).await.map(|_| ())
    }

    /// Tells all nodes that etcd was restored from a backup: they begin anew, refuse claims, and
    /// grant nothing before the longest lease has passed.
    ///
    /// # Errors
    /// [`Error::NoCluster`] if there is none.
    pub async fn note_restored(&self) -> Result<(), Error> {
        agreement::note_restored(&self.store, &self.keys).await
    }

    /// Looks at etcd itself.
    ///
    /// # Errors
    /// Each cause has an error of its own, except a full store.
    pub async fn health(&self) -> Result<Health, Error> {
        const WRITES: usize = 5;
        let version = renewal::check_version(&self.store).await?;
        let alarms =
            async |mut client: Client| client.alarm(AlarmAction::Get, AlarmType::None, None).await;
        let alarms = self.store.ask_each(alarms).await?;
        let is_full = alarms.alarms().iter().any(|alarm| alarm.alarm() == AlarmType::Nospace);
        let status = async |mut client: Client| client.status().await;
        let bytes = self.store.ask_each(status).await?.db_size().try_into().unwrap_or_default();
        let mut write = Duration::ZERO;
        if !is_full {
            let key = format!("{}doctor", self.keys.cluster());
            for _ in 0..WRITES {
                let start = Instant::now();
                let transaction = Txn::new().and_then([TxnOp::put(&*key, "{}", None)]);
                self.store.transact(transaction).await?;
                write = write.max(start.elapsed());
            }
            let transaction = Txn::new().and_then([TxnOp::delete(&*key, None)]);
            self.store.transact(transaction).await?;
        }
        Ok(Health { advice: advice(&version), version, is_full, bytes, write })
    }
}

/// Known bugs by version, from etcd's changelogs.
fn advice(version: &str) -> Option<&'static str> {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    match (next(), next(), next()) {
        (3, 5, 0..=2) => Some(
            "a crash under load can leave members with different data: update to 3.5.3 or later",
        ),
        (3, 4, _) | (3, 5, _) => Some(
            "deposed leaders may answer and watches may lose events, which navlocks is guarded against: prefer 3.6 or the newest 3.5",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_unreplaceable_if_the_others_have_too_few_seats() {
        let node = |seats| NodeView {
            incarnation: String::new(),
            name: format!("of {seats}"),
            address: String::new(),
            is_draining: false,
            silent: Duration::ZERO,
            slots: 1,
            seats,
        };
        let slot = SlotView { epoch: None, address: None, sessions: 150, is_rebuilt: false };
        let view = |seats: &[u64]| ClusterView {
            nodes: seats.iter().map(|&seats| node(seats)).collect(),
            slots: vec![slot.clone(), slot.clone()],
            node_lease: Duration::ZERO,
        };
        let view_of = |seats: &[u64]| {
            let view = view(seats);
            view.unreplaceable().map(|(node, sessions, left)| (node.name.clone(), sessions, left))
        };
        assert_eq!(view_of(&[150, 150, 150]), None);
        assert_eq!(view_of(&[100, 900, 199]), Some(("of 900".to_owned(), 300, 299)));
        // A single node has no survivors, and an older one does not tell.
        assert_eq!(view_of(&[10]), None);
        assert_eq!(view_of(&[0, 900, 199]), None);
    }

    #[test]
    fn advice_names_the_worst_bug_of_a_version() {
        assert!(advice("3.5.1").unwrap().contains("3.5.3"));
        assert!(advice("3.4.23").unwrap().contains("guarded"));
        assert_eq!(advice("3.6.0"), None);
    }
}

//! This node's part in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::driver::{Command, Driver, Event};
use super::hearing::Hearing;
use super::inspection::ClusterView;
use super::renewal;
use super::renewer::Renewer;
use super::sighting::Sightings;
use crate::clock::{Clock, Moment};
use crate::config::{Config, Known};
use crate::error::Error;
use crate::keys::agreement::{self, Agreed};
use crate::keys::compaction::Compaction;
use crate::keys::key::Keys;
use crate::keys::record::{Incarnation, NodeRecord};
use crate::keys::store::Store;
use crate::slots::belief::Belief;
use crate::view::View;
use navlocks_server::cluster::Epoch;

/// One call of a node that joins.
const JOIN_CALL_MAX: Duration = Duration::from_secs(5);

/// A node that takes part.
#[derive(Debug)]
pub struct Member {
    incarnation: Incarnation,
    secret: String,
    restored: u64,
    store: Arc<Store>,
    belief: Arc<Belief>,
    events: mpsc::UnboundedReceiver<Event>,
    commands: mpsc::UnboundedSender<Command>,
    views: watch::Receiver<Arc<ClusterView>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Member {
    /// Joins the cluster, which begins with its first node.
    ///
    /// # Errors
    /// Each cause has an error of its own.
    pub async fn join(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let keys = Keys::new(&config.address.prefix);
        let lease = config.node_lease;
        // An etcd that has just started elects its leader first.
        let patient = Store::new(&config.address, &config.tls, JOIN_CALL_MAX)?;
        renewal::check_version(&patient).await?;
        let mut agreed = agreement::agree(&patient, &keys, &config).await;
        for _ in 1..config.address.members.len() {
            if agreed.as_ref().is_err_and(Error::may_be_the_members) {
                agreed = agreement::agree(&patient, &keys, &config).await;
            }
        }
        let Agreed { secret, restored } = agreed?;
        // Two attempts fit between two renewals.
        let store = Arc::new(Store::new(&config.address, &config.tls, lease / 6)?);
        let incarnation = Incarnation::new()?;
        let (name, address) = (config.name.clone(), config.advertise.clone());
        let record = NodeRecord { name, address, seats: config.seats, renewal: 0 };
        let belief = Arc::new(Belief::new(lease));
        let sent = clock.now();
        let (me, namesakes) = renewal::register(&patient, &keys, incarnation, &record).await?;
        belief.renewed(sent);
        let sightings = Arc::new(Sightings::default());
        let (view_sender, views_of_renewer) = watch::channel(None);
        let (failed, failure) = oneshot::channel();
        let hearing = Arc::new(Hearing::new(clock.clone(), lease));
        let renewer = Renewer {
            store: store.clone(),
            keys: keys.clone(),
            clock: clock.clone(),
            hearing: hearing.clone(),
            me,
            record,
            belief: belief.clone(),
            sightings: sightings.clone(),
            node_lease: lease,
            confirmed: me.created,
            compaction: Compaction::new(config.compact_after),
            restored,
        };
        let watching =
            sightings.clone().watch(store.clone(), keys.clone(), hearing.clone(), lease / 8);
        let (event_sender, events) = mpsc::unbounded_channel();
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (shown, views) = watch::channel(Arc::new(ClusterView::default()));
        let views_read = views_of_renewer.clone();
        let driver = Driver {
            store: store.clone(),
            keys: keys.clone(),
            clock,
            hearing: hearing.clone(),
            me,
            belief: belief.clone(),
            sightings,
            events: event_sender,
            shown,
            held: BTreeMap::new(),
            giving: BTreeSet::new(),
            view: None,
        };
        let tasks = vec![
            tokio::spawn(renewer.run(view_sender, failed)),
            tokio::spawn(watching),
            tokio::spawn(driver.run(views_of_renewer, command_receiver, failure)),
        ];
        let member =
            Self { incarnation, secret, restored, store, belief, events, commands, views, tasks };
        if let Err(error) = outlast(&namesakes, views_read, &hearing).await {
            drop(member);
            renewal::remove(&patient, &keys, me).await?;
            return Err(error);
        }
        Ok(member)
    }

    /// This run of the node.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The secret that all nodes of the cluster know.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The knowledge of this node, for when it joins again after this error.
    pub fn known(&self, error: &Error) -> Known {
        Known {
            secret: self.secret.clone(),
            restored: self.restored,
            revision: self.store.revision(),
            saw_restore: *error == Error::Restored,
        }
    }

    /// Until when the node may send grants, welcomes and pongs.
    pub fn may_serve_until(&self) -> Moment {
        self.belief.until()
    }

    /// The next event; none after [`Event::Ended`].
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Nodes and slots as they were last read, and every later reading.
    pub fn views(&self) -> watch::Receiver<Arc<ClusterView>> {
        self.views.clone()
    }

    /// Gives a slot away that is not served any more and whose changes are all confirmed.
    ///
    /// # Errors
    /// If etcd cannot be asked; another node takes the slot when this one is silent.
    pub async fn give(&self, slot: u32) -> Result<(), Error> {
        self.command(|answer| Command::Give(slot, answer)).await
    }

    /// Makes all epochs from now on larger than one that a client has seen. The node loses its
    /// slots and takes them again: etcd has lost writes, or the client would not have seen it.
    ///
    /// # Errors
    /// If etcd cannot be asked.
    pub async fn raise_epochs(&self, seen: Epoch) -> Result<(), Error> {
        self.command(|answer| Command::Raise(seen, answer)).await
    }

    /// Gives all slots away and leaves. Nothing may be served any more.
    ///
    /// # Errors
    /// As for [`Member::give`].
    pub async fn leave(&self) -> Result<(), Error> {
        self.command(Command::Leave).await
    }

    async fn command(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Command,
    ) -> Result<(), Error> {
        let (sender, receiver) = oneshot::channel();
        self.commands.send(command(sender)).map_err(|_| Error::Ended)?;
        receiver.await.map_err(|_| Error::Ended)?
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.belief.end();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Waits until the nodes that have this node's name are gone or silent. One that renews its key
/// lives, and this node is refused.
async fn outlast(
    namesakes: &BTreeMap<Incarnation, i64>,
    mut views: watch::Receiver<Option<Arc<View>>>,
    hearing: &Hearing,
) -> Result<(), Error> {
    while !namesakes.is_empty() && views.changed().await.is_ok() {
        let Some(view) = views.borrow_and_update().clone() else { continue };
        let mut is_over = true;
        for (number, revision) in namesakes {
            let Some(node) = view.nodes.get(number) else { continue };
            if node.revision > *revision {
                let (name, address) = (node.name.clone(), node.address.clone());
                return Err(Error::Namesake { name, address });
            }
            is_over &= view.is_silent(node, hearing.now());
        }
        if is_over {
            break;
        }
    }
    Ok(())
}

//! This node's part in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Compare, CompareOp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::batch::Ownership;
use crate::belief::Belief;
use crate::clock::{Clock, Moment};
use crate::config::Config;
use crate::ended::Ended;
use crate::error::Error;
use crate::inspection::ClusterView;
use crate::key::Keys;
use crate::plan::{self, Step};
use crate::record::{Incarnation, NodeRecord};
use crate::renewal;
use crate::renewer::Renewer;
use crate::sighting::Sightings;
use crate::slot::{OwnedSlot, Progress};
use crate::store::Store;
use crate::takeover::{self, Me};
use crate::view::View;
use navlocks_server::cluster::{Epoch, Inherited};

/// One call of a node that joins.
const JOIN_CALL_MAX: Duration = Duration::from_secs(5);

/// An event in the life of this node.
#[derive(Debug)]
pub enum Event {
    /// The node owns a slot from now on, and its grace begins.
    Gained(OwnedSlot, Inherited),
    /// The node does not own a slot any more.
    Lost(u32, Ended),
    /// Another node should have the slot: stop serving it, then [`Member::give`] it.
    Give {
        /// The slot.
        slot: u32,
        /// The address of the node that will take it.
        to: String,
    },
    /// The node is no part of the cluster any more and has to join again.
    Ended(Error),
}

/// A node that takes part.
#[derive(Debug)]
pub struct Member {
    incarnation: Incarnation,
    secret: String,
    belief: Arc<Belief>,
    events: mpsc::UnboundedReceiver<Event>,
    commands: mpsc::UnboundedSender<Command>,
    views: watch::Receiver<Arc<ClusterView>>,
    tasks: Vec<JoinHandle<()>>,
}

enum Command {
    Give(u32, oneshot::Sender<Result<(), Error>>),
    Raise(Epoch, oneshot::Sender<Result<(), Error>>),
    Leave(oneshot::Sender<Result<(), Error>>),
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
        let mut agreed = renewal::agree(&patient, &keys, &config).await;
        for _ in 1..config.address.members.len() {
            if agreed.as_ref().is_err_and(Error::may_be_the_members) {
                agreed = renewal::agree(&patient, &keys, &config).await;
            }
        }
        let secret = agreed?;
        // Two attempts fit between two renewals.
        let store = Arc::new(Store::new(&config.address, &config.tls, lease / 6)?);
        let incarnation = Incarnation::new()?;
        let record =
            NodeRecord { name: config.name.clone(), address: config.advertise.clone(), renewal: 0 };
        let belief = Arc::new(Belief::new(lease));
        let sent = clock.now();
        let me = renewal::register(&patient, &keys, incarnation, &record).await?;
        belief.renewed(sent);
        let sightings = Arc::new(Sightings::default());
        let (view_sender, views_of_renewer) = watch::channel(None);
        let (failed, failure) = oneshot::channel();
        let renewer = Renewer {
            store: store.clone(),
            keys: keys.clone(),
            clock: clock.clone(),
            me,
            record,
            belief: belief.clone(),
            sightings: sightings.clone(),
            node_lease: lease,
            revision: me.created,
        };
        let watching =
            sightings.clone().watch(store.clone(), keys.clone(), clock.clone(), lease / 8);
        let (event_sender, events) = mpsc::unbounded_channel();
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (shown, views) = watch::channel(Arc::new(ClusterView::default()));
        let driver = Driver {
            store,
            keys,
            clock,
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
        Ok(Self { incarnation, secret, belief, events, commands, views, tasks })
    }

    /// This run of the node.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The secret that all nodes of the cluster know.
    pub fn secret(&self) -> &str {
        &self.secret
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
    pub async fn leave(self) -> Result<(), Error> {
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

struct Held {
    ownership: Ownership,
    progress: Arc<Progress>,
}

/// Takes and gives slots as the views demand.
struct Driver {
    store: Arc<Store>,
    keys: Keys,
    clock: Arc<dyn Clock>,
    me: Me,
    belief: Arc<Belief>,
    sightings: Arc<Sightings>,
    events: mpsc::UnboundedSender<Event>,
    shown: watch::Sender<Arc<ClusterView>>,
    held: BTreeMap<u32, Held>,
    giving: BTreeSet<u32>,
    view: Option<View>,
}

impl Driver {
    async fn run(
        mut self,
        mut views: watch::Receiver<Option<Arc<View>>>,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut failure: oneshot::Receiver<Error>,
    ) {
        loop {
            let silence = self.time_to_silence();
            tokio::select! {
                biased;
                error = &mut failure => return self.end(&error.unwrap_or(Error::Ended)),
                Some(command) = commands.recv() => {
                    if self.obey(command).await {
                        return;
                    }
                }
                changed = views.changed() => {
                    if changed.is_err() {
                        continue;
                    }
                    let view = views.borrow_and_update().clone();
                    if let Some(view) = view {
                        self.see(View::clone(&view));
                    }
                }
                () = self.sightings.renewal.notified() => {}
                () = sleep(silence) => {}
            }
            if let Some(view) = &mut self.view {
                self.sightings.refresh(view);
            }
            self.act().await;
        }
    }

    /// Until the next node could be found silent.
    fn time_to_silence(&self) -> Duration {
        let Some(view) = &self.view else { return Duration::from_secs(1) };
        let now = self.clock.now();
        let since =
            view.nodes.values().map(|node| node.since).chain(view.missing.values().copied());
        let left = since.map(|since| since.plus(view.node_lease()).since(now));
        left.filter(|left| !left.is_zero()).min().unwrap_or_else(|| view.node_lease())
    }

    /// Finds slots that were lost.
    fn see(&mut self, view: View) {
        let is_mine = |slot: u32, held: &Held| {
            let seen = view.slots.get(slot as usize);
            // A view may be older than the take-over.
            seen.is_some_and(|seen| seen.revision <= held.ownership.revision)
        };
        let lost: Vec<u32> = self
            .held
            .iter()
            .filter(|(slot, held)| !is_mine(**slot, held))
            .map(|it| *it.0)
            .collect();
        for slot in lost {
            self.lose(slot, Ended::Lost);
        }
        self.shown.send_replace(Arc::new(ClusterView::new(&view, self.clock.now())));
        self.view = Some(view);
    }

    fn lose(&mut self, slot: u32, cause: Ended) {
        self.giving.remove(&slot);
        if let Some(held) = self.held.remove(&slot) {
            held.progress.end(cause.clone());
            let _ = self.events.send(Event::Lost(slot, cause));
        }
    }

    async fn act(&mut self) {
        let Some(view) = self.view.clone() else { return };
        let held: BTreeSet<u32> = self.held.keys().copied().collect();
        let now = self.clock.now();
        let steps = plan::steps(&view, self.me.incarnation, &held, &self.giving, now);
        for step in steps {
            match step {
                Step::Take { slot, former, .. } => self.take(&view, slot, former).await,
                Step::Give { slot, to } => {
                    self.giving.insert(slot);
                    let to = view.nodes.get(&to).map(|node| node.address.clone());
                    let _ = self.events.send(Event::Give { slot, to: to.unwrap_or_default() });
                }
            }
        }
        for (node, revision) in plan::abandoned(&view, self.me.incarnation, now) {
            let key = self.keys.node(node);
            let unchanged = Compare::mod_revision(&*key, CompareOp::Equal, revision);
            let delete = etcd_client::TxnOp::delete(key, None);
            let transaction = etcd_client::Txn::new().when([unchanged]).and_then([delete]);
            if self.store.transact(transaction).await.is_ok_and(|answer| answer.succeeded())
                && let Some(view) = &mut self.view
            {
                view.nodes.remove(&node);
            }
        }
        for node in plan::forgotten(&view) {
            let key = self.keys.ended_node(node);
            let transaction =
                etcd_client::Txn::new().and_then([etcd_client::TxnOp::delete(key, None)]);
            if self.store.transact(transaction).await.is_ok()
                && let Some(view) = &mut self.view
            {
                view.ended.remove(&node);
            }
        }
    }

    async fn take(&mut self, view: &View, slot: u32, former: plan::Former) {
        let (store, keys) = (&self.store, &self.keys);
        let taken = takeover::take(store, keys, self.me, view, slot, former).await;
        match taken {
            Ok(Some((ownership, inherited))) => {
                tracing::info!(slot, epoch = ownership.epoch.0, "this node owns the slot");
                if let Some(view) = &mut self.view {
                    let seen = &mut view.slots[slot as usize];
                    (seen.node, seen.revision) = (Some(self.me.incarnation), ownership.revision);
                }
                let (store, keys) = (self.store.clone(), self.keys.clone());
                let belief = self.belief.clone();
                let believing = (belief, self.clock.clone());
                let (owned, progress) = OwnedSlot::start(store, keys, ownership.clone(), believing);
                self.held.insert(slot, Held { ownership, progress });
                let _ = self.events.send(Event::Gained(owned, inherited));
            }
            // Something has changed, or the outcome is unknown: the next reading tells.
            Ok(None) => self.sightings.hint.notify_one(),
            Err(error) => {
                tracing::warn!(slot, %error, "the slot is not taken");
                self.sightings.hint.notify_one();
            }
        }
    }

    /// Returns true after the last command.
    async fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Give(slot, answer) => {
                let given = self.give(slot).await;
                let _ = answer.send(given);
                false
            }
            Command::Raise(seen, answer) => {
                let raised = renewal::raise_floor(&self.store, &self.keys, seen).await;
                if let (Ok(floor), Some(view)) = (&raised, &mut self.view) {
                    view.cluster.epoch_floor = *floor;
                }
                for slot in self.held.keys().copied().collect::<Vec<u32>>() {
                    self.lose(slot, Ended::Lost);
                }
                let _ = answer.send(raised.map(|_| ()));
                false
            }
            Command::Leave(answer) => {
                let mut result = Ok(());
                for slot in self.held.keys().copied().collect::<Vec<u32>>() {
                    result = result.and(self.give(slot).await);
                }
                let removed = renewal::remove(&self.store, &self.keys, self.me).await;
                let _ = answer.send(result.and(removed));
                true
            }
        }
    }

    async fn give(&mut self, slot: u32) -> Result<(), Error> {
        let Some(view) = &self.view else { return Ok(()) };
        let Some(held) = self.held.get(&slot) else { return Ok(()) };
        held.progress.end(Ended::Lost);
        let given = takeover::give(&self.store, &self.keys, &held.ownership, view).await;
        self.lose(slot, Ended::Lost);
        if let Some(seen) = self.view.as_mut().and_then(|it| it.slots.get_mut(slot as usize))
            && let Ok(Some(revision)) = given
        {
            (seen.node, seen.revision) = (None, revision);
        }
        self.sightings.hint.notify_one();
        given.map(|_| ())
    }

    fn end(mut self, error: &Error) {
        for slot in self.held.keys().copied().collect::<Vec<u32>>() {
            self.lose(slot, Ended::Node(error.clone()));
        }
        let _ = self.events.send(Event::Ended(error.clone()));
    }
}

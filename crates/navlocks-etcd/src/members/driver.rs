//! The task that takes and gives slots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use super::hearing::Hearing;
use super::inspection::ClusterView;
use super::renewal;
use super::sighting::Sightings;
use crate::clock::Clock;
use crate::error::Error;
use crate::keys::agreement;
use crate::keys::batch::Ownership;
use crate::keys::key::Keys;
use crate::keys::store::Store;
use crate::slots::belief::Belief;
use crate::slots::ended::Ended;
use crate::slots::plan::{self, Former, Step};
use crate::slots::slot::{OwnedSlot, Progress};
use crate::slots::takeover::{self, Me};
use crate::view::View;
use navlocks_server::cluster::{Epoch, Inherited};

/// An event in the life of this node.
#[derive(Debug)]
pub enum Event {
    /// The node owns a slot from now on, and its grace begins.
    Gained(OwnedSlot, Inherited),
    /// The node does not own a slot any more.
    Lost(u32, Ended),
    /// Another node should have the slot: stop serving it, then give it by
    /// [`Member::give`](crate::Member::give).
    Give {
        /// The slot.
        slot: u32,
        /// The address of the node that will take it.
        to: String,
    },
    /// Slots have other owners than before.
    Moved,
    /// The node is no part of the cluster any more and has to join again.
    Ended(Error),
}

/// A command of the service.
pub(crate) enum Command {
    Give(u32, oneshot::Sender<Result<(), Error>>),
    Raise(Epoch, oneshot::Sender<Result<(), Error>>),
    Leave(oneshot::Sender<Result<(), Error>>),
}

pub(crate) struct Held {
    ownership: Ownership,
    progress: Arc<Progress>,
}

/// Takes and gives slots as the views demand.
pub(crate) struct Driver {
    pub(crate) store: Arc<Store>,
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hearing: Arc<Hearing>,
    pub(crate) me: Me,
    pub(crate) belief: Arc<Belief>,
    pub(crate) sightings: Arc<Sightings>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) shown: watch::Sender<Arc<ClusterView>>,
    pub(crate) held: BTreeMap<u32, Held>,
    pub(crate) giving: BTreeSet<u32>,
    pub(crate) view: Option<View>,
}

impl Driver {
    pub(crate) async fn run(
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
                    if self.held.values().any(|held| held.progress.saw_restore()) {
                        return self.end(&Error::Restored);
                    }
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
        let now = self.hearing.now();
        let since =
            view.nodes.values().map(|node| node.since).chain(view.missing.values().copied());
        let left = since.map(|since| since.plus(view.node_lease()).since(now));
        left.filter(|left| !left.is_zero()).min().unwrap_or_else(|| view.node_lease())
    }

    /// Finds slots that were lost.
    fn see(&mut self, view: View) {
        let is_mine = |slot: u32, held: &Held| {
            let seen = view.slots.get(slot as usize);
            // A view may be older than the take-over. A writer that has ended writes no more.
            seen.is_some_and(|seen| seen.revision <= held.ownership.revision)
                && !held.progress.has_ended()
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
        self.shown.send_replace(Arc::new(ClusterView::new(&view, self.hearing.now())));
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
        let now = self.hearing.now();
        let steps = plan::steps(&view, self.me.incarnation, &held, &self.giving, now);
        let mut takes: Vec<(Former, Vec<u32>)> = Vec::new();
        for step in steps {
            match step {
                Step::Take { slot, former } => {
                    match takes.iter_mut().find(|(it, _)| *it == former) {
                        Some((_, slots)) => slots.push(slot),
                        None => takes.push((former, vec![slot])),
                    }
                }
                Step::Give { slot, to } => {
                    self.giving.insert(slot);
                    let to = view.nodes.get(&to).map(|node| node.address.clone());
                    let _ = self.events.send(Event::Give { slot, to: to.unwrap_or_default() });
                }
            }
        }
        for (mut former, slots) in takes {
            for slots in slots.chunks(takeover::SLOTS_MAX) {
                if !self.take(&view, slots, former).await {
                    break;
                }
                former = former.recorded();
            }
        }
        for (node, revision) in plan::abandoned(&view, self.me.incarnation, now) {
            let key = self.keys.node(node);
            let unchanged = Compare::mod_revision(&*key, CompareOp::Equal, revision);
            let delete = TxnOp::delete(key, None);
            let transaction = Txn::new().when([unchanged]).and_then([delete]);
            if self.store.transact(transaction).await.is_ok_and(|answer| answer.succeeded())
                && let Some(view) = &mut self.view
            {
                view.nodes.remove(&node);
            }
        }
        let (forgotten, undrained) = (plan::forgotten(&view), plan::undrained(&view));
        let ended = forgotten.iter().map(|node| self.keys.ended_node(*node));
        let drains = undrained.iter().map(|node| self.keys.drain(*node));
        for key in ended.chain(drains) {
            let transaction = Txn::new().and_then([TxnOp::delete(key, None)]);
            if self.store.transact(transaction).await.is_err() {
                return;
            }
        }
        if let Some(view) = &mut self.view {
            view.ended.retain(|node| !forgotten.contains(node));
            view.drains.retain(|node| !undrained.contains(node));
        }
    }

    /// Takes slots in one transaction. Returns false if that failed.
    async fn take(&mut self, view: &View, slots: &[u32], former: Former) -> bool {
        let (store, keys) = (&self.store, &self.keys);
        let taken = takeover::take(store, keys, self.me, view, slots, former).await;
        let taken = match taken {
            Ok(Some(taken)) => taken,
            // Something has changed, or the outcome is unknown: the next reading tells.
            Ok(None) => {
                self.sightings.hint.notify_one();
                return false;
            }
            Err(error) => {
                tracing::warn!(?slots, %error, "the slots are not taken");
                self.sightings.hint.notify_one();
                return false;
            }
        };
        for (ownership, inherited) in taken {
            let slot = ownership.slot;
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
        true
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
                let raised = agreement::raise_floor(&self.store, &self.keys, seen).await;
                if let (Ok(floor), Some(view)) = (&raised, &mut self.view) {
                    view.cluster.epoch_floor = *floor;
                    let is_low = |held: &Held| held.ownership.epoch <= seen;
                    let low = self.held.iter().filter(|(_, held)| is_low(held));
                    for slot in low.map(|(slot, _)| *slot).collect::<Vec<u32>>() {
                        self.lose(slot, Ended::Lost);
                    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, TlsFiles};
    use crate::clock::BootClock;
    use crate::keys::record::{ClusterRecord, Incarnation, VERSION};
    use crate::view::SeenSlot;

    const REVISION: i64 = 7;

    /// A driver that owns two slots, its events, and a view that agrees with it.
    fn owner() -> (Driver, mpsc::UnboundedReceiver<Event>, View) {
        let (clock, lease) = (Arc::new(BootClock), Duration::from_secs(5));
        let address = Address::parse("etcd://127.0.0.1:1").unwrap();
        let ownership = |slot| Ownership {
            slot,
            revision: REVISION,
            epoch: Epoch(1),
            restored: 0,
            name: "owner".to_owned(),
        };
        let held = |slot| Held { ownership: ownership(slot), progress: Arc::default() };
        let incarnation = Incarnation::numbered(1);
        let (events, receiver) = mpsc::unbounded_channel();
        let driver = Driver {
            store: Arc::new(Store::new(&address, &TlsFiles::default(), lease).unwrap()),
            keys: Keys::new("/navlocks/"),
            clock: clock.clone(),
            hearing: Arc::new(Hearing::new(clock, lease)),
            me: Me { incarnation, created: 1 },
            belief: Arc::new(Belief::new(lease)),
            sightings: Arc::default(),
            events,
            shown: watch::channel(Arc::default()).0,
            held: (0..2).map(|slot| (slot, held(slot))).collect(),
            giving: BTreeSet::new(),
            view: None,
        };
        let cluster = ClusterRecord {
            secret: String::new(),
            version: VERSION,
            slots: 2,
            node_lease_ms: 5_000,
            etcd: String::new(),
            restored: 0,
            epoch_floor: 0,
        };
        let slot = SeenSlot { node: Some(incarnation), revision: REVISION, epoch_floor: 0 };
        let view = View {
            cluster,
            nodes: BTreeMap::new(),
            ended: BTreeSet::new(),
            drains: BTreeSet::new(),
            slots: vec![slot; 2],
            missing: BTreeMap::new(),
        };
        (driver, receiver, view)
    }

    #[test]
    fn slot_whose_writer_has_ended_is_lost_with_the_next_view() {
        let (mut driver, mut events, view) = owner();
        driver.see(view.clone());
        assert!(events.try_recv().is_err() && driver.held.len() == 2);
        driver.held[&1].progress.end(Ended::Node(Error::Ended));
        driver.see(view);
        assert!(matches!(events.try_recv(), Ok(Event::Lost(1, _))));
        assert!(events.try_recv().is_err() && driver.held.keys().eq(&[0]));
    }
}

//! A slot that this node owns, and the task that writes its changes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use etcd_client::{KeyValue, TxnOpResponse, TxnResponse};

use super::belief::Belief;
use crate::clock::{Clock, Moment};
use crate::keys::batch::{self, Batch, Ownership};
use crate::keys::key::Keys;
use navlocks_server::cluster::{Change, ChangeNumber, Epoch, Registry};

use super::ended::Ended;
use crate::error::Error;
use crate::keys::store::Store;

/// Changes that are made batches at a time.
const CHANGES_AT_A_TIME: usize = 1_000;
/// Between two attempts to write a batch.
const PAUSE: Duration = Duration::from_millis(50);

/// The registry of a slot in etcd, for its owner.
#[derive(Debug)]
pub struct OwnedSlot {
    slot: u32,
    epoch: Epoch,
    belief: Arc<Belief>,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
    changes: mpsc::UnboundedSender<(ChangeNumber, Change)>,
    last: Cell<ChangeNumber>,
}

/// How far the changes of a slot are written.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    confirmed: AtomicU64,
    ended: OnceLock<Ended>,
    news: Arc<Notify>,
}

impl Progress {
    pub(crate) fn end(&self, cause: Ended) {
        // The first cause counts.
        let _ = self.ended.set(cause);
        self.news.notify_waiters();
        self.news.notify_one();
    }

    /// Whether the owner must not serve any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Whether it ended because etcd has lost writes.
    pub(crate) fn saw_restore(&self) -> bool {
        self.ended.get() == Some(&Ended::Node(Error::Restored))
    }

    fn confirm(&self, number: ChangeNumber) {
        self.confirmed.store(number.0, Ordering::Release);
        self.news.notify_waiters();
        self.news.notify_one();
    }
}

impl OwnedSlot {
    /// Begins to write for an owner.
    pub(crate) fn start(
        store: Arc<Store>,
        keys: Keys,
        owner: Ownership,
        (belief, clock): (Arc<Belief>, Arc<dyn Clock>),
    ) -> (Self, Arc<Progress>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        let (slot, epoch) = (owner.slot, owner.epoch);
        let writer = Writer { store, keys, owner, progress: progress.clone(), written: 0 };
        tokio::spawn(writer.run(receiver));
        let last = Cell::default();
        (Self { slot, epoch, belief, clock, progress: progress.clone(), changes, last }, progress)
    }

    /// The number of the slot.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Until when the owner may send grants, welcomes and pongs.
    pub fn may_serve_until(&self) -> Moment {
        if self.ended().is_some() { Moment::MIN } else { self.belief.until() }
    }

    /// Why this owner must not serve any more, if so.
    pub fn ended(&self) -> Option<Ended> {
        self.progress.ended.get().cloned()
    }

    /// Waits until a change is confirmed or the ownership ends, unless that happened since the last
    /// call.
    async fn news(&self) {
        self.progress.news.notified().await;
    }

    /// Waits until all changes so far are confirmed.
    ///
    /// # Errors
    /// The cause, if the ownership ends before.
    pub async fn flushed(&self) -> Result<(), Ended> {
        while !self.is_flushed() {
            if let Some(cause) = self.ended() {
                return Err(cause);
            }
            self.news().await;
        }
        Ok(())
    }
}

impl Registry for OwnedSlot {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn slot(&self) -> u32 {
        self.slot
    }

    fn may_send(&self) -> bool {
        !self.progress.has_ended() && self.clock.now() < self.belief.until()
    }

    fn write(&self, change: Change) -> ChangeNumber {
        let number = ChangeNumber(self.last.get().0 + 1);
        self.last.set(number);
        // A writer that has ended has said why in `ended`.
        let _ = self.changes.send((number, change));
        number
    }

    fn confirmed(&self) -> ChangeNumber {
        ChangeNumber(self.progress.confirmed.load(Ordering::Acquire))
    }

    fn is_flushed(&self) -> bool {
        self.confirmed() >= self.last.get()
    }

    fn is_over(&self) -> bool {
        self.progress.has_ended()
    }

    fn news(&self) -> Arc<Notify> {
        self.progress.news.clone()
    }
}

struct Writer {
    store: Arc<Store>,
    keys: Keys,
    owner: Ownership,
    progress: Arc<Progress>,
    /// Batches so far.
    written: u64,
}

impl Writer {
    /// Writes what has come since the last batch was answered, until the owner is dropped.
    async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<(ChangeNumber, Change)>) {
        let mut changes = Vec::new();
        while receiver.recv_many(&mut changes, CHANGES_AT_A_TIME).await > 0 {
            let written = match batch::batches(&self.keys, &self.owner, &changes) {
                Ok(batches) => self.write_all(batches).await,
                Err(error) => Err(Ended::Node(error)),
            };
            if let Err(cause) = written {
                self.progress.end(cause);
                return;
            }
            changes.clear();
        }
    }

    async fn write_all(&mut self, batches: Vec<Batch>) -> Result<(), Ended> {
        for batch in batches {
            self.written += 1;
            self.write(&batch).await?;
            self.progress.confirm(batch.upto);
        }
        Ok(())
    }

    /// Writes a batch once, however often it is sent: its number is compared.
    async fn write(&self, batch: &Batch) -> Result<(), Ended> {
        loop {
            if let Some(cause) = self.progress.ended.get() {
                return Err(cause.clone());
            }
            let transaction = batch.transaction(&self.keys, &self.owner, self.written);
            match self.store.transact(transaction).await {
                Ok(answer) if answer.succeeded() => return Ok(()),
                Ok(answer) => return self.judge(&answer),
                Err(error) if error.is_final() => return Err(Ended::Node(error)),
                Err(error) => {
                    tracing::warn!(slot = self.owner.slot, %error, "a batch is not confirmed yet");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Tells why a batch was refused: an earlier attempt, whose answer was lost, was applied; or
    /// another node owns the slot; or etcd has lost batches of this owner.
    fn judge(&self, answer: &TxnResponse) -> Result<(), Ended> {
        let answers = answer.op_responses();
        let [TxnOpResponse::Get(slot), TxnOpResponse::Get(batch)] = &answers[..] else {
            return Err(Ended::Lost);
        };
        let is_own = |pair: &KeyValue| pair.mod_revision() == self.owner.revision;
        if !slot.kvs().first().is_some_and(is_own) {
            return Err(Ended::Lost);
        }
        let text = self.owner.batch_text(self.written);
        match batch.kvs().first().is_some_and(|pair| pair.value() == text.as_bytes()) {
            true => Ok(()),
            false => Err(Ended::Node(Error::Restored)),
        }
    }
}

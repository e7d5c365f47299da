//! Transactions made of locks, as the explainer sketches them: one lock over all stores of a
//! transaction, requested when it is created and held until it is complete.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use navlocks::{Lock, Locks, LossCause, Mode, RequestError, Scope};

use crate::task::Task;

/// Stores by name, and in each the values by key.
type Stores = BTreeMap<&'static str, BTreeMap<&'static str, i64>>;

/// A small database whose transactions are locks.
#[derive(Clone)]
pub(crate) struct Database {
    name: &'static str,
    committed: Arc<Mutex<Stores>>,
}

/// The access of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

/// Why a transaction did not commit. Nothing of it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// Its lock was never granted.
    Request(RequestError),
    /// Its lock was lost before it was complete.
    Loss(LossCause),
    /// It wrote to a store, and may only read.
    ReadOnly,
    /// It used a store that is not in its scope.
    OutOfScope,
}

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(error) => error.fmt(f),
            Self::Loss(loss) => loss.fmt(f),
            Self::ReadOnly => f.write_str("the transaction may only read"),
            Self::OutOfScope => f.write_str("the store is not in the transaction's scope"),
        }
    }
}

impl Error for Aborted {}

type Operation = Box<dyn FnOnce(&mut View) -> Result<(), Aborted> + Send>;
type Condition = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A transaction: operations that run, in order, once the lock is granted.
pub(crate) struct Transaction {
    committed: Arc<Mutex<Stores>>,
    scope: Vec<&'static str>,
    access: Access,
    /// The place in the queue, taken when the transaction was created.
    place: Task<'static, Result<Lock, RequestError>>,
    operations: Vec<Operation>,
    conditions: Vec<Condition>,
}

/// The stores as an operation of the transaction sees them.
pub(crate) struct View {
    stores: Stores,
    access: Access,
}

impl Database {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, committed: Arc::default() }
    }

    /// Makes a transaction over some stores, which is queued from now on.
    pub(crate) fn transaction<const COUNT: usize>(
        &self,
        locks: &Locks,
        tag: &'static str,
        stores: [&'static str; COUNT],
        access: Access,
    ) -> Transaction {
        let scope = Scope::from(stores.map(|store| format!("{}/{store}", self.name)));
        // Reading is shared and writing exclusive; the explainer has it reversed.
        let mode = match access {
            Access::ReadOnly => Mode::Shared,
            Access::ReadWrite => Mode::Exclusive,
        };
        Transaction {
            committed: self.committed.clone(),
            scope: stores.into(),
            access,
            place: Task::start(locks.request(scope).mode(mode).tag(tag)),
            operations: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// Returns the committed value of a key.
    pub(crate) fn committed(&self, store: &str, key: &str) -> Option<i64> {
        self.committed.lock().unwrap().get(store)?.get(key).copied()
    }
}

impl Transaction {
    /// Appends an operation. It need not wait for the lock; the transaction does.
    pub(crate) fn then(
        &mut self,
        operation: impl FnOnce(&mut View) -> Result<(), Aborted> + Send + 'static,
    ) {
        self.operations.push(Box::new(operation));
    }

    /// Keeps the transaction active until another future has ended.
    pub(crate) fn wait_until(&mut self, condition: impl Future<Output = ()> + Send + 'static) {
        self.conditions.push(Box::pin(condition));
    }

    /// Runs the operations when the lock is granted, commits when nothing keeps the transaction
    /// active, and then releases the lock. Dropping the future or the transaction aborts it.
    pub(crate) async fn complete(self) -> Result<(), Aborted> {
        let Self { committed, scope, access, place, operations, conditions } = self;
        let lock = place.finish().await.map_err(Aborted::Request)?;
        let stores = {
            let all = committed.lock().unwrap();
            scope
                .iter()
                .map(|&store| (store, all.get(store).cloned().unwrap_or_default()))
                .collect()
        };
        let mut view = View { stores, access };
        for operation in operations {
            operation(&mut view)?;
        }
        for condition in conditions {
            condition.await;
        }
        if let Some(loss) = lock.loss() {
            return Err(Aborted::Loss(loss));
        }
        committed.lock().unwrap().extend(view.stores);
        lock.release().map_err(Aborted::Loss)
    }
}

impl View {
    pub(crate) fn get(&self, store: &str, key: &str) -> Result<Option<i64>, Aborted> {
        let store = self.stores.get(store).ok_or(Aborted::OutOfScope)?;
        Ok(store.get(key).copied())
    }

    pub(crate) fn put(
        &mut self,
        store: &str,
        key: &'static str,
        value: i64,
    ) -> Result<(), Aborted> {
        if self.access == Access::ReadOnly {
            return Err(Aborted::ReadOnly);
        }
        let store = self.stores.get_mut(store).ok_or(Aborted::OutOfScope)?;
        store.insert(key, value);
        Ok(())
    }
}

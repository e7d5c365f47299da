//! The hosts by their handles, and the errors of calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use navlocks_core::kit::{Group, HostError, Limits, Member};
use navlocks_core::{DeadlockPolicy, HashKey};
use navlocks_threads::{Mail, Post, SharedHost, Wake};

use crate::types::navlocks_status;

/// Callers poll, so nothing is woken.
pub(crate) struct Polled;

impl Wake for Polled {
    fn wake(&self) {}
}

/// Mail stays in its box until navlocks_poll_event takes it.
pub(crate) struct Keep;

impl Post for Keep {
    fn put(&mut self, _: &Mail) -> bool {
        false
    }
}

pub(crate) type Host = SharedHost<Polled>;

/// Values of a kind by their handles, which never repeat.
pub(crate) struct Handles<T>(RwLock<HashMap<u64, Arc<T>>>);

static HOSTS: LazyLock<Handles<Host>> = LazyLock::new(Handles::new);

impl<T> Handles<T> {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(HashMap::new()))
    }

    pub(crate) fn insert(&self, value: T) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        values.insert(handle, Arc::new(value));
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>, navlocks_status> {
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        values.get(&handle).cloned().ok_or(navlocks_status::Unknown)
    }

    pub(crate) fn remove(&self, handle: u64) -> Result<(), navlocks_status> {
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        values.remove(&handle).map(drop).ok_or(navlocks_status::Unknown)
    }
}

pub(crate) fn new_host(key: [u8; 16]) -> u64 {
    let key = HashKey::from_bytes(key);
    HOSTS.insert(SharedHost::new(key, Limits::default(), DeadlockPolicy::Ignore))
}

pub(crate) fn host(handle: u64) -> Result<Arc<Host>, navlocks_status> {
    HOSTS.get(handle)
}

pub(crate) fn end_host(handle: u64) -> Result<(), navlocks_status> {
    HOSTS.remove(handle)
}

pub(crate) fn group(handle: u64) -> Result<Group, navlocks_status> {
    Group::from_bits(handle).ok_or(navlocks_status::Unknown)
}

pub(crate) fn client(handle: u64) -> Result<Member, navlocks_status> {
    Member::from_bits(handle).ok_or(navlocks_status::Unknown)
}

impl From<HostError> for navlocks_status {
    fn from(error: HostError) -> Self {
        match error {
            HostError::UnknownGroup | HostError::UnknownMember => Self::Unknown,
            HostError::NumberInUse(_) => Self::NumberInUse,
            HostError::Limit(_) => Self::Limit,
            _ => Self::Refused,
        }
    }
}

/// Returns the status of a call that may fail.
pub(crate) fn status(
    call: impl FnOnce() -> Result<navlocks_status, navlocks_status>,
) -> navlocks_status {
    call().unwrap_or_else(|status| status)
}

/// Returns `Ok` for an effect, `Nothing` for none.
pub(crate) fn effect(done: bool) -> navlocks_status {
    if done { navlocks_status::Ok } else { navlocks_status::Nothing }
}

//! Shares: what each tenant uses of the service. A tenant that exhausts its share takes nothing
//! from another one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Peer;
use super::turns::Turns;

/// The resources that one tenant uses now. The user of the Unix socket has a share apart from all
/// clients over TCP.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub(crate) connections: Counted,
    pub(crate) sessions: Counted,
    pub(crate) partitions: Counted,
    pub(crate) requests: Counted,
    /// Bytes of memory that its sessions, clients and requests take.
    pub(crate) bytes: Counted,
    /// Bytes of memory that claims of its sessions take until they are judged.
    pub(crate) claimed: Counted,
    /// Bytes that its connections have not read.
    pub(crate) unread: Counted,
    /// Its turns on the thread.
    pub(crate) turns: Turns,
    /// Its partitions with effects that are not sent yet.
    behind: Counted,
    /// Its tasks that wait until all is sent.
    waiting: RefCell<Vec<Waker>>,
}

impl Share {
    /// Returns true while effects of an input wait to be sent. No other input of the tenant comes
    /// meanwhile.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.get() > 0
    }

    /// Counts a partition with effects that are not sent yet.
    pub(crate) fn fall_behind(&self) {
        self.behind.add(1);
    }

    /// Counts a partition whose effects are all sent.
    pub(crate) fn catch_up(&self) {
        self.behind.sub(1);
        if !self.is_behind() {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until all effects are sent.
    #[inline]
    pub(crate) fn poll_caught_up(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_behind() {
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Counted(Cell<usize>);

impl Counted {
    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.get()
    }

    #[inline]
    pub(crate) fn add(&self, count: usize) {
        self.0.set(self.0.get() + count);
    }

    #[inline]
    pub(crate) fn sub(&self, count: usize) {
        debug_assert!(self.0.get() >= count, "more is given back than was taken");
        self.0.set(self.0.get().saturating_sub(count));
    }
}

/// The start of the name of a tenant that is a user of the machine. No token has such a tenant.
pub(crate) const USER: &str = "uid:";

/// The shares of all tenants that were ever seen: as many as the tokens name, and the Unix
/// socket's.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    local: Rc<Share>,
    tenants: HashMap<Rc<str>, Rc<Share>>,
}

impl Shares {
    /// Returns the share of a peer's tenant.
    pub(crate) fn of(&mut self, peer: &Peer) -> Rc<Share> {
        if peer.local && peer.tenant.is_empty() {
            return self.local.clone();
        }
        self.tenants.entry(peer.tenant.clone()).or_default().clone()
    }

    /// Returns the shares of all tenants with their transports and names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str, &Share)> {
        let transport = |name: &str| if name.starts_with(USER) { "unix" } else { "tcp" };
        let tenants = self.tenants.iter();
        let tenants = tenants.map(move |(name, share)| (transport(name), &**name, &**share));
        std::iter::once(("unix", "", &*self.local)).chain(tenants)
    }

    /// Returns what all tenants use together. The Unix socket's user is apart, so that others
    /// cannot lock it out.
    pub(crate) fn together(&self, peer: &Peer, number: impl Fn(&Share) -> usize) -> usize {
        if peer.local && peer.tenant.is_empty() {
            return number(&self.local);
        }
        self.tenants.values().map(|share| number(share)).sum()
    }
}

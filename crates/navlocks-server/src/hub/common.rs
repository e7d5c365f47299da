//! The state that all hubs of a service share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::Notify;

use super::metrics::Metrics;
use super::recorder::Recording;
use super::shares::Shares;
use crate::audit::Audit;

/// The state that all hubs of a service share: one hub, or one for each slot that a node owns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    pub(crate) shares: Rc<RefCell<Shares>>,
    pub(crate) metrics: Rc<Metrics>,
    pub(crate) audit: Rc<Audit>,
    /// Notified when effects of a large input are left.
    pub(crate) left_over: Rc<Notify>,
    /// Notified when a lock begins to be held whose time is over before that of all others.
    pub(crate) hold_begins: Rc<Notify>,
    /// Notified when the service must end because no more tokens can be reserved.
    pub(crate) exhausted: Rc<Notify>,
    pub(crate) epochs: Rc<Epochs>,
    pub(crate) recording: Recording,
    pub(crate) across: Rc<Across>,
}

/// In a cluster: the questions about all slots of the node, which no hub alone can answer.
#[derive(Debug, Default)]
pub(crate) struct Across {
    asked: RefCell<VecDeque<AskedAcross>>,
    news: Notify,
}

/// A question about all slots: who asked it, and its number there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedAcross {
    pub(crate) slot: u32,
    pub(crate) session: u32,
    pub(crate) id: u64,
}

impl Across {
    pub(crate) fn ask(&self, asked: AskedAcross) {
        self.asked.borrow_mut().push_back(asked);
        self.news.notify_one();
    }

    /// Waits for a question.
    pub(crate) async fn next(&self) -> AskedAcross {
        loop {
            let next = self.asked.borrow_mut().pop_front();
            match next {
                Some(asked) => return asked,
                None => self.news.notified().await,
            }
        }
    }
}

/// The largest epoch that a client has seen and that no owner here had: the registry of the cluster
/// has lost writes.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    seen: Cell<u64>,
    news: Notify,
}

impl Epochs {
    pub(crate) fn raise(&self, seen: u64) {
        tracing::error!(epoch = seen, "a client knows a later owner: was etcd restored?");
        self.seen.set(self.seen.get().max(seen));
        self.news.notify_one();
    }

    /// Waits until epochs have to be raised. Returns how far.
    pub(crate) async fn raised(&self) -> u64 {
        self.news.notified().await;
        self.seen.get()
    }
}

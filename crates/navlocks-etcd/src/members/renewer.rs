//! The task that keeps a node's place in its cluster.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::hearing::Hearing;
use super::renewal;
use super::sighting::Sightings;
use crate::clock::Clock;
use crate::error::Error;
use crate::keys::compaction::{self, Compaction};
use crate::keys::key::Keys;
use crate::keys::record::NodeRecord;
use crate::keys::store::Store;
use crate::slots::belief::Belief;
use crate::slots::takeover::Me;
use crate::view::{SeenNode, View};

/// Many changes at once are one reading.
const HINT_PAUSE: Duration = Duration::from_millis(20);

/// Renews the node's key every third of the node lease, or earlier after a hint.
pub(crate) struct Renewer {
    pub(crate) store: Arc<Store>,
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hearing: Arc<Hearing>,
    pub(crate) me: Me,
    pub(crate) record: NodeRecord,
    pub(crate) belief: Arc<Belief>,
    pub(crate) sightings: Arc<Sightings>,
    pub(crate) node_lease: Duration,
    /// The revision of the last renewal that etcd has confirmed.
    pub(crate) confirmed: i64,
    /// As in the cluster's record when the node joined.
    pub(crate) restored: u64,
    pub(crate) compaction: Compaction,
}

impl Renewer {
    pub(crate) async fn run(
        mut self,
        views: watch::Sender<Option<Arc<View>>>,
        failed: oneshot::Sender<Error>,
    ) {
        let error = loop {
            let last = views.borrow().clone();
            let pause = match self.renew(last.as_deref()).await {
                Ok(view) => {
                    views.send_replace(Some(Arc::new(view)));
                    self.node_lease / 3
                }
                Err(error) if error.is_final() => break error,
                Err(error) => {
                    tracing::warn!(%error, "the node's place in the cluster is not renewed");
                    // The attempt itself took time; the next goes to another member.
                    self.node_lease / 48
                }
            };
            if timeout(pause, self.sightings.hint.notified()).await.is_ok() {
                sleep(HINT_PAUSE).await;
            }
        };
        self.belief.end();
        let _ = failed.send(error);
    }

    async fn renew(&mut self, last: Option<&View>) -> Result<View, Error> {
        self.record.renewal += 1;
        let sent = self.clock.now();
        let hearing = self.hearing.clone();
        let now = move || {
            hearing.hear();
            hearing.now()
        };
        let renewed = renewal::renew(&self.store, &self.keys, self.me, &self.record, last, now);
        let (mut view, revision) = renewed.await?;
        // Other nodes may have written so much since a restore that the revision is large again.
        // The view has the key before this renewal, which attempts without an answer may have
        // changed.
        let has_lost = |node: &SeenNode| node.revision < self.confirmed;
        if view.cluster.restored != self.restored
            || view.nodes.get(&self.me.incarnation).is_some_and(has_lost)
        {
            return Err(Error::Restored);
        }
        self.confirmed = revision;
        // One node is enough.
        if let Some(old) = self.compaction.read(sent, revision)
            && view.nodes.keys().min() == Some(&self.me.incarnation)
        {
            tokio::spawn(compaction::compact(self.store.clone(), old));
        }
        self.belief.renewed(sent);
        self.sightings.refresh(&mut view);
        Ok(view)
    }
}

//! The watch: it tells early what the next reading would tell anyway.
//!
//! A watch may lose events, so no decision rests on one. It only lets a node read again at once,
//! and count the silence of another node from when its renewal was seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::clock::{Clock, Moment};
use crate::error::Error;
use crate::keys::key::Keys;
use crate::keys::record::Incarnation;
use crate::keys::store::Store;
use crate::view::View;

/// Renewals of other nodes, with the moments at which they were seen.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    nodes: Mutex<BTreeMap<Incarnation, (i64, Moment)>>,
    /// Something has changed that is worth a reading.
    pub(crate) hint: Notify,
    /// A renewal was seen.
    pub(crate) renewal: Notify,
}

impl Sightings {
    fn note(&self, node: Incarnation, revision: i64, now: Moment) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = nodes.entry(node).or_insert((revision, now));
        if seen.0 < revision {
            *seen = (revision, now);
        }
    }

    /// Brings the nodes of a view up to date, and forgets those that are gone.
    pub(crate) fn refresh(&self, view: &mut View) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|number, _| view.nodes.contains_key(number));
        for (number, node) in &mut view.nodes {
            let Some((revision, since)) = nodes.get(number).copied() else { continue };
            if revision > node.revision || (revision == node.revision && since < node.since) {
                (node.revision, node.since) = (revision, since);
            }
        }
    }

    /// Watches for ever, and begins again after errors and compactions.
    pub(crate) async fn watch(
        self: Arc<Self>,
        store: Arc<Store>,
        keys: Keys,
        clock: Arc<dyn Clock>,
        pause: Duration,
    ) {
        loop {
            if let Err(error) = self.watch_once(&store, &keys, &*clock).await {
                tracing::debug!(%error, "the watch begins again");
            }
            self.hint.notify_one();
            sleep(pause).await;
        }
    }

    async fn watch_once(&self, store: &Store, keys: &Keys, clock: &dyn Clock) -> Result<(), Error> {
        let failed = |error: etcd_client::Error| Error::of(&error, "a watch");
        let mut stream: WatchStream = store.watch(&keys.nodes(), None).await?;
        for prefix in [keys.slots(), keys.drains()] {
            let options = WatchOptions::new().with_prefix();
            stream.watch(prefix, Some(options)).await.map_err(failed)?;
        }
        // Whatever changed before the watch began is in the next reading.
        self.hint.notify_one();
        while let Some(message) = stream.message().await.map_err(failed)? {
            if message.canceled() {
                return Err(Error::Unknown(message.cancel_reason().to_owned()));
            }
            self.receive(&message, keys, clock.now());
        }
        Ok(())
    }

    fn receive(&self, message: &WatchResponse, keys: &Keys, now: Moment) {
        for event in message.events() {
            let Some(pair) = event.kv() else { continue };
            let key = pair.key_str().unwrap_or_default();
            let node = key.strip_prefix(&keys.nodes()).and_then(Incarnation::of_key);
            match node {
                Some(node) if event.event_type() == EventType::Put => {
                    let is_new = pair.create_revision() == pair.mod_revision();
                    self.note(node, pair.mod_revision(), now);
                    if is_new { self.hint.notify_one() } else { self.renewal.notify_one() }
                }
                _ => self.hint.notify_one(),
            }
        }
    }
}

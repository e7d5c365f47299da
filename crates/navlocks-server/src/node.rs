//! A node of a cluster: it serves the slots that it owns, and stops to serve those that it loses.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::Fault;
use tokio::task::{spawn_local, yield_now};

use crate::cluster::{Event, Gate, Inherited, Registry};
use crate::connection::{Shared, attend_found, websocket_config};
use crate::dialing::{PARTY, SECRET};
use crate::hub::{AskedAcross, Hub, Peer, SharedHub, Slots, query_all};

/// How often frames that wait look whether the node may send again.
const LOOK: Duration = Duration::from_millis(20);

/// The longest wait for the last changes of a slot that is given away.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Serves slots as they come and go.
pub(crate) async fn run(shared: Rc<Shared>) {
    let Some(slots) = shared.hubs.slots() else { return };
    let raising = shared.clone();
    spawn_local(async move { raise_epochs(&raising).await });
    let across = shared.clone();
    spawn_local(async move { answer_across(&across).await });
    let led = shared.clone();
    spawn_local(async move {
        if let Err(error) = leads_back(&led).await {
            led.fail(error);
        }
    });
    loop {
        let event = poll_fn(|cx| slots.membership.borrow_mut().poll_event(cx)).await;
        match event {
            Some(Event::Gained(registry, inherited)) => gain(&shared, slots, registry, inherited),
            Some(Event::Lost(slot)) => {
                let hub = slots.remove(slot, slots.owner_elsewhere(slot), Instant::now());
                hub.map(|hub| spawn_local(dissolve(hub)));
            }
            Some(Event::Give { slot, to }) => {
                spawn_local(give(shared.clone(), slot, to));
            }
            Some(Event::Moved) => slots.news.notify_waiters(),
            None => return,
        }
    }
}

/// Checks that the address which this node advertises leads to this node.
async fn leads_back(shared: &Shared) -> io::Result<()> {
    let Some(slots) = shared.hubs.slots() else { return Ok(()) };
    let (address, secret) = {
        let membership = slots.membership.borrow();
        (membership.address().to_owned(), membership.secret())
    };
    let headers = [(SECRET, secret), (PARTY, Peer::remote("", "").carried_text())];
    let config = websocket_config(&shared.config.limits);
    let why = match shared.dialer.open(&address, &headers, config).await {
        Ok((_, name)) if name == slots.name() => return Ok(()),
        Ok(_) => "another process answers there".to_owned(),
        Err(error) => error.to_string(),
    };
    let text = format!(
        "the address {address} does not lead back to this node: {why}; name one with --advertise that clients and nodes reach"
    );
    Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text))
}

fn gain(shared: &Rc<Shared>, slots: &Slots, registry: Box<dyn Registry>, inherited: Inherited) {
    let registry: Rc<dyn Registry> = Rc::from(registry);
    let (number, sessions) = (registry.slot(), inherited.sessions.len());
    let settings = (shared.config.limits.clone(), shared.config.deadlocks);
    let common = shared.hubs.common.clone();
    match Hub::of_slot(slots.count(), &registry, inherited, settings, common) {
        Ok(hub) => {
            tracing::info!(slot = number, epoch = registry.epoch().0, sessions, "serves the slot");
            let hub = slots.add(number, hub);
            attend_found(shared, &hub);
            if let Some(gate) = hub.borrow().gate() {
                spawn_local(watch(registry, gate, hub.clone()));
            }
        }
        Err(error) => {
            tracing::error!(slot = number, %error, "the slot cannot be served");
            shared.hubs.common.exhausted.notify_one();
        }
    }
}

/// Opens the gate of a slot whenever changes are confirmed, until its ownership ends. Sends the
/// connections away that wait while the node may not send.
async fn watch(registry: Rc<dyn Registry>, gate: Rc<Gate>, hub: SharedHub) {
    let news = registry.news();
    while !registry.is_over() {
        if gate.has_waiting() && !registry.may_send() {
            hub.borrow_mut().disconnect(&Fault::moved(None));
        }
        if gate.has_waiting() {
            // Nothing tells that the node may send again.
            let _looks = tokio::time::timeout(LOOK, news.notified()).await;
        } else {
            tokio::select! {
                () = news.notified() => {}
                () = gate.arrival() => continue,
            }
        }
        gate.open();
    }
    gate.open();
}

/// Stops to serve a slot, and gives it away when its changes are durable.
async fn give(shared: Rc<Shared>, slot: u32, to: String) {
    let Some(slots) = shared.hubs.slots() else { return };
    tracing::warn!(audit = "drain", slot, to, "gives the slot away");
    let Some(hub) = slots.remove(slot, Some(to), Instant::now()) else { return };
    hand_over(slots, slot, &hub).await;
    dissolve(hub).await;
}

async fn hand_over(slots: &Slots, slot: u32, hub: &SharedHub) {
    let registry = hub.borrow().registry.log().map(|log| log.slot_registry());
    if let Some(registry) = registry {
        let news = registry.news();
        let flushed = async {
            while !registry.is_over() && !registry.is_flushed() {
                let _looks = tokio::time::timeout(LOOK, news.notified()).await;
            }
        };
        let _flushed_or_not = tokio::time::timeout(FLUSH_MAX, flushed).await;
    }
    let given = slots.membership.borrow().give(slot);
    if let Err(error) = given.await {
        tracing::warn!(slot, %error, "the slot is not given away: others take it when this node is silent");
    }
}

/// Frees the memory of a hub that serves no more.
async fn dissolve(hub: SharedHub) {
    while hub.borrow_mut().dissolve(Instant::now()) {
        yield_now().await;
    }
}

/// Raises the epochs of the cluster above those that clients have seen.
async fn raise_epochs(shared: &Shared) {
    let Some(slots) = shared.hubs.slots() else { return };
    loop {
        let seen = shared.hubs.common.epochs.raised().await;
        slots.membership.borrow().raise_epochs(seen);
    }
}

/// Answers questions about all slots of this node.
async fn answer_across(shared: &Shared) {
    loop {
        let AskedAcross { slot, session, id } = shared.hubs.common.across.next().await;
        let hubs = shared.hubs.by_slot();
        let Some(asked) = hubs.get(&slot) else { continue };
        let peer = asked.borrow().sessions.get(session).map(|it| it.peer.clone());
        let Some(peer) = peer else { continue };
        let frame = {
            let hubs: Vec<_> = hubs.values().map(|hub| hub.borrow()).collect();
            query_all(hubs.iter().map(|hub| &**hub), &peer, id, Instant::now())
        };
        let mut asked = asked.borrow_mut();
        asked.send_answer(session, id, frame);
        asked.settle(Instant::now());
    }
}

/// Gives all slots away, if this is a node, and leaves the cluster.
pub(crate) async fn leave(shared: &Shared) -> io::Result<()> {
    let Some(slots) = shared.hubs.slots() else { return Ok(()) };
    for slot in slots.numbers() {
        if let Some(hub) = slots.remove(slot, None, Instant::now()) {
            hand_over(slots, slot, &hub).await;
        }
    }
    let left = slots.membership.borrow_mut().leave();
    left.await
}

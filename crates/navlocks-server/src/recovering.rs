//! Attends to the recovery of sessions: leases that pass, and processes that end.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use crate::connection::Shared;
use crate::hub::{Hub, SharedHub};
use crate::presence::is_present;

/// How often the processes of unclaimed sessions are looked at, at first and later.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// The most processes that are looked at before other tasks have their turns.
const LOOKS_PER_TURN: usize = 100;

/// Attends to the sessions of an earlier service, or of the earlier owner of a slot.
pub(crate) fn attend_all(shared: &Rc<Shared>, hub: &SharedHub) {
    let (earlier, why) = (hub.borrow().store.earlier(), hub.borrow().store.why_earlier());
    if !earlier.is_zero() {
        tracing::warn!("no lock is granted for {earlier:?}: {why}");
        spawn_local(let_go_after(earlier, hub.clone()));
    }
    if hub.borrow().recovery.has_sessions() {
        spawn_local(attend(shared.clone(), hub.clone()));
    }
}

/// Holds all grants back until clients of an earlier service know that theirs are over.
async fn let_go_after(earlier: Duration, hub: SharedHub) {
    sleep(earlier).await;
    if hub.borrow().is_retired() {
        return;
    }
    hub.borrow_mut().let_go(Instant::now());
    tracing::info!("locks are granted from now on");
}

/// Ends unclaimed sessions as their leases pass or their processes end, until there are none.
async fn attend(shared: Rc<Shared>, hub: SharedHub) {
    let mut pause = LOOK_MIN;
    loop {
        let local: Vec<u32> = hub.borrow().recovery.local().map(|it| it.number).collect();
        for some in local.chunks(LOOKS_PER_TURN) {
            if hub.borrow().is_retired() {
                return;
            }
            end_gone(&mut hub.borrow_mut(), some);
            yield_now().await;
        }
        let next = {
            let mut hub = hub.borrow_mut();
            if hub.is_retired() {
                return;
            }
            let lapse = hub.check_unclaimed(Instant::now());
            if !hub.recovery.has_sessions() {
                tracing::info!("all clients of the earlier service have come back or ended");
                break;
            }
            lapse.unwrap_or(LOOK_MAX)
        };
        if next.is_zero() {
            yield_now().await;
            continue;
        }
        sleep(next.min(pause)).await;
        pause = (pause * 2).min(LOOK_MAX);
    }
    shared.emptied.notify_waiters();
}

/// Ends those of these unclaimed sessions whose processes are gone.
fn end_gone(hub: &mut Hub, sessions: &[u32]) {
    for &number in sessions {
        let Some(record) = hub.recovery.get(number).map(|it| &it.record) else { continue };
        let presence = hub.registry.presence(number).filter(|_| record.present);
        let lives = match (presence, record.process) {
            (Some(path), _) => is_present(&path),
            (None, process) => process.is_some_and(|process| process.is_alive()),
        };
        if !lives {
            tracing::info!(session = number, "a client of the earlier service ended");
            hub.end_unclaimed(number, Instant::now());
        }
    }
}

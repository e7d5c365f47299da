//! Attends to the recovery of sessions: leases that pass, and processes that end.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::connection::Shared;
use crate::hub::SharedHub;
use crate::presence::is_present;
use crate::store::SessionRecord;

/// How often the processes of unclaimed sessions are looked at, at first and later.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// Attends to the sessions of an earlier service, or of the earlier owner of a slot.
pub(crate) fn attend_all(shared: &Rc<Shared>, hub: &SharedHub) {
    let earlier = hub.borrow().store.earlier();
    if !earlier.is_zero() {
        spawn_local(let_go_after(earlier, hub.clone()));
    }
    if hub.borrow().recovery.has_sessions() {
        spawn_local(attend(shared.clone(), hub.clone()));
    }
}

/// Holds all grants back until clients of an earlier service know that theirs are over.
async fn let_go_after(earlier: Duration, hub: SharedHub) {
    tracing::warn!(
        ?earlier,
        "the last service did not end in good order: nothing is granted for a while"
    );
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
        let next = {
            let mut hub = hub.borrow_mut();
            if hub.is_retired() {
                return;
            }
            let local: Vec<SessionRecord> = hub.recovery.local().cloned().collect();
            for record in local {
                let presence = hub.registry.presence(record.number).filter(|_| record.present);
                let lives = match (presence, record.process) {
                    (Some(path), _) => is_present(&path),
                    (None, process) => process.is_some_and(|process| process.is_alive()),
                };
                if !lives {
                    tracing::info!(
                        session = record.number,
                        "a client of the earlier service ended"
                    );
                    hub.end_unclaimed(record.number, Instant::now());
                }
            }
            let lapse = hub.check_unclaimed(Instant::now());
            if !hub.recovery.has_sessions() {
                tracing::info!("all clients of the earlier service have come back or ended");
                break;
            }
            lapse.unwrap_or(LOOK_MAX)
        };
        sleep(next.min(pause)).await;
        pause = (pause * 2).min(LOOK_MAX);
    }
    shared.emptied.notify_waiters();
}

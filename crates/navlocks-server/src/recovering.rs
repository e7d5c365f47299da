//! Attends to the recovery of sessions: leases that pass, and processes that end.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::connection::Shared;
use crate::presence::is_present;
use crate::store::SessionRecord;

/// How often the processes of unclaimed sessions are looked at, at first and later.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// Ends unclaimed sessions as their leases pass or their processes end, until there are none.
pub(crate) async fn attend(shared: Rc<Shared>) {
    let mut pause = LOOK_MIN;
    loop {
        let next = {
            let mut hub = shared.hub.borrow_mut();
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

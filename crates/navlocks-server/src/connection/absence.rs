//! Sessions without a connection: each lives on until its lease or its last process ends, or until
//! its client has another connection.

use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use tokio::task::spawn_local;

use super::{Joined, Shared, in_turn};
use crate::hub::SharedHub;
use crate::presence::gone;

/// Lets a session go on without its connection, as long as it may.
pub(super) fn detach(shared: Rc<Shared>, joined: Joined) {
    let Joined { hub, session, number } = &joined;
    if hub.borrow().is_retired() || !hub.borrow_mut().detach(*session, *number, Instant::now()) {
        return;
    }
    let presence = hub.borrow().presence_of(*session);
    let Some(share) = hub.borrow().sessions.get(*session).map(|it| it.share.clone()) else {
        return;
    };
    // In the tenant's turns, because thousands may end at one moment.
    match presence {
        Some(path) => {
            spawn_local(in_turn(shared.clone(), share, outlive(shared, joined, path)));
        }
        None => {
            spawn_local(in_turn(shared.clone(), share, expire(shared, joined)));
        }
    }
}

/// Waits for the end of the lease of a session whose connection broke, and ends it then unless it
/// goes on elsewhere.
async fn expire(shared: Rc<Shared>, joined: Joined) {
    let Joined { hub, session, number } = joined;
    loop {
        caught_up(&hub, session).await;
        let left = {
            let mut hub = hub.borrow_mut();
            if hub.is_retired() || !hub.is_detached_since(session, number) {
                return;
            }
            hub.check_lease(session, Instant::now())
        };
        let Some(left) = left else {
            shared.emptied.notify_waiters();
            return;
        };
        tokio::time::sleep(left).await;
    }
}

/// Waits until the tenant of a session is not [behind](Share::is_behind).
async fn caught_up(hub: &SharedHub, number: u32) {
    let share = hub.borrow().sessions.get(number).map(|session| session.share.clone());
    if let Some(share) = share {
        poll_fn(|cx| share.poll_caught_up(cx)).await;
    }
}

/// Waits for the last process of a session whose connection broke, and ends it then unless it goes
/// on elsewhere.
async fn outlive(shared: Rc<Shared>, joined: Joined, presence: PathBuf) {
    let Joined { hub, session, number } = joined;
    gone(&presence).await;
    caught_up(&hub, session).await;
    {
        let mut hub = hub.borrow_mut();
        if hub.is_detached_since(session, number) {
            hub.end(session, None, Instant::now());
        }
    }
    shared.emptied.notify_waiters();
}

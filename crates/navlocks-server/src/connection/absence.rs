//! Sessions without a connection: each lives on until its lease or its last process ends, or until
//! its client has another connection. Sessions of an earlier service are such sessions, too.
//!
//! A client over a Unix socket shows that it lives by a socket at its path of *presence*. No
//! process accepts there. The kernel takes connections for as long as a process has that socket
//! open, whether the process runs or is stopped, and refuses them from then on.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use super::{Joined, Shared, in_turn};
use crate::hub::{Hub, SharedHub};

/// How often a socket is tried whose queue of connections is full.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// How often the processes of unclaimed sessions are looked at, at first and later.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// The most processes that are looked at before other tasks have their turns.
const LOOKS_PER_TURN: usize = 100;

/// Lets a session go on without its connection, as long as it may.
pub(super) fn detach(shared: Rc<Shared>, joined: Joined) {
    let Joined { hub, session, number } = &joined;
    if hub.borrow().is_retired() || !hub.borrow_mut().detach(*session, *number, Instant::now()) {
        return;
    }
    let Some(share) = hub.borrow().sessions.get(*session).map(|it| it.share.clone()) else {
        return;
    };
    // In the tenant's turns, because thousands may end at one moment.
    spawn_local(in_turn(shared.clone(), share, await_end(shared, joined)));
}

/// Waits for the last process of a session whose connection broke, or for the end of its lease, and
/// ends it then unless it goes on elsewhere.
async fn await_end(shared: Rc<Shared>, joined: Joined) {
    let Joined { hub, session, number } = joined;
    let presence = hub.borrow().presence_of(session);
    if let Some(path) = &presence {
        gone(path).await;
    }
    loop {
        caught_up(&hub, session).await;
        let left = {
            let mut hub = hub.borrow_mut();
            if hub.is_retired() || !hub.is_detached_since(session, number) {
                return;
            }
            match &presence {
                Some(_) => {
                    hub.end(session, None, Instant::now());
                    None
                }
                None => hub.check_lease(session, Instant::now()),
            }
        };
        let Some(left) = left else { break };
        sleep(left).await;
    }
    shared.emptied.notify_waiters();
}

/// Waits until the tenant of a session is not [behind](crate::hub::Share::is_behind).
async fn caught_up(hub: &SharedHub, number: u32) {
    let share = hub.borrow().sessions.get(number).map(|session| session.share.clone());
    if let Some(share) = share {
        poll_fn(|cx| share.poll_caught_up(cx)).await;
    }
}

/// Attends to the sessions of an earlier service, or of the earlier owner of a slot.
pub(crate) fn attend_found(shared: &Rc<Shared>, hub: &SharedHub) {
    let (earlier, why) = (hub.borrow().store.earlier(), hub.borrow().store.why_earlier());
    if !earlier.is_zero() {
        tracing::warn!("no lock is granted for {earlier:?}: {why}");
        spawn_local(let_go_after(earlier, hub.clone()));
    }
    if hub.borrow().found.has_sessions() {
        spawn_local(end_found(shared.clone(), hub.clone()));
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

/// Ends unclaimed sessions as their leases pass or their processes end, until there are none. One
/// task awaits all of them, because a socket each would use up the files of the service.
async fn end_found(shared: Rc<Shared>, hub: SharedHub) {
    let mut pause = LOOK_MIN;
    loop {
        let local = hub.borrow().unclaimed_local();
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
            if !hub.found.has_sessions() {
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
        let Some(session) = hub.sessions.get(number) else { continue };
        let presence = hub.registry.presence(number).filter(|_| session.present);
        let lives = match (presence, session.peer.process) {
            (Some(path), _) => is_present(&path),
            (None, process) => process.is_some_and(|process| process.is_alive()),
        };
        if !lives {
            tracing::info!(session = number, "a client of the earlier service ended");
            hub.end_unclaimed(number, Instant::now());
        }
    }
}

/// Returns true if a process has the socket at this path open.
fn is_present(path: &Path) -> bool {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (Ok(socket), Ok(address)) = (socket, SocketAddrUnix::new(path)) else {
        // This process has too many files: that says nothing of the other one.
        return true;
    };
    !matches!(connect(&socket, &address), Err(Errno::CONNREFUSED | Errno::NOENT))
}

/// Waits until no process has the socket at this path open.
async fn gone(path: &Path) {
    loop {
        match UnixStream::connect(path).await {
            // The connection ends with the socket that would accept it.
            Ok(mut stream) => {
                let _ended = stream.read(&mut [0]).await;
            }
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => return,
                // Another user keeps it closed, and only the process counts then.
                ErrorKind::PermissionDenied => return,
                _ => sleep(FULL_PAUSE).await,
            },
        }
    }
}

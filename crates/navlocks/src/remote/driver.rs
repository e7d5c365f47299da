//! The driver: the task that owns the connection of a session, and connects again.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep;

use super::alarm::Alarm;
use super::carrier::{End, carry};
use super::clock;
use super::connect::{ConnectError, Options};
use super::dial::{Dialed, Link, dial};
use super::greeting::{WELCOME_MAX, greet, greet_over};
use super::own;
use super::session::Session;
use crate::error::{Loss, Refusal};
use navlocks_client::{Backoff, DialError, Moment, Next, Route, Starts, jitter};
use navlocks_wire::{Fault, FaultCode};

/// Spreads the clients that want to start a service.
const START_JITTER_MAX: Duration = Duration::from_millis(50);

/// How often in a row a service may end a session because of the client's messages, until the users
/// get the fault.
const FAULTS_MAX: u32 = 2;

/// A session that lasted so long had another cause than the one before.
const FAULTS_FORGOTTEN: Duration = Duration::from_secs(60);

/// An attempt to connect that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ConnectError,
    /// The node took the connection, and the hello was sent.
    pub(super) greeted: bool,
}

impl Failure {
    /// Returns the failure as the route sees it.
    fn dial_error(&self) -> DialError {
        let refused = match &self.error {
            ConnectError::Refused(fault) => Some(fault.clone()),
            _ => None,
        };
        DialError { refused, greeted: self.greeted }
    }
}

/// A session that has its driver, and its connection if there is one.
pub(super) struct Begun {
    session: Gone,
    route: Route,
    /// A socket to the route's target, until the session greets over it.
    dialed: Option<Dialed>,
    link: Option<Link>,
}

impl Begun {
    /// A session that is not connected yet.
    pub(super) fn new(session: Arc<Session>) -> Self {
        let route = session.options.route();
        Self { session: Gone(session), route, dialed: None, link: None }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session.0
    }

    /// Makes the first connection: dials each address once, and follows nodes to the owner. A
    /// cluster without an owner is dialled for as long as a service may take to answer.
    pub(super) async fn greet(&mut self) -> Result<(), ConnectError> {
        let Self { session: Gone(session), route, dialed, link } = self;
        let (since, mut has_moved) = (clock::now(), false);
        let mut backoff = Backoff::between_dials(&session.options.addresses);
        loop {
            let greeted = match dialed.take() {
                // One of several nodes may not own the locks, so they get requests after a welcome.
                Some(dialed) => greet_over(session, route, dialed, !route.is_cluster()).await,
                None => greet(session, route).await,
            };
            let failure = match greeted {
                Ok(greeted) => {
                    *link = Some(greeted);
                    return Ok(());
                }
                Err(failure) => failure,
            };
            let error = failure.dial_error();
            has_moved |= error.is_moved();
            if route.is_final(&error) {
                return Err(failure.error);
            }
            if route.failed(&error, clock::now()) == Next::AtOnce {
                continue;
            }
            if !has_moved || clock::now().saturating_since(since) >= WELCOME_MAX {
                return Err(failure.error);
            }
            sleep(backoff.next_in_takeover(own::random())).await;
        }
    }

    /// Carries the session until its users are gone.
    pub(super) async fn drive(self) {
        let Self { session: gone, mut route, mut link, .. } = self;
        let session = &gone.0;
        let mut backoff = Backoff::between_dials(&session.options.addresses);
        let mut starts = Starts::default();
        let mut faults = 0;
        loop {
            if let Some(link) = link.take() {
                let since = clock::now();
                if let End::Left = carry(session, link).await {
                    return;
                }
                session.link_broken();
                let lasted = clock::now().saturating_since(since);
                if backoff.after(lasted) {
                    route.settled();
                }
                if lasted >= FAULTS_FORGOTTEN {
                    faults = 0;
                }
                if let Some(fault) = session.take_fault() {
                    faults += 1;
                    // The next session begins with the same requests.
                    if faults == FAULTS_MAX {
                        return session.refused(Refusal::from(fault));
                    }
                }
                starts.after(lasted);
                let moved = session.take_moved();
                if let Some(Fault { to, .. }) = moved
                    && route.moved(to.as_deref(), clock::now()) == Next::AtOnce
                {
                    backoff.restart();
                }
            }
            link = reconnect(session, &mut route, &mut backoff, &mut starts).await;
            if link.is_none() {
                return;
            }
        }
    }
}

/// Makes the first connection of a session.
pub(super) async fn begin(options: &Options) -> Result<Begun, ConnectError> {
    let mut begun = Begun::new(Arc::new(Session::new(options.clone())));
    begun.greet().await?;
    Ok(begun)
}

/// Opens the first socket of a session, to the first address that takes the connection.
pub(super) async fn begin_dialed(options: &Options) -> Result<Begun, ConnectError> {
    let mut begun = Begun::new(Arc::new(Session::new(options.clone())));
    let Begun { session: Gone(session), route, dialed, .. } = &mut begun;
    loop {
        let limit = route.limit(session.lease_length());
        let error = match dial(options, &route.target().url, limit).await {
            Ok(socket) => {
                *dialed = Some(socket);
                return Ok(begun);
            }
            Err(error) => error,
        };
        let failure = Failure { error, greeted: false };
        let error = failure.dial_error();
        if route.is_final(&error) || route.failed(&error, clock::now()) == Next::AfterPause {
            return Err(failure.error);
        }
    }
}

/// Tells the users when the driver ends, however it does: also when a runtime drops its task.
struct Gone(Arc<Session>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gone();
    }
}

/// Tries until the service is reached again, or there is nobody left to reach it for.
async fn reconnect(
    session: &Session,
    route: &mut Route,
    backoff: &mut Backoff,
    starts: &mut Starts,
) -> Option<Link> {
    let since = clock::now();
    let mut next = Next::AfterPause;
    loop {
        if next == Next::AfterPause {
            let is_awaited = session.is_resumable() || session.needs_service();
            attended(session, since, sleep(next_pause(is_awaited, route, backoff))).await?;
        }
        let failure = match attended(session, since, greet(session, route)).await? {
            Ok(link) => return Some(link),
            Err(failure) => failure,
        };
        let error = failure.dial_error();
        if route.is_final(&error) {
            if let ConnectError::Refused(fault) = failure.error {
                session.refused(Refusal::from(fault));
            }
            return None;
        }
        match &failure.error {
            ConnectError::Refused(fault) if fault.code == FaultCode::UnknownSession => {
                // A client that wanted to resume a session may begin another one at once.
                if session.is_resumable() {
                    backoff.restart();
                }
                session.input(|state| session.lapse(state, Loss::ServiceGone));
                next = Next::AfterPause;
                continue;
            }
            ConnectError::Unreachable(io)
                if is_nobody(io)
                    && attended(session, since, start_again(session, starts)).await? =>
            {
                backoff.restart();
            }
            _ => {}
        }
        next = route.failed(&error, clock::now());
    }
}

/// Returns the pause before the next attempt. The next owner of a cluster's locks grants nothing
/// until all sessions have claimed theirs.
fn next_pause(is_awaited: bool, route: &Route, backoff: &mut Backoff) -> Duration {
    match route.is_cluster() && is_awaited {
        true => backoff.next_in_takeover(own::random()),
        false => backoff.next_pause(),
    }
}

/// Returns true if no process listens at a Unix socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Starts a service that has ended, if this client is to do that and needs one. Returns whether a
/// service listens then.
async fn start_again(session: &Session, starts: &mut Starts) -> bool {
    let Options { addresses, restart, .. } = &session.options;
    let (Some(socket), Some(start)) = (addresses.socket(), restart) else { return false };
    if !session.needs_service() || !starts.is_due(clock::now()) {
        return false;
    }
    // All clients of a service notice its end at the same moment: the jitter lets one be the first.
    sleep(jitter(START_JITTER_MAX, own::random())).await;
    let started = own::start(socket, start).await;
    starts.done(clock::now());
    started.is_ok()
}

/// Runs a future while there is no connection, unless the users leave first. Leases and patience
/// end meanwhile.
async fn attended<T>(session: &Session, since: Moment, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        // Nothing is sent; but the driver is woken when the users leave.
        while session.next_said(cx.waker()).is_some() {}
        if session.may_end() {
            return Poll::Ready(None);
        }
        session.check_lease();
        session.check_patience(since);
        alarm.set(session.lease_deadline().min(session.patient_until(since)), cx);
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_client::Addresses;

    #[test]
    fn session_that_a_takeover_waits_for_makes_short_pauses() {
        let longest = |list: &str, is_awaited: bool| {
            let session = Session::new(Options::to(Addresses::parse(list).unwrap()));
            let route = session.options.route();
            let mut backoff = Backoff::between_dials(&session.options.addresses);
            (0..100).map(|_| next_pause(is_awaited, &route, &mut backoff)).max().unwrap()
        };
        assert!(longest("ws://a,b", true) <= Duration::from_millis(200));
        assert_eq!(longest("ws://a,b", false), Duration::from_secs(1));
        assert_eq!(longest("ws://a", true), Duration::from_secs(1));
    }
}

//! The task that owns the connection: it sends, receives, and connects again.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio::time::{Interval, MissedTickBehavior, Sleep, sleep};
use tokio_tungstenite::tungstenite::{self, Message};

use super::connect::{ConnectError, Options};
use super::dial::{Dialed, Link, dial, open};
use super::lease::Instant;
use super::own;
use super::pacing::{Alarm, Pauses, Starts};
use super::route::{Failure, Next, Route};
use super::session::{Session, Standing};
use crate::error::{Loss, Refusal};
use navlocks_wire::{self as wire, Fault, FaultCode, ToClient, ToService, Welcome};

/// How a connection ended.
enum End {
    /// The users are gone, as expected.
    Left,
    /// It broke, or its session is over. It may be tried again.
    Broken,
}

/// For the service to answer the handshake and the hello.
const WELCOME_MAX: Duration = Duration::from_secs(10);

/// The least of that for a session whose lease goes by while the owner says nothing.
const WELCOME_LEASED_MIN: Duration = Duration::from_millis(250);

/// Spreads the clients that want to start a service.
const START_JITTER_MAX: Duration = Duration::from_millis(50);

/// The longest time for the service to close after its last message, and to read ours.
const CLOSING_MAX: Duration = Duration::from_secs(1);

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
        let route = Route::new(&session.options.addresses);
        Self { session: Gone(session), route, dialed: None, link: None }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session.0
    }

    /// Makes the first connection: dials each address once, and follows nodes to the owner. A
    /// cluster without an owner is dialled for as long as a service may take to answer.
    pub(super) async fn greet(&mut self) -> Result<(), ConnectError> {
        let Self { session: Gone(session), route, dialed, link } = self;
        let (since, mut has_moved) = (Instant::now(), false);
        let mut pauses = Pauses::between_dials(&session.options.addresses);
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
            has_moved |= failure.is_moved();
            if route.is_final(&failure) {
                return Err(failure.error);
            }
            if route.failed(&failure, &session.options) == Next::AtOnce {
                continue;
            }
            if !has_moved || Instant::now().saturating_since(since) >= WELCOME_MAX {
                return Err(failure.error);
            }
            sleep(pauses.next_in_takeover()).await;
        }
    }

    /// Carries the session until its users are gone.
    pub(super) async fn drive(self) {
        let Self { session: gone, mut route, mut link, .. } = self;
        let session = &gone.0;
        let mut pauses = Pauses::between_dials(&session.options.addresses);
        let mut starts = Starts::default();
        loop {
            if let Some(link) = link.take() {
                let since = Instant::now();
                if let End::Left = carry(session, link).await {
                    return;
                }
                session.link_broken();
                let lasted = Instant::now().saturating_since(since);
                if pauses.after(lasted) {
                    route.settled();
                }
                starts.after(lasted);
                let moved = session.take_moved();
                if let Some(Fault { to, .. }) = moved
                    && route.moved(to.as_deref(), &session.options) == Next::AtOnce
                {
                    pauses.restart();
                }
            }
            link = reconnect(session, &mut route, &mut pauses, &mut starts).await;
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
        if route.is_final(&failure) || route.failed(&failure, options) == Next::AfterPause {
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

/// Connects, says hello, and hears the welcome.
async fn greet(session: &Session, route: &mut Route) -> Result<Link, Failure> {
    let limit = route.limit(session.lease_length());
    let dialed = dial(&session.options, &route.target().url, limit).await;
    let dialed = dialed.map_err(|error| Failure { error, greeted: false })?;
    greet_over(session, route, dialed, false).await
}

/// Says hello over this socket to the target, with the requests so far if they are `early`.
async fn greet_over(
    session: &Session,
    route: &mut Route,
    dialed: Dialed,
    early: bool,
) -> Result<Link, Failure> {
    let lease = session.lease_length();
    let within = session.options.answers_within.unwrap_or(WELCOME_MAX).min(WELCOME_MAX);
    let within = match lease.filter(|_| route.is_cluster() && session.is_resumable()) {
        Some(lease) => within.min((lease / 4).max(WELCOME_LEASED_MIN)),
        None => within,
    };
    let (target, limit) = (route.target(), route.limit(lease));
    let failed = |greeted| move |error| Failure { error, greeted };
    let first_messages = || {
        let (said, hello) = (Instant::now(), session.hello(target.carries()));
        let mut texts = vec![wire::write(&ToService::Hello(hello.clone()))];
        if early {
            texts.extend(session.early_requests());
        }
        (said, hello, texts)
    };
    let (mut sent, mut first) = (None, Vec::new());
    if early && dialed.takes_early() {
        let (said, hello, texts) = first_messages();
        (sent, first) = (Some((said, hello)), texts);
    }
    let until = tokio::time::Instant::now() + within;
    // A process that is stopped takes connections, and opens no WebSocket.
    let limit = if route.is_cluster() { limit.min(within) } else { within };
    let opened = tokio::time::timeout(limit, open(dialed, first)).await;
    let opened = opened.unwrap_or(Err(ConnectError::Silent { within: limit }));
    let mut link = opened.map_err(failed(false))?;
    let greeted = async {
        let (said, hello) = match sent {
            Some(sent) => sent,
            None => {
                let (said, hello, texts) = first_messages();
                send(&mut link, texts).await.map_err(broken)?;
                (said, hello)
            }
        };
        let welcome = first_answer(&mut link).await?;
        let (epoch, known) = (welcome.epoch, session.epoch());
        if epoch < known {
            return Err(outdated(epoch, known));
        }
        session.welcome(welcome, &hello, said);
        Ok(())
    };
    let greeted = tokio::time::timeout_at(until, greeted).await;
    greeted.unwrap_or(Err(ConnectError::Silent { within })).map_err(failed(true))?;
    route.reached();
    Ok(link)
}

async fn send(link: &mut Link, texts: Vec<String>) -> Result<(), tungstenite::Error> {
    let mut link = Pin::new(link);
    for text in texts {
        poll_fn(|cx| link.as_mut().poll_ready(cx)).await?;
        link.as_mut().start_send(Message::text(text))?;
    }
    poll_fn(|cx| link.as_mut().poll_flush(cx)).await
}

async fn first_answer(link: &mut Link) -> Result<Welcome, ConnectError> {
    let mut link = Pin::new(link);
    loop {
        let message = match poll_fn(|cx| link.as_mut().poll_next(cx)).await {
            Some(Ok(Message::Text(text))) => wire::read(&text),
            Some(Ok(Message::Close(_))) | None => {
                return Err(broken(tungstenite::Error::ConnectionClosed));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(broken(error)),
        };
        return match message {
            Ok(ToClient::Welcome(welcome)) if welcome.version == wire::VERSION => Ok(welcome),
            Ok(ToClient::Welcome(welcome)) => Err(other_version(welcome.version)),
            Ok(ToClient::Error(fault)) => Err(ConnectError::Refused(fault)),
            Ok(other) => Err(ConnectError::Handshake(format!("it began with {other:?}"))),
            Err(fault) => Err(ConnectError::Handshake(fault.to_string())),
        };
    }
}

fn outdated(epoch: u64, known: u64) -> ConnectError {
    ConnectError::Handshake(format!(
        "its epoch is {epoch}, and a service of epoch {known} was here before: end the older one, or restore its state"
    ))
}

fn other_version(theirs: u32) -> ConnectError {
    let ours = wire::VERSION;
    let sentence =
        format!("the service speaks version {theirs} of the protocol, this client {ours}");
    ConnectError::Refused(Fault::new(FaultCode::Version, sentence))
}

fn broken(error: tungstenite::Error) -> ConnectError {
    ConnectError::Unreachable(match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::other(other),
    })
}

/// Tries until the service is reached again, or there is nobody left to reach it for.
async fn reconnect(
    session: &Session,
    route: &mut Route,
    pauses: &mut Pauses,
    starts: &mut Starts,
) -> Option<Link> {
    let since = Instant::now();
    let mut next = Next::AfterPause;
    loop {
        if next == Next::AfterPause {
            attended(session, since, sleep(next_pause(session, route, pauses))).await?;
        }
        let failure = match attended(session, since, greet(session, route)).await? {
            Ok(link) => return Some(link),
            Err(failure) => failure,
        };
        if route.is_final(&failure) {
            if let ConnectError::Refused(fault) = failure.error {
                session.refused(Refusal::from(fault));
            }
            return None;
        }
        match &failure.error {
            ConnectError::Refused(fault) if fault.code == FaultCode::UnknownSession => {
                // A client that wanted to resume a session may begin another one at once.
                if session.is_resumable() {
                    pauses.restart();
                }
                session.input(|state| session.lapse(state, Loss::ServiceGone));
                next = Next::AfterPause;
                continue;
            }
            ConnectError::Unreachable(error)
                if is_nobody(error)
                    && attended(session, since, start_again(session, starts)).await? =>
            {
                pauses.restart();
            }
            _ => {}
        }
        next = route.failed(&failure, &session.options);
    }
}

/// Returns the pause before the next attempt. The next owner of a cluster's locks grants nothing
/// until all sessions have claimed theirs.
fn next_pause(session: &Session, route: &Route, pauses: &mut Pauses) -> Duration {
    let is_awaited = session.is_resumable() || session.needs_service();
    match route.is_cluster() && is_awaited {
        true => pauses.next_in_takeover(),
        false => pauses.next(),
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
    if !session.needs_service() || !starts.is_due() {
        return false;
    }
    // All clients of a service notice its end at the same moment: the jitter lets one be the first.
    sleep(own::jitter(START_JITTER_MAX)).await;
    let started = own::start(socket, start).await;
    starts.done();
    started.is_ok()
}

/// Runs a future while there is no connection, unless the users leave first. Leases and patience
/// end meanwhile.
async fn attended<T>(
    session: &Session,
    since: Instant,
    work: impl Future<Output = T>,
) -> Option<T> {
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
        alarm.set(session.believed_until().min(session.patient_until(since)), cx);
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Sends and receives until the connection ends.
async fn carry(session: &Session, link: Link) -> End {
    let mut carrier = Carrier {
        session,
        link,
        pings: session.ping_interval().map(|every| {
            let mut pings = tokio::time::interval(every);
            pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
            pings
        }),
        alarm: Alarm::new(),
        heard_all: false,
        ponging: false,
        closing: None,
        ended: false,
    };
    poll_fn(|cx| {
        let end = carrier.poll(cx);
        carrier.ended = end.is_ready();
        end
    })
    .await
}

struct Carrier<'a> {
    session: &'a Session,
    link: Link,
    pings: Option<Interval>,
    /// Fires when the client must take its locks for lost.
    alarm: Alarm,
    /// True if the service has sent its last message.
    heard_all: bool,
    /// True if the answer to a ping of WebSocket may be in the link's buffer.
    ponging: bool,
    /// Fires when the end of the connection was awaited long enough.
    closing: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

/// A runtime that shuts down drops its tasks. The last messages are still written, so that the
/// service need not wait for a lease.
impl Drop for Carrier<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.session.say_farewell();
            let _as_much_as_fits = self.poll_say(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Carrier<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.session.check_lease();
        if self.heard_all {
            self.alarm.set(self.session.believed_until(), cx);
            return self.poll_end(cx);
        }
        if let Standing::Over = self.session.standing() {
            // The service may still keep locks that the client has given up. The next connection
            // begins a new session.
            return Poll::Ready(End::Broken);
        }
        while let Some(pings) = &mut self.pings
            && pings.poll_tick(cx).is_ready()
        {
            self.session.ping();
        }
        // Writes before reading: other clients may be blocked on these messages. Messages received
        // before the end count.
        let said = self.poll_say(cx);
        let heard = self.poll_hear(cx);
        if heard.is_ready() || self.heard_all {
            return heard;
        }
        if said.is_ready() {
            return said;
        }
        // After reading: messages that arrived while this process was stopped count.
        let silent_at = self.session.check_silence();
        let silent_from = self.session.silent_from();
        let next = self.session.believed_until().min(silent_at).min(silent_from);
        self.alarm.set(next, cx);
        // From here on the driver is woken when that changes.
        match self.session.standing() {
            // A network can swallow one connection and carry another: the session resumes over that
            // one.
            Standing::Carried if Instant::now() >= silent_from => Poll::Ready(End::Broken),
            Standing::Carried => Poll::Pending,
            Standing::Leaving => self.poll_closing(cx).map(|()| End::Left),
            Standing::Over => Poll::Ready(End::Broken),
        }
    }

    /// Returns ready once the other side was awaited long enough since the first call.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSING_MAX)));
        closing.as_mut().poll(cx)
    }

    /// Waits for the service to close: closing with unread input would look like a broken
    /// connection to it.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match Pin::new(&mut self.link).poll_next(cx) {
                Poll::Ready(Some(Ok(Message::Close(_)) | Err(_)) | None) => break,
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Pending => {
                    ready!(self.poll_closing(cx));
                    break;
                }
            }
        }
        Poll::Ready(End::Broken)
    }

    /// Receives all messages that have arrived.
    fn poll_hear(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            // Back-pressure: the buffer has no limit, and a service that does not read would fill
            // it.
            if self.ponging && ready!(Pin::new(&mut self.link).poll_flush(cx)).is_err() {
                return Poll::Ready(self.over());
            }
            self.ponging = false;
            let text = match ready!(Pin::new(&mut self.link).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Poll::Ready(self.over()),
                Some(Ok(Message::Ping(_))) => {
                    self.ponging = true;
                    continue;
                }
                Some(Ok(_)) => continue,
            };
            // A service that sends what is no message is none.
            let Ok(message) = wire::read(&text) else { return Poll::Ready(End::Broken) };
            // The owner of the locks is dialled at once, whatever becomes of this connection.
            self.heard_all =
                matches!(&message, ToClient::Error(fault) if fault.code != FaultCode::Moved);
            if !self.session.receive(message) {
                return if self.heard_all { self.poll_end(cx) } else { Poll::Ready(End::Broken) };
            }
        }
    }

    /// Sends all messages, and closes after the last one.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // Read before sending: otherwise a message that is added meanwhile could be left out.
        let leaving = self.session.is_leaving();
        loop {
            match Pin::new(&mut self.link).poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(self.over()),
                Poll::Pending => {
                    self.session.register(cx.waker());
                    return Poll::Pending;
                }
            }
            let Some(text) = self.session.next_said(cx.waker()) else { break };
            if Pin::new(&mut self.link).start_send(Message::Text(text)).is_err() {
                return Poll::Ready(self.over());
            }
        }
        if leaving {
            // The last messages travel with the close frame: the service is woken once.
            let _closed_or_broken = ready!(Pin::new(&mut self.link).poll_close(cx));
            return Poll::Ready(End::Left);
        }
        if ready!(Pin::new(&mut self.link).poll_flush(cx)).is_err() {
            return Poll::Ready(self.over());
        }
        Poll::Pending
    }

    fn over(&self) -> End {
        if self.session.is_leaving() { End::Left } else { End::Broken }
    }
}

#[cfg(test)]
mod tests {
    use super::super::addresses::Addresses;
    use super::*;

    #[test]
    fn session_that_a_takeover_waits_for_makes_short_pauses() {
        let longest = |list: &str, is_resumable: bool| {
            let session = Session::new(Options::to(Addresses::parse(list).unwrap()));
            session.lock().secret = is_resumable.then(|| "secret".to_owned());
            let route = Route::new(&session.options.addresses);
            let mut pauses = Pauses::between_dials(&session.options.addresses);
            (0..100).map(|_| next_pause(&session, &route, &mut pauses)).max().unwrap()
        };
        assert!(longest("ws://a,b", true) <= Duration::from_millis(200));
        assert_eq!(longest("ws://a,b", false), Duration::from_secs(1));
        assert_eq!(longest("ws://a", true), Duration::from_secs(1));
    }
}

//! The task that owns the connection: it says what is to be said, takes in what is said, and connects again.

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
use super::session::{Session, Standing};
use super::url::Url;
use crate::error::{Loss, Refusal};
use navlocks_wire::{self as wire, Fault, FaultCode, ToClient, ToService, Welcome};

/// How a connection ended.
enum End {
    /// As it should: the users are gone.
    Left,
    /// It broke, or what it carried is over. It may be tried again.
    Broken,
}

/// For the service to answer the handshake and the hello.
const WELCOME_MAX: Duration = Duration::from_secs(10);

/// Spreads the clients that want to start a service.
const START_JITTER_MAX: Duration = Duration::from_millis(50);

/// For the service to close after its last message, and to take in ours.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// The first connection of a session.
pub(super) async fn begin(options: &Options) -> Result<(Arc<Session>, Link), ConnectError> {
    let session = Arc::new(Session::new(options.clone()));
    let link = greet(&session).await?;
    Ok((session, link))
}

/// Carries a session until its users are gone.
pub(super) async fn drive(session: Arc<Session>, mut link: Link) {
    // Also when the runtime drops this task: nobody waits for a driver that is no more.
    let gone = Gone(session);
    let session = &gone.0;
    let mut pauses = Pauses::between_dials(&session.options.url);
    let mut starts = Starts::default();
    loop {
        let since = Instant::now();
        if let End::Left = carry(session, link).await {
            return;
        }
        session.link_broken();
        let lasted = Instant::now().saturating_since(since);
        pauses.after(lasted);
        starts.after(lasted);
        match reconnect(session, &mut pauses, &mut starts).await {
            Some(again) => link = again,
            None => return,
        }
    }
}

/// Tells the users when the driver ends, however it does.
struct Gone(Arc<Session>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gone();
    }
}

/// Connects, says hello, and hears the welcome.
async fn greet(session: &Session) -> Result<Link, ConnectError> {
    let dialed = dial(&session.options).await?;
    greet_over(session, dialed, false).await
}

/// Greets the service for the first time. The requests that were made so far travel with the hello.
pub(super) async fn greet_early(session: &Session, dialed: Dialed) -> Result<Link, ConnectError> {
    greet_over(session, dialed, true).await
}

async fn greet_over(session: &Session, dialed: Dialed, early: bool) -> Result<Link, ConnectError> {
    let within = session.options.answers_within.unwrap_or(WELCOME_MAX).min(WELCOME_MAX);
    let greeted = async {
        let first_messages = || {
            let (said, hello) = (Instant::now(), session.hello());
            let mut texts = vec![wire::write(&ToService::Hello(hello.clone()))];
            if early {
                texts.extend(session.early_requests());
            }
            (said, hello, texts)
        };
        let (mut link, said, hello);
        if early && matches!(session.options.url, Url::Unix(_)) {
            let texts;
            (said, hello, texts) = first_messages();
            link = open(dialed.followed_by(texts)?).await?;
        } else {
            link = open(dialed).await?;
            let texts;
            (said, hello, texts) = first_messages();
            send(&mut link, texts).await.map_err(broken)?;
        }
        let welcome = first_answer(&mut link).await?;
        let (epoch, known) = (welcome.epoch, session.epoch());
        if epoch < known {
            return Err(outdated(epoch, known));
        }
        session.welcome(welcome, &hello, said);
        Ok(link)
    };
    let greeted = tokio::time::timeout(within, greeted).await;
    greeted.unwrap_or(Err(ConnectError::Silent { within }))
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
async fn reconnect(session: &Session, pauses: &mut Pauses, starts: &mut Starts) -> Option<Link> {
    let since = Instant::now();
    loop {
        attended(session, since, sleep(pauses.next())).await?;
        let fault = match attended(session, since, greet(session)).await? {
            Ok(link) => return Some(link),
            Err(ConnectError::Refused(fault)) => fault,
            Err(ConnectError::Unreachable(error)) if is_nobody(&error) => {
                if attended(session, since, start_again(session, starts)).await? {
                    pauses.restart();
                }
                continue;
            }
            Err(_) => continue,
        };
        match fault.code {
            FaultCode::UnknownSession => {
                // Whoever wanted to go on with a session may begin another one at once.
                if session.is_resumable() {
                    pauses.restart();
                }
                session.input(|state| session.lapse(state, Loss::ServiceGone));
            }
            code if code.is_final() => {
                session.refused(Refusal::from(fault));
                return None;
            }
            _ => {}
        }
    }
}

/// Returns true if no process listens at a Unix socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Starts a service that has ended, if this client is to do that and needs one. Returns whether a
/// service listens then.
async fn start_again(session: &Session, starts: &mut Starts) -> bool {
    let (Url::Unix(socket), Some(start)) = (&session.options.url, &session.options.restart) else {
        return false;
    };
    if !session.needs_service() || !starts.is_due() {
        return false;
    }
    // The clients of a service find out at the same moment: one of them is to be the first.
    sleep(own::jitter(START_JITTER_MAX)).await;
    let started = own::start(socket, start).await;
    starts.done();
    started.is_ok()
}

/// Runs something while there is no connection, unless the users leave first. Leases and patience end meanwhile, however long it
/// takes.
async fn attended<T>(
    session: &Session,
    since: Instant,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        // There is nothing to say; but the driver is woken when the users leave.
        while session.next_said(cx.waker()).is_some() {}
        if session.is_leaving() {
            return Poll::Ready(None);
        }
        session.check_lease();
        session.check_patience(since);
        alarm.set(session.believed_until().min(session.patient_until(since)), cx);
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Says and hears until the connection ends.
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
    /// Rings when the belief in the locks ends.
    alarm: Alarm,
    /// The service has said its last message.
    heard_all: bool,
    /// The answer to a ping of WebSocket may lie in the link's buffer.
    ponging: bool,
    /// Rings when the end of the connection has been waited for long enough.
    closing: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

/// A runtime that shuts down drops its tasks. What fits into the socket is still sent, so that the
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
            // The service may still keep what nobody believes in any more. The next connection begins a new session.
            return Poll::Ready(End::Broken);
        }
        while let Some(pings) = &mut self.pings
            && pings.poll_tick(cx).is_ready()
        {
            self.session.ping();
        }
        // Somebody may wait for what is said here, so it goes out first. What the service said before the end counts.
        let said = self.poll_say(cx);
        let heard = self.poll_hear(cx);
        if heard.is_ready() || self.heard_all {
            return heard;
        }
        if said.is_ready() {
            return said;
        }
        // Only now: what the service said while this process slept has been received.
        let silent_at = self.session.check_silence();
        let silent_from = self.session.silent_from();
        let next = self.session.believed_until().min(silent_at).min(silent_from);
        self.alarm.set(next, cx);
        // From here on the driver is woken when that changes.
        match self.session.standing() {
            // A network can swallow all of one connection and carry another: the session goes on
            // over that one.
            Standing::Carried if Instant::now() >= silent_from => Poll::Ready(End::Broken),
            Standing::Carried => Poll::Pending,
            Standing::Leaving => self.poll_closing(cx).map(|()| End::Left),
            Standing::Over => Poll::Ready(End::Broken),
        }
    }

    /// Whether the other side was waited for long enough, beginning with the first call.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSING_MAX)));
        closing.as_mut().poll(cx)
    }

    /// Waits for the service to close: a connection with something unread in it looks broken to the other side.
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

    /// Takes in all that has arrived.
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
            self.heard_all = matches!(message, ToClient::Error(_));
            if !self.session.receive(message) {
                return if self.heard_all { self.poll_end(cx) } else { Poll::Ready(End::Broken) };
            }
        }
    }

    /// Says all that is to be said, and closes when that was the last.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // Whoever leaves has said everything before; asked only after, something said meanwhile could be left out.
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
        if ready!(Pin::new(&mut self.link).poll_flush(cx)).is_err() {
            return Poll::Ready(self.over());
        }
        if leaving {
            let _closed_or_broken = ready!(Pin::new(&mut self.link).poll_close(cx));
            return Poll::Ready(End::Left);
        }
        Poll::Pending
    }

    fn over(&self) -> End {
        if self.session.is_leaving() { End::Left } else { End::Broken }
    }
}

//! The task that owns the connection: it says what is to be said, takes in what is said, and connects again.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio::time::{Interval, MissedTickBehavior, Sleep, sleep};
use tokio_tungstenite::tungstenite::{self, Message};

use super::connect::{ConnectError, Options};
use super::dial::{Link, dial};
use super::lease::Instant;
use super::session::{LinkState, Session};
use crate::error::Refusal;
use crate::wire::{self, Fault, FaultCode, ToClient, ToService, Welcome};

/// How a connection ended.
enum End {
    /// As it should: the users are gone.
    Left,
    /// It broke, or the service ended it. It may be tried again.
    Broken,
}

/// Between two attempts to reach the service: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// For the service to answer the hello.
const WELCOME_MAX: Duration = Duration::from_secs(10);

/// The first connection of a session.
pub(super) async fn begin(options: Options) -> Result<(Arc<Session>, Link), ConnectError> {
    let session = Arc::new(Session::new(options));
    let link = greet(&session).await?;
    Ok((session, link))
}

/// Carries a session until its users are gone.
pub(super) async fn drive(session: Arc<Session>, mut link: Link) {
    // Also when the runtime drops this task: nobody waits for a driver that is no more.
    let gone = Gone(session);
    let session = &gone.0;
    while let End::Broken = carry(session, link).await {
        session.link_broken();
        match reconnect(session).await {
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
    let mut link = dial(&session.options).await?;
    let said = Instant::now();
    let hello = wire::write(&ToService::Hello(session.hello()));
    let welcome = tokio::time::timeout(WELCOME_MAX, first_answer(&mut link, hello)).await;
    let late = || ConnectError::Handshake(format!("it did not answer within {WELCOME_MAX:?}"));
    session.welcome(welcome.map_err(|_| late())??, said);
    Ok(link)
}

async fn first_answer(link: &mut Link, hello: String) -> Result<Welcome, ConnectError> {
    let mut link = Pin::new(link);
    poll_fn(|cx| link.as_mut().poll_ready(cx)).await.map_err(broken)?;
    link.as_mut().start_send(Message::text(hello)).map_err(broken)?;
    poll_fn(|cx| link.as_mut().poll_flush(cx)).await.map_err(broken)?;
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

fn other_version(theirs: u32) -> ConnectError {
    let ours = wire::VERSION;
    let sentence =
        format!("the service speaks version {theirs} of the protocol, this client {ours}");
    ConnectError::Refused(Fault::new(FaultCode::Version, sentence))
}

fn broken(error: tungstenite::Error) -> ConnectError {
    ConnectError::Unreachable(match error {
        tungstenite::Error::Io(error) => error,
        other => std::io::Error::other(other),
    })
}

/// Tries until the service is reached again, or there is nobody left to reach it for.
async fn reconnect(session: &Session) -> Option<Link> {
    let since = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        let attempt = until_leaving(session, greet(session)).await?;
        match attempt {
            Ok(link) => return Some(link),
            Err(ConnectError::Refused(fault)) => match fault.code {
                FaultCode::UnknownSession => {
                    session.input(|state| session.lapse(state, crate::error::Loss::ServiceGone));
                    continue;
                }
                // These may pass.
                FaultCode::Limit | FaultCode::ShuttingDown | FaultCode::Internal => {}
                _ => {
                    session.give_up(LinkState::Refused(Refusal::from(fault)));
                    return None;
                }
            },
            Err(_) => {}
        }
        session.check_lease();
        let waited = Instant::now().saturating_since(since);
        if session.options.patience.is_some_and(|patience| waited >= patience) {
            session.give_up(LinkState::Hopeless);
        }
        let lapses = session.believed_until().saturating_since(Instant::now());
        until_leaving(session, sleep(pause.min(lapses))).await?;
        session.check_lease();
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Runs something, unless the users leave first.
async fn until_leaving<T>(session: &Session, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // There is no connection, so nothing to say; but the driver is woken when the users leave.
        while session.next_said(cx.waker()).is_some() {}
        if session.is_leaving() {
            return Poll::Ready(None);
        }
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
        alarm: Box::pin(sleep(Duration::ZERO)),
        set_to: Instant::from_raw(0),
    };
    poll_fn(|cx| carrier.poll(cx)).await
}

struct Carrier<'a> {
    session: &'a Session,
    link: Link,
    pings: Option<Interval>,
    /// Rings when the belief in the locks ends.
    alarm: Pin<Box<Sleep>>,
    set_to: Instant,
}

impl Carrier<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.session.check_lease() {
            // The service may still keep what nobody believes in any more; the end of the connection begins a new session.
            return Poll::Ready(End::Broken);
        }
        while let Some(pings) = &mut self.pings
            && pings.poll_tick(cx).is_ready()
        {
            self.session.ping();
        }
        if let Poll::Ready(end) = self.poll_hear(cx) {
            return Poll::Ready(end);
        }
        self.set_alarm(cx);
        self.poll_say(cx)
    }

    /// Sees to it that this is polled when the belief ends.
    fn set_alarm(&mut self, cx: &mut Context<'_>) {
        let until = self.session.believed_until();
        if until == Instant::NEVER {
            return;
        }
        if until != self.set_to {
            self.set_to = until;
            let left = until.saturating_since(Instant::now());
            self.alarm.as_mut().reset(tokio::time::Instant::now() + left);
        }
        if self.alarm.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Takes in all that has arrived.
    fn poll_hear(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let text = match ready!(Pin::new(&mut self.link).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Poll::Ready(self.over()),
                Some(Ok(_)) => continue,
            };
            // A service that sends what is no message is none.
            let Ok(message) = wire::read(&text) else { return Poll::Ready(End::Broken) };
            self.session.receive(message);
        }
    }

    /// Says all that is to be said, and closes when that was the last.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match Pin::new(&mut self.link).poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(self.over()),
                Poll::Pending => return Poll::Pending,
            }
            let Some(text) = self.session.next_said(cx.waker()) else { break };
            if Pin::new(&mut self.link).start_send(Message::Text(text)).is_err() {
                return Poll::Ready(self.over());
            }
        }
        if ready!(Pin::new(&mut self.link).poll_flush(cx)).is_err() {
            return Poll::Ready(self.over());
        }
        if self.session.is_leaving() {
            let _closed_or_broken = ready!(Pin::new(&mut self.link).poll_close(cx));
            return Poll::Ready(End::Left);
        }
        Poll::Pending
    }

    fn over(&self) -> End {
        if self.session.is_leaving() { End::Left } else { End::Broken }
    }
}

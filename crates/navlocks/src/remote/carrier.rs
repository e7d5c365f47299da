//! The carrier: sends and receives the messages of a session over one connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio::time::{Interval, MissedTickBehavior, Sleep, sleep};
use tokio_tungstenite::tungstenite::Message;

use super::alarm::Alarm;
use super::clock;
use super::dial::Link;
use super::session::{Session, Standing};
use navlocks_wire::{self as wire, FaultCode, ToClient};

/// How a connection ended.
pub(super) enum End {
    /// The users are gone, as expected.
    Left,
    /// It broke, or its session is over. It may be tried again.
    Broken,
}

/// The longest time for the service to close after its last message, and to read ours.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// Sends and receives until the connection ends.
pub(super) async fn carry(session: &Session, link: Link) -> End {
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
            self.alarm.set(self.session.lease_deadline(), cx);
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
        let next = self.session.lease_deadline().min(silent_at).min(silent_from);
        self.alarm.set(next, cx);
        // From here on the driver is woken when that changes.
        match self.session.standing() {
            // A network can swallow one connection and carry another: the session resumes over that
            // one.
            Standing::Carried if clock::has_come(silent_from) => Poll::Ready(End::Broken),
            Standing::Carried => Poll::Pending,
            Standing::Leaving => self.poll_closing(cx).map(|()| self.over()),
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
                // A node closes after a `bye` when no successor would wait for the session.
                Some(Ok(Message::Close(_))) if self.session.is_leaving() => {
                    return Poll::Ready(End::Left);
                }
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
            if self.session.is_leaving() && matches!(message, ToClient::Error(_)) {
                return Poll::Ready(self.over());
            }
            if !self.session.receive(message, clock::now()) {
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
        if leaving && self.session.may_end() {
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
        if self.session.may_end() { End::Left } else { End::Broken }
    }
}

//! A connection's task: reads all that is there, hands it to the hub, writes all that is to be said
//! in one go.

mod absence;
mod relay;
mod closing;
mod parking;
mod shared;
mod unauthenticated;
mod turns;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::{Sink as _, Stream as _};
use navlocks_wire::{self as wire, Fault, FaultCode, ToService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::config::Limits;
use crate::hub::{Frame, Full, Next, Outbox, Peer, Share, SharedHub, slow_reader};
use absence::detach;
use relay::Way;

pub(crate) use absence::attend_found;
pub(crate) use closing::close;
pub(crate) use shared::{ConnectionPermit, Shared, note_task};
pub(crate) use turns::in_turn;

/// So many messages are taken from one connection before others get their turn, and so many bytes.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 256 << 10;

/// So many bytes lie in the library's buffer before they are written to the socket.
const BUFFERED_BYTES_MAX: usize = 32 << 10;

/// The bytes of a pong frame before its payload.
const PONG_HEADER_BYTES: usize = 2;

/// How a connection is set up: small buffers, because most connections are idle most of the time.
pub(crate) fn websocket_config(limits: &Limits) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(2 << 10)
        .write_buffer_size(64 << 10)
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max))
}

/// Serves one connection from its first message to its end.
pub(crate) async fn serve<S>(
    stream: WebSocketStream<S>,
    peer: Peer,
    share: Rc<Share>,
    shared: Rc<Shared>,
    permit: ConnectionPermit,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection::new(stream, peer, share.clone(), shared.clone());
    let end = connection.run().await;
    poll_fn(|cx| share.poll_caught_up(cx)).await;
    let Connection { stream, outbox, joined, lease, frames, .. } = connection;
    let (fault, left) = match end {
        End::Broken | End::Elsewhere { .. } => {
            drop(stream);
            if let Some(joined) = joined {
                detach(shared, joined);
            }
            return;
        }
        End::Carried(way) => {
            shared.metrics().carried.inc();
            relay::carry(stream, *way).await;
            shared.metrics().carried.dec();
            return;
        }
        End::Closed => (None, false),
        End::Left => (None, true),
        End::Fault(fault) => {
            let goes_on = fault.code == FaultCode::Moved;
            (Some(fault), !goes_on)
        }
    };
    let last = fault.as_ref().is_some_and(|fault| fault.code == FaultCode::ShuttingDown);
    if let Some(joined) = joined {
        let hub = joined.hub.clone();
        if !left {
            detach(shared.clone(), joined);
        } else if !(last && hub.borrow().registry.is_durable()) {
            // A session that the registry keeps outlives the service.
            hub.borrow_mut().leave(joined.session, joined.number, Instant::now());
        }
        let bye = left && fault.is_none();
        if bye && !is_end_durable(&hub, shared.config.limits.closing_max).await {
            // The client takes leave of the next owner.
            return;
        }
    }
    let closed = close(stream, fault, (frames, &outbox), &shared.config.limits).await;
    if last && !closed {
        shared.could_not_tell(lease);
    }
    drop(permit);
}

/// Waits until the end of a session is durable: the next owner of a slot waits for those that have
/// not ended. Returns false if that does not come.
async fn is_end_durable(hub: &SharedHub, within: Duration) -> bool {
    let Some(gate) = hub.borrow().gate() else { return true };
    let (change, ticket) = (gate.last_end(), gate.ticket());
    let durable = poll_fn(|cx| gate.poll_durable(change, ticket, cx));
    tokio::time::timeout(within, durable).await.unwrap_or(false)
}

/// One connection. Its session is the hub's business.
struct Connection<S> {
    stream: WebSocketStream<S>,
    peer: Rc<Peer>,
    shared: Rc<Shared>,
    share: Rc<Share>,
    outbox: Outbox,
    /// Its session, once it has said hello.
    joined: Option<Joined>,
    lease: Option<Duration>,
    /// Until when the first message must be there, and after that when the lease is to be looked
    /// at.
    timer: Option<Pin<Box<Sleep>>>,
    /// Messages that were read before their turn.
    ahead: VecDeque<Message>,
    /// After this time of being carried the client tries to reach the owner again.
    home: Option<Duration>,
    /// The frames that are being written.
    frames: VecDeque<Frame>,
    /// Bytes that lie in the library's buffer.
    buffered: usize,
    flushing: bool,
}

/// The session of a connection.
struct Joined {
    hub: SharedHub,
    session: u32,
    /// The number of the connection there.
    number: u64,
}

/// Why a connection ends.
enum End {
    /// It broke.
    Broken,
    /// The other side closed it. That says nothing of the session: a client that waited for an
    /// answer in vain closes too, and goes on elsewhere.
    Closed,
    /// The client said `bye`, or its browser that the page or worker is gone.
    Left,
    /// The service ends it, and says why.
    Fault(Fault),
    /// Another node owns its locks, and its messages are carried there.
    Carried(Box<Way>),
    /// This node does not own its locks, and the client does not reach the one that does. The
    /// connection goes on if that changes.
    Elsewhere { hello: Utf8Bytes, owner: Option<String> },
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Returns what a close frame means. A worker that is terminated cannot send `bye`, but its
    /// browser closes with a code that no script can send.
    fn closed(&self, close: Option<&CloseFrame>) -> End {
        let is_gone = close.is_some_and(|close| close.code == CloseCode::Away);
        if is_gone && !self.peer.origin.is_empty() { End::Left } else { End::Closed }
    }

    fn new(stream: WebSocketStream<S>, peer: Peer, share: Rc<Share>, shared: Rc<Shared>) -> Self {
        let limits = &shared.config.limits;
        let outbox = Outbox::of(share.clone(), limits);
        let timer = Some(Box::pin(tokio::time::sleep(limits.handshake_max)));
        Self {
            stream,
            peer: peer.into(),
            shared,
            share,
            outbox,
            joined: None,
            lease: None,
            timer,
            ahead: VecDeque::new(),
            home: None,
            frames: VecDeque::new(),
            buffered: 0,
            flushing: false,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.outbox.look();
        // Writes before reading: other clients may be blocked on these replies. Messages that the
        // client sent before the connection broke count.
        let broken = matches!(self.poll_write(cx), Poll::Ready(Err(Broken)));
        if let Poll::Ready(end) = self.poll_read(cx) {
            return Poll::Ready(end);
        }
        if broken {
            return Poll::Ready(End::Broken);
        }
        if let Some(timer) = &mut self.timer
            && !self.share.is_behind()
            && timer.as_mut().poll(cx).is_ready()
            && let Some(end) = self.time_is_up(cx)
        {
            return Poll::Ready(end);
        }
        if let Poll::Ready(Err(Broken)) = self.poll_write(cx) {
            return Poll::Ready(End::Broken);
        }
        // The rest is written while closing, which has a time limit.
        if let Some(fault) = self.outbox.ending() {
            return Poll::Ready(End::Fault(fault));
        }
        self.outbox.register(cx.waker());
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let mut now = None;
        let mut bytes = 0;
        for _ in 0..BATCH {
            if bytes > BATCH_BYTES {
                break;
            }
            if let Some(fault) = self.outbox.ending() {
                return Poll::Ready(End::Fault(fault));
            }
            ready!(self.share.poll_caught_up(cx));
            let message = match self.ahead.pop_front() {
                Some(message) => message,
                None => match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => return Poll::Ready(self.read_failed(error)),
                    None => return Poll::Ready(End::Closed),
                },
            };
            let now = *now.get_or_insert_with(Instant::now);
            let mut hello = Utf8Bytes::default();
            let taken = match message {
                Message::Text(text) => {
                    bytes += text.len();
                    let taken = self.take(&text, now, cx);
                    hello = text;
                    taken
                }
                Message::Ping(payload) => {
                    // The library has put the pong into its own buffer, which has no limit.
                    self.flushing = true;
                    let pong = PONG_HEADER_BYTES + payload.len();
                    self.buffered += pong;
                    match self.outbox.charge(pong) {
                        Ok(()) => continue,
                        Err(Full) => {
                            let fault =
                                slow_reader(self.shared.metrics(), &self.shared.config.limits);
                            return Poll::Ready(End::Fault(fault));
                        }
                    }
                }
                Message::Pong(_) => continue,
                Message::Close(close) => return Poll::Ready(self.closed(close.as_ref())),
                Message::Binary(_) | Message::Frame(_) => {
                    let text = "messages are text frames, and this is a binary one";
                    Err(Fault::new(FaultCode::BadMessage, text))
                }
            };
            match taken {
                Ok(Taken::Message) => {}
                // A question can be long to answer, so others come first.
                Ok(Taken::Question) => break,
                Ok(Taken::Bye) => return Poll::Ready(End::Left),
                Ok(Taken::Late) => return Poll::Ready(End::Broken),
                Ok(Taken::Elsewhere { owner }) => {
                    return Poll::Ready(End::Elsewhere { hello, owner });
                }
                Err(fault) => return Poll::Ready(self.rejected(fault)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes one message.
    fn take(
        &mut self,
        text: &Utf8Bytes,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> Result<Taken, Fault> {
        let message: ToService = wire::read(text.as_str())?;
        let Some(joined) = &self.joined else {
            if !self.shared.access.borrow().knows(self.peer.token) {
                let text = "the access token was removed meanwhile";
                return Err(Fault::new(FaultCode::Unauthorized, text));
            }
            let ToService::Hello(hello) = message else {
                let text = "the first message of a connection is hello";
                return Err(Fault::new(FaultCode::BadState, text));
            };
            let hub = match self.shared.hubs.find(&self.peer, &hello.partition) {
                Ok(hub) => hub,
                Err(fault) => return self.lead_on(&hello, fault),
            };
            if hello.resume.is_some() && self.is_closed(cx) {
                return Ok(Taken::Late);
            }
            let (session, number) =
                hub.borrow_mut().hello(&self.peer, &hello, &self.outbox, now)?;
            self.lease = hub.borrow().lease(session);
            self.timer = self.lease.map(|lease| Box::pin(tokio::time::sleep(lease)));
            self.joined = Some(Joined { hub, session, number });
            return Ok(Taken::Message);
        };
        let taken = match message {
            ToService::Bye => Taken::Bye,
            ToService::Ask(_) => Taken::Question,
            _ => Taken::Message,
        };
        let mut hub = joined.hub.borrow_mut();
        if !hub.is_retired() {
            hub.message(joined.session, message, now)?;
        }
        Ok(taken)
    }

    /// Returns true if the other side has closed the connection: the client goes on elsewhere, and
    /// a hello that arrives late must not take the session from there.
    fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        match Pin::new(&mut self.stream).poll_next(cx) {
            Poll::Ready(Some(Ok(Message::Close(_)) | Err(_)) | None) => true,
            Poll::Ready(Some(Ok(message))) => {
                self.ahead.push_back(message);
                false
            }
            Poll::Pending => false,
        }
    }

    fn read_failed(&mut self, error: Error) -> End {
        let fault = match error {
            Error::ConnectionClosed | Error::AlreadyClosed => return End::Closed,
            Error::Io(_) | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return End::Broken;
            }
            Error::Capacity(_) => {
                let max = self.shared.config.limits.message_bytes_max;
                Fault::new(FaultCode::Limit, format!("a message has at most {max} bytes"))
            }
            other => Fault::new(FaultCode::BadMessage, format!("not a WebSocket frame: {other}")),
        };
        self.rejected(fault)
    }

    fn rejected(&mut self, fault: Fault) -> End {
        self.shared.metrics().rejected_frames.inc();
        End::Fault(fault)
    }

    /// The timer rang. The end, if that is what it means.
    fn time_is_up(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let Some(Joined { hub, session, .. }) = &self.joined else {
            let text = "nothing was said: the first message of a connection is hello";
            return Some(End::Fault(Fault::new(FaultCode::BadState, text)));
        };
        let left = hub.borrow_mut().check_lease(*session, Instant::now())?;
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(tokio::time::Instant::now() + left);
            // It has to be polled to be heard of.
            if timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        None
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut written = 0;
        loop {
            if !self.outbox.may_send(cx.waker()) {
                return Poll::Pending;
            }
            if self.flushing {
                let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
                flushed.map_err(|_| Broken)?;
                self.flushing = false;
                written += self.buffered;
                self.outbox.written(std::mem::take(&mut self.buffered));
            }
            if written > BATCH_BYTES {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.frames.is_empty() {
                self.outbox.take(&mut self.frames);
            }
            if self.frames.is_empty() {
                return Poll::Ready(Ok(()));
            }
            while self.buffered < BUFFERED_BYTES_MAX
                && let Some(frame) = self.frames.front_mut()
            {
                let Next { message, bytes, copied, last } = frame.next();
                Pin::new(&mut self.stream).start_send(message).map_err(|_| Broken)?;
                self.buffered += bytes;
                self.outbox.copied(copied);
                if last {
                    self.frames.pop_front();
                }
            }
            self.flushing = true;
        }
    }
}

/// The kind of a message that was taken.
enum Taken {
    Message,
    Question,
    Bye,
    /// A hello whose session belongs to another node, which the client does not reach, or to none.
    Elsewhere {
        owner: Option<String>,
    },
    /// A hello of a client that has closed the connection meanwhile.
    Late,
}

/// Nothing can be written any more.
struct Broken;

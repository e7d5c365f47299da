//! The driver: the task that carries out the commands of a session's machine.

mod alarm;
pub(crate) mod runtime;
pub(crate) mod clock;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::{Sink, Stream};
use navlocks_client::{Begin, Command, Machine, Moment};
use navlocks_wire as wire;
use tokio_tungstenite::tungstenite::{self, Message};

use self::alarm::Alarm;
use super::connect::Options;
use super::dial::{Dialed, Link, dial, open};
use super::errors::{ConnectError, broken};
use super::open::shut_down;
use super::secret;
use super::user_service;
use super::wakers::{Next, Session, Tasks};

/// A task that owns the connection of a session, and connects again.
pub(super) struct Driver {
    session: Arc<Session>,
    io: Io,
    alarm: Alarm,
    /// Why the last attempt failed, if the machine does not know.
    error: Option<ConnectError>,
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The driver's work in progress.
enum Io {
    Nothing,
    Dialing(Work<Result<Dialed, ConnectError>>),
    Dialed(Dialed),
    Opening(Work<Result<Link, ConnectError>>),
    Connected(Connected),
    Starting(Work<bool>),
}

struct Connected {
    link: Link,
    /// True if the answer to a ping of WebSocket may be in the link's buffer.
    ponging: bool,
    end: End,
}

/// The end of a connection.
#[derive(PartialEq)]
enum End {
    Open,
    /// It is closed behind the last message.
    Closing,
    /// It is read until the service closes it.
    Draining,
}

impl Driver {
    pub(super) fn new(options: &Options, begin: Begin) -> Self {
        let session = Arc::new(Session::new(options.clone(), begin));
        Self { session, io: Io::Nothing, alarm: Alarm::new(), error: None }
    }

    /// Connects, and sends the hello if `begin` says so.
    pub(super) async fn begin(options: &Options, begin: Begin) -> Result<Self, ConnectError> {
        let mut driver = Self::new(options, begin);
        driver.until(|machine| machine.has_begun() || machine.is_dialed()).await?;
        Ok(driver)
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Sends the hello that was held back, and receives the welcome.
    pub(super) async fn greet(&mut self) -> Result<(), ConnectError> {
        self.session.input(|state| state.machine.greet(clock::now()));
        self.until(Machine::has_begun).await
    }

    /// Carries the session until its users are gone.
    pub(super) async fn drive(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    async fn until(&mut self, is_there: fn(&Machine<Tasks>) -> bool) -> Result<(), ConnectError> {
        poll_fn(|cx| {
            let ended = self.poll(cx);
            if is_there(&self.session.lock().machine) {
                return Poll::Ready(Ok(()));
            }
            ended.map(|()| Err(self.take_error()))
        })
        .await
    }

    fn take_error(&mut self) -> ConnectError {
        let failure = self.session.lock().machine.failure().cloned();
        let known = failure.and_then(ConnectError::of_failure);
        known.or_else(|| self.error.take()).unwrap_or_else(shut_down)
    }

    fn input(&self, input: impl FnOnce(&mut Machine<Tasks>, Moment)) {
        self.session.input(|state| input(&mut state.machine, clock::now()));
    }

    /// Works until nothing is left to do before the next wakeup.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.session.check_deadlines();
            if self.carry_out_commands(cx) {
                return Poll::Ready(());
            }
            if self.poll_io(cx).is_ready() {
                continue;
            }
            // After reading: messages that arrived while this process was stopped count.
            let deadline = self.session.deadline();
            if clock::has_come(deadline) {
                self.input(Machine::elapsed);
                continue;
            }
            self.alarm.set(deadline, cx);
            return Poll::Pending;
        }
    }

    /// Carries out all commands. Returns true if the session has ended.
    fn carry_out_commands(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let can_send = match &mut self.io {
                Io::Connected(connected) => match connected.poll_send(cx) {
                    Poll::Ready(Ok(())) => true,
                    // A broken connection is found by reading.
                    Poll::Ready(Err(_)) | Poll::Pending => false,
                },
                _ => false,
            };
            match self.session.next_command(can_send, cx.waker()) {
                Next::Command(command) => self.carry_out(command),
                Next::Nothing => return false,
                Next::Ended => return true,
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        let session = self.session.clone();
        match command {
            Command::Dial(url) => {
                let work = async move { dial(&session.options, &url).await };
                self.io = Io::Dialing(Box::pin(work));
            }
            Command::Open => self.open(),
            Command::Send(text) => {
                if let Io::Connected(connected) = &mut self.io {
                    // An error is found by reading.
                    let _sent = connected.start_send(text);
                }
            }
            Command::Present(path) => session.show_presence(path),
            Command::Close => self.end_connection(End::Closing),
            Command::Drain => self.end_connection(End::Draining),
            Command::Drop => self.io = Io::Nothing,
            Command::StartService => {
                self.io = Io::Starting(Box::pin(async move {
                    let Options { addresses, restart, .. } = &session.options;
                    let (Some(socket), Some(start)) = (addresses.socket(), restart) else {
                        return false;
                    };
                    user_service::start(socket, start).await.is_ok()
                }));
            }
        }
    }

    /// Begins the handshake, with the messages that follow.
    fn open(&mut self) {
        match std::mem::replace(&mut self.io, Io::Nothing) {
            Io::Dialed(socket) => {
                let first = self.session.take_messages();
                self.io = Io::Opening(Box::pin(open(socket, first)));
            }
            other => self.io = other,
        }
    }

    fn end_connection(&mut self, end: End) {
        if let Io::Connected(connected) = &mut self.io {
            connected.end = end;
        }
    }

    /// Goes on with the work in progress. Returns ready when the machine has to look at its result.
    fn poll_io(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.io {
            Io::Nothing | Io::Dialed(_) => return Poll::Pending,
            Io::Dialing(work) => match std::task::ready!(work.as_mut().poll(cx)) {
                Ok(socket) => {
                    let takes_messages = socket.takes_messages();
                    self.io = Io::Dialed(socket);
                    let is_far = self.session.options.addresses.socket().is_none();
                    let secret = is_far.then(secret::draw).flatten();
                    self.input(|machine, now| machine.dialed(takes_messages, secret, now));
                }
                Err(error) => self.fail(error),
            },
            Io::Opening(work) => match std::task::ready!(work.as_mut().poll(cx)) {
                Ok(link) => {
                    let (ponging, end) = (false, End::Open);
                    self.io = Io::Connected(Connected { link, ponging, end });
                    self.input(Machine::opened);
                }
                Err(error) => self.fail(error),
            },
            Io::Starting(work) => {
                let listens = std::task::ready!(work.as_mut().poll(cx));
                self.io = Io::Nothing;
                self.input(|machine, now| machine.service_started(listens, now));
            }
            Io::Connected(connected) => {
                match std::task::ready!(connected.poll(&self.session, cx)) {
                    Ended::HasCommands => {}
                    Ended::Closed => {
                        self.error = Some(broken(tungstenite::Error::ConnectionClosed));
                        self.io = Io::Nothing;
                        self.input(Machine::closed);
                    }
                    Ended::Broken(error) => {
                        self.error = Some(error);
                        self.io = Io::Nothing;
                        self.input(Machine::broken);
                    }
                }
            }
        }
        Poll::Ready(())
    }

    /// Ends an attempt that failed before or in the handshake.
    fn fail(&mut self, error: ConnectError) {
        self.io = Io::Nothing;
        let failure = error.dial_failure();
        self.error = Some(error);
        self.input(|machine, now| machine.dial_failed(failure, now));
    }
}

/// Tells the users when the driver ends, however it does: also when a runtime drops its task. The
/// last messages are still written, so that the service need not wait for a lease.
impl Drop for Driver {
    fn drop(&mut self) {
        self.session.input(|state| state.machine.shut_down());
        let Io::Connected(connected) = &mut self.io else { return };
        let cx = &mut Context::from_waker(Waker::noop());
        for text in self.session.take_messages() {
            let _sent = connected.start_send(text);
        }
        let _as_much_as_fits = Pin::new(&mut connected.link).poll_flush(cx);
    }
}

/// Why reading stopped.
enum Ended {
    /// A message of the service has effects on the connection, or is to be answered.
    HasCommands,
    /// The service closed the connection.
    Closed,
    Broken(ConnectError),
}

impl Connected {
    /// Returns ready when a message can be sent.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), tungstenite::Error>> {
        Pin::new(&mut self.link).poll_ready(cx)
    }

    fn start_send(&mut self, text: String) -> Result<(), tungstenite::Error> {
        Pin::new(&mut self.link).start_send(Message::text(text))
    }

    /// Writes before reading: other clients may be blocked on these messages. Messages received
    /// before the end count.
    fn poll(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<Ended> {
        let link = Pin::new(&mut self.link);
        let written = match self.end {
            End::Open => link.poll_flush(cx).map(|flushed| flushed.err()),
            End::Closing => link
                .poll_close(cx)
                .map(|closed| Some(closed.err().unwrap_or(tungstenite::Error::ConnectionClosed))),
            End::Draining => Poll::Pending,
        };
        if let Poll::Ready(read) = self.poll_receive(session, cx) {
            return Poll::Ready(read);
        }
        match written {
            Poll::Ready(Some(error)) => Poll::Ready(Ended::Broken(broken(error))),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Receives all messages that have arrived.
    fn poll_receive(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            // Back-pressure: the buffer has no limit, and a service that does not read would fill
            // it.
            if self.ponging
                && let Err(error) = std::task::ready!(Pin::new(&mut self.link).poll_flush(cx))
            {
                return Poll::Ready(Ended::Broken(broken(error)));
            }
            self.ponging = false;
            let text = match std::task::ready!(Pin::new(&mut self.link).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ended::Closed),
                Some(Err(error)) => return Poll::Ready(Ended::Broken(broken(error))),
                Some(Ok(Message::Ping(_))) => {
                    self.ponging = true;
                    continue;
                }
                Some(Ok(_)) => continue,
            };
            if self.end == End::Draining {
                continue;
            }
            // A malformed message means that the peer does not speak the protocol.
            match wire::read(&text) {
                Ok(message) => {
                    if session.receive(message) {
                        return Poll::Ready(Ended::HasCommands);
                    }
                }
                Err(fault) => {
                    let error = ConnectError::Handshake(fault.to_string());
                    return Poll::Ready(Ended::Broken(error));
                }
            }
        }
    }
}

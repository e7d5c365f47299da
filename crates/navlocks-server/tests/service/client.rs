//! A client that says and hears raw text.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use navlocks_wire::{self as wire, Event, Granted, Over, Refused, ToClient, Welcome, Why};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// Something to read from and to write to.
pub(crate) trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One connection.
pub(crate) struct Client(pub(crate) WebSocket<Box<dyn Stream>>);

/// Far above what anything takes; a hang must not be silent.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

/// A handshake as a client should make it.
pub(crate) fn handshake() -> Request {
    let mut request = "ws://localhost/".into_client_request().expect("a request");
    let protocol = HeaderValue::from_static(wire::SUBPROTOCOL);
    request.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
    request
}

/// Returns the hello that goes on with a session.
pub(crate) fn resumption(welcome: &Welcome) -> String {
    let Welcome { session, secret, epoch, .. } = welcome;
    let resume = format!(r#""session":{session},"secret":"{secret}","epoch":{epoch}"#);
    format!(r#"{{"hello":{{"resume":{{{resume}}}}}}}"#)
}

pub(crate) fn unix_stream(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).expect("the service listens");
    stream.set_read_timeout(PATIENCE).expect("a time limit");
    stream
}

pub(crate) fn tcp_stream(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(PATIENCE).expect("a time limit");
    stream.set_nodelay(true).expect("no delay");
    stream
}

impl Client {
    /// A connection that has not said hello.
    pub(crate) fn silent(stream: impl Stream + 'static) -> Self {
        Self::speaking(stream, wire::SUBPROTOCOL)
    }

    /// The same, with the subprotocols that it offers.
    pub(crate) fn speaking(stream: impl Stream + 'static, subprotocols: &str) -> Self {
        let stream: Box<dyn Stream> = Box::new(stream);
        let mut request = handshake();
        let offered = HeaderValue::try_from(subprotocols).expect("subprotocols");
        request.headers_mut().insert("Sec-WebSocket-Protocol", offered);
        match tungstenite::client::client(request, stream) {
            Ok((socket, _)) => Self(socket),
            Err(error) => panic!("the handshake failed: {error}"),
        }
    }

    /// A connection that has said hello, over the Unix socket.
    pub(crate) fn unix(path: &Path) -> Self {
        let mut client = Self::silent(unix_stream(path));
        client.hello();
        client
    }

    /// The same, with its welcome.
    pub(crate) fn unix_welcome(path: &Path) -> (Self, Welcome) {
        let mut client = Self::silent(unix_stream(path));
        let welcome = client.hello();
        (client, welcome)
    }

    /// A connection that has said hello, over TCP.
    pub(crate) fn tcp(address: SocketAddr) -> (Self, Welcome) {
        let mut client = Self::silent(tcp_stream(address));
        let welcome = client.hello();
        (client, welcome)
    }

    /// A connection that says this hello, over TCP.
    pub(crate) fn tcp_hello(address: SocketAddr, hello: &str) -> Self {
        let mut client = Self::silent(tcp_stream(address));
        client.say(format!(r#"{{"hello":{hello}}}"#));
        client
    }

    /// A connection that goes on with a session, over TCP, and has said hello.
    pub(crate) fn resume(address: SocketAddr, welcome: &Welcome) -> Self {
        let mut client = Self::silent(tcp_stream(address));
        client.say(resumption(welcome));
        client
    }

    pub(crate) fn hello(&mut self) -> Welcome {
        self.say(r#"{"hello":{}}"#);
        self.welcome()
    }

    pub(crate) fn welcome(&mut self) -> Welcome {
        match self.hear() {
            ToClient::Welcome(welcome) => welcome,
            other => panic!("not a welcome: {other:?}"),
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).expect("the service listens");
    }

    /// Says several messages in one write.
    pub(crate) fn say_all<T: Into<String>>(&mut self, texts: impl IntoIterator<Item = T>) {
        for text in texts {
            self.0.write(Message::text(text.into())).expect("the service listens");
        }
        self.0.flush().expect("the service listens");
    }

    /// The next message.
    pub(crate) fn hear(&mut self) -> ToClient {
        let text = self.hear_text();
        wire::read(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
    }

    /// The next message as it came.
    pub(crate) fn hear_text(&mut self) -> String {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return text.to_string(),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("the service said nothing: {other:?}"),
            }
        }
    }

    /// Waits until all that was said so far is taken.
    pub(crate) fn settle(&mut self) {
        self.say(r#"{"ping":77}"#);
        assert_eq!(self.hear(), ToClient::Pong(77));
    }

    /// Hears of everything from now on.
    pub(crate) fn listen(&mut self) {
        self.say(r#"{"watch":{"events":0}}"#);
        assert_eq!(self.hear(), ToClient::Event(Event::Watching(0)));
    }

    /// Requests an exclusive lock that is free.
    pub(crate) fn hold(&mut self, id: u64, name: &str) -> u64 {
        self.say(format!(r#"{{"request":{{"id":{id},"names":["{name}"]}}}}"#));
        self.granted(id)
    }

    /// Hears that a request is granted. Returns its token.
    #[track_caller]
    pub(crate) fn granted(&mut self, id: u64) -> u64 {
        match self.hear() {
            ToClient::Granted(Granted { id: granted, token, .. }) if granted == id => token,
            other => panic!("request {id} is not granted: {other:?}"),
        }
    }

    /// Leaves, and returns when the service has ended the session.
    pub(crate) fn leave(mut self) {
        self.say(r#""bye""#);
        while self.0.read().is_ok() {}
    }

    /// A connection over the Unix socket that claims a session of an earlier service, and has sent
    /// these requests.
    pub(crate) fn claim(path: &Path, welcome: &Welcome, requests: &[&str]) -> Self {
        let mut client = Self::silent(unix_stream(path));
        client.claims(welcome, requests);
        client
    }

    /// Names all that a resumed session still has: client 0 and these requests.
    pub(crate) fn name_all(&mut self, requests: &[&str]) {
        let requests = requests.iter().map(|request| format!(r#"{{"request":{{{request}}}}}"#));
        let first = std::iter::once(r#"{"open":{"client":0}}"#.to_owned());
        self.say_all(first.chain(requests).chain([r#""claimed""#.into()]));
    }

    /// Says hello with a session of an earlier service, and claims these requests.
    pub(crate) fn claims(&mut self, earlier: &Welcome, requests: &[&str]) {
        self.say(resumption(earlier));
        let welcome = self.welcome();
        assert!(welcome.resumed && welcome.epoch > earlier.epoch, "{welcome:?}");
        self.name_all(requests);
    }

    /// Hears that a request is refused. Returns its number, and the refusal.
    #[track_caller]
    pub(crate) fn refused(&mut self) -> (u64, Refused) {
        match self.hear() {
            ToClient::Over(Over { id, why: Why::Refused(refused) }) => (id, refused),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Why the service ends the connection, and the code of its close frame.
    pub(crate) fn error(&mut self) -> (wire::FaultCode, u16) {
        let fault = match self.hear() {
            ToClient::Error(fault) => fault,
            other => panic!("not an error: {other:?}"),
        };
        match self.0.read() {
            Ok(Message::Close(Some(frame))) => (fault.code, frame.code.into()),
            other => panic!("no close frame: {other:?}"),
        }
    }
}

/// The handshake of a connection whose bytes are written by hand.
pub(crate) const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: navlocks.2\r\n\r\n";

/// A frame whose mask changes nothing.
pub(crate) fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    frame
}

//! The scripted peer: the other side of a connection.

mod welcomes;

use std::net::SocketAddr;
use std::path::PathBuf;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use navlocks_wire::{
    self as wire, Granted, Hello, Request, SUBPROTOCOL, ToClient, ToService, Welcome,
};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Handshake, Response,
};
use tokio_tungstenite::tungstenite::http::header::{HeaderMap, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};
pub(crate) use welcomes::{clustered, lasting, leased, leased_for, welcome};

/// Any of the sockets.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// The listener at which a client connects.
pub(crate) struct Peer {
    listener: Listener,
    _folder: Option<TempDir>,
}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
    /// No listener; connections are refused.
    Away(Place),
}

#[derive(Clone)]
enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// One connection, after the handshake.
pub(crate) struct Talk {
    socket: WebSocketStream<Box<dyn Socket>>,
    pub(crate) headers: HeaderMap,
    pub(crate) pings: Pings,
}

/// The handling of the protocol's pings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pings {
    /// Pings are answered while the peer receives.
    Answered,
    Ignored,
    /// Pings are received like every other message.
    Heard,
}

impl Peer {
    pub(crate) async fn unix() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        Self { listener: Listener::Unix(listener, path), _folder: Some(folder) }
    }

    pub(crate) async fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        Self { listener: Listener::Tcp(listener), _folder: None }
    }

    fn place(&self) -> Place {
        match &self.listener {
            Listener::Unix(_, path) => Place::Unix(path.clone()),
            Listener::Tcp(listener) => Place::Tcp(listener.local_addr().expect("an address")),
            Listener::Away(place) => place.clone(),
        }
    }

    pub(crate) fn url(&self) -> String {
        match self.place() {
            Place::Unix(path) => format!("unix:{}", path.display()),
            Place::Tcp(address) => format!("ws://{address}"),
        }
    }

    /// Stops listening: the system refuses connections.
    pub(crate) fn goes_away(&mut self) {
        self.listener = Listener::Away(self.place());
    }

    /// Listens again in the same place.
    pub(crate) async fn comes_back(&mut self) {
        self.listener = match self.place() {
            Place::Unix(path) => {
                std::fs::remove_file(&path).expect("the socket of before");
                Listener::Unix(UnixListener::bind(&path).expect("a socket"), path)
            }
            Place::Tcp(address) => {
                Listener::Tcp(TcpListener::bind(address).await.expect("the same address"))
            }
        };
    }

    /// Accepts a connection, and sends nothing.
    pub(crate) async fn socket(&self) -> Box<dyn Socket> {
        match &self.listener {
            Listener::Unix(listener, _) => Box::new(listener.accept().await.expect("a client").0),
            Listener::Tcp(listener) => {
                let stream = listener.accept().await.expect("a client").0;
                stream.set_nodelay(true).expect("no delay");
                Box::new(stream)
            }
            Listener::Away(_) => panic!("no process listens"),
        }
    }

    /// Accepts a connection and answers the handshake.
    pub(crate) async fn accept(&self) -> Talk {
        self.accept_with(Some(SUBPROTOCOL)).await
    }

    /// Accepts a connection and answers the handshake with this subprotocol.
    pub(crate) async fn accept_with(&self, protocol: Option<&'static str>) -> Talk {
        let mut headers = HeaderMap::new();
        #[allow(clippy::result_large_err, reason = "as tungstenite has it")]
        let answer = |request: &Handshake, mut response: Response| {
            headers = request.headers().clone();
            if let Some(protocol) = protocol {
                let protocol = HeaderValue::from_static(protocol);
                response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
            }
            Ok(response)
        };
        let socket = self.socket().await;
        let socket =
            tokio_tungstenite::accept_hdr_async(socket, answer).await.expect("a handshake");
        Talk { socket, headers, pings: Pings::Answered }
    }

    /// Accepts a connection whose first messages may come with the handshake, up to its hello.
    pub(crate) async fn greeted_early(&self) -> (Talk, Hello) {
        let mut socket = self.socket().await;
        let head = read_head(&mut *socket).await;
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
        let accept = derive_accept_key(key.expect("a key").as_bytes());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        );
        socket.write_all(answer.as_bytes()).await.expect("the client listens");
        let socket = WebSocketStream::from_raw_socket(socket, Role::Server, None).await;
        let mut talk = Talk { socket, headers: HeaderMap::new(), pings: Pings::Answered };
        let hello = talk.hear_hello().await;
        (talk, hello)
    }

    /// Accepts a connection and answers the handshake with a refusal.
    pub(crate) async fn refuses(&self, status: StatusCode, sentence: &str) {
        #[allow(clippy::result_large_err, reason = "as tungstenite has it")]
        let answer = |_: &Handshake, _: Response| {
            let mut response = ErrorResponse::new(Some(sentence.to_owned()));
            *response.status_mut() = status;
            Err(response)
        };
        let refused = tokio_tungstenite::accept_hdr_async(self.socket().await, answer).await;
        assert!(matches!(refused, Err(Error::Http(_))), "it was not refused");
    }

    /// Accepts a connection up to its hello.
    pub(crate) async fn greeted(&self) -> (Talk, Hello) {
        let mut talk = self.accept().await;
        let hello = talk.hear_hello().await;
        (talk, hello)
    }

    /// Accepts a connection, receives its hello and sends the welcome.
    pub(crate) async fn welcomes(&self, welcome: Welcome) -> (Talk, Hello) {
        let (mut talk, hello) = self.greeted().await;
        talk.says(ToClient::Welcome(welcome)).await;
        (talk, hello)
    }

    /// Resumes the session of a client that requests it, and receives its whole claim.
    pub(crate) async fn resumes(&self, welcome: Welcome) -> (Talk, Claim) {
        let (mut talk, wire::Resume { session, secret, .. }) = self.wants_claim(welcome).await;
        let (mut clients, mut requests) = (Vec::new(), Vec::new());
        loop {
            match talk.hear().await {
                ToService::Open(open) => clients.push(open),
                ToService::Request(request) => requests.push(request),
                ToService::Claimed => break,
                ToService::Present => {}
                other => panic!("{other:?} is no part of a claim"),
            }
        }
        let alive = requests.iter().map(|request| request.id).collect();
        (talk, Claim { session, secret, clients, alive, requests })
    }

    /// Resumes the session of a client that requests it, and receives no claim yet.
    pub(crate) async fn wants_claim(&self, welcome: Welcome) -> (Talk, wire::Resume) {
        let (talk, hello) = self.welcomes(Welcome { resumed: true, ..welcome }).await;
        (talk, hello.resume.expect("the client wants to go on"))
    }

    /// Begins a new session with a client that does not resume one.
    pub(crate) async fn begins(&self, welcome: Welcome) -> Talk {
        let (talk, hello) = self.welcomes(welcome).await;
        assert_eq!(hello.resume, None);
        talk
    }
}

/// The claim of a session that a client resumes.
pub(crate) struct Claim {
    pub(crate) session: u32,
    pub(crate) secret: String,
    pub(crate) clients: Vec<wire::Open>,
    /// The numbers of its requests.
    pub(crate) alive: Vec<u64>,
    pub(crate) requests: Vec<Request>,
}

impl Talk {
    /// Returns the next message. Pings are answered meanwhile.
    pub(crate) async fn hear(&mut self) -> ToService {
        match self.hear_or_end().await {
            Some(message) => message,
            None => panic!("the client is gone"),
        }
    }

    /// Returns the next message, if there is one before the end.
    pub(crate) async fn hear_or_end(&mut self) -> Option<ToService> {
        loop {
            match self.next().await? {
                Message::Text(text) => {
                    let mut message = wire::read(&text).expect("a message");
                    // Ages differ each time.
                    if let ToService::Request(request) = &mut message {
                        request.ms = None;
                    }
                    return Some(message);
                }
                Message::Pong(_) => {}
                other => panic!("the client does not say {other:?}"),
            }
        }
    }

    /// Returns the next frame that is neither an answered ping nor the end.
    async fn next(&mut self) -> Option<Message> {
        loop {
            let message = match self.socket.next().await {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(message)) => message,
            };
            let ping = match &message {
                Message::Text(text) if self.pings != Pings::Heard => wire::read(text).ok(),
                _ => None,
            };
            let Some(ToService::Ping(number)) = ping else { return Some(message) };
            if self.pings == Pings::Answered {
                // If the client is gone by now, the next read reports it.
                let _gone = self.say(Message::text(wire::write(&ToClient::Pong(number)))).await;
            }
        }
    }

    #[track_caller]
    pub(crate) fn hears(&mut self, expected: ToService) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let heard = self.hear().await;
            assert_eq!(heard, expected, "at {place}");
        }
    }

    async fn hear_hello(&mut self) -> Hello {
        match self.hear().await {
            ToService::Hello(hello) => hello,
            other => panic!("not a hello: {other:?}"),
        }
    }

    /// Returns the next message, a request.
    pub(crate) async fn hear_request(&mut self) -> Request {
        match self.hear().await {
            ToService::Request(request) => request,
            other => panic!("not a request: {other:?}"),
        }
    }

    /// Checks that the connection ends without another message.
    pub(crate) async fn ends(mut self) {
        let more = self.hear_or_end().await;
        assert_eq!(more, None);
    }

    /// Checks that the client says goodbye and closes with a close frame.
    pub(crate) async fn sees_leave(mut self) {
        self.hears(ToService::Bye).await;
        match self.socket.next().await {
            Some(Ok(Message::Close(_))) => {}
            other => panic!("not closed: {other:?}"),
        }
    }

    /// Checks that the client says goodbye, closes as a node does, and sees the client leave.
    pub(crate) async fn lets_leave(mut self) {
        self.hears(ToService::Bye).await;
        self.socket.close(None).await.expect("the client waits for this");
        let more = self.socket.next().await;
        assert!(!matches!(more, Some(Ok(Message::Text(_)))), "{more:?}");
    }

    /// Waits until the client has handled all messages sent so far.
    pub(crate) async fn settles(&mut self) {
        // A ping of WebSocket itself, which every client answers in order.
        self.socket.send(Message::Ping("settle".into())).await.expect("the client listens");
        match self.next().await {
            Some(Message::Pong(_)) => {}
            other => panic!("not a pong: {other:?}"),
        }
    }

    pub(crate) async fn says(&mut self, message: ToClient) {
        self.says_text(wire::write(&message)).await;
    }

    pub(crate) async fn says_text(&mut self, text: impl Into<String>) {
        self.say(Message::text(text.into())).await.expect("the client listens");
    }

    pub(crate) async fn say(&mut self, message: Message) -> Result<(), Error> {
        self.socket.send(message).await
    }

    /// Receives a claim of exactly these requests, and its end.
    #[track_caller]
    pub(crate) fn hears_claim(&mut self, expected: &[Request]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let mut heard = self.hear().await;
            while let ToService::Open(_) = heard {
                heard = self.hear().await;
            }
            for request in expected {
                assert_eq!(heard, ToService::Request(request.clone()), "at {place}");
                heard = self.hear().await;
            }
            assert_eq!(heard, ToService::Claimed, "at {place}");
        }
    }

    pub(crate) async fn grants(&mut self, id: u64, token: u64) {
        self.says(ToClient::Granted(Granted::new(id, token))).await;
    }

    pub(crate) async fn fails(&mut self, code: wire::FaultCode, sentence: &str) {
        self.says(ToClient::Error(wire::Fault::new(code, sentence))).await;
    }

    /// Sends the client to another node, or to none.
    pub(crate) async fn moves(&mut self, to: Option<&Peer>) {
        let fault = wire::Fault::moved(to.map(Peer::url));
        self.says(ToClient::Error(fault)).await;
    }

    /// Sends bytes that no WebSocket library would.
    pub(crate) async fn says_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).await.expect("the client listens");
    }

    /// Sends pings of WebSocket and reads nothing, until the client reads nothing either.
    pub(crate) async fn pings_until_blocked(&mut self) {
        let mut ping = vec![0x89, 125];
        ping.resize(127, b'x');
        let pings = ping.repeat(500);
        let stream = self.socket.get_mut();
        let (mut sent, mut blocked) = (0, 0);
        // Each turn lets the client run; a client that still reads makes space within a few.
        while blocked < 10_000 {
            match stream.write(&pings[sent % pings.len()..]).now_or_never() {
                Some(written) => {
                    sent += written.expect("the client listens");
                    blocked = 0;
                }
                None => blocked += 1,
            }
            assert!(sent < 64 << 20, "the client takes pings without end");
            tokio::task::yield_now().await;
        }
    }

    /// Ends the connection as a killed process or a machine without power does.
    pub(crate) fn breaks(self) {
        drop(self.socket);
    }

    /// Ends the connection with a close frame.
    pub(crate) async fn closes(mut self) {
        self.socket.close(None).await.expect("the client listens");
    }
}

/// Reads the head of an HTTP request, and sends no answer.
pub(crate) async fn read_head(socket: &mut dyn Socket) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.expect("more of the head"));
    }
    String::from_utf8(head).expect("text")
}

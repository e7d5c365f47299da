//! A gateway: serves the page on a loopback port of its own, and carries its connections to the
//! Unix socket of a service. It ends with the program that opened it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use navlocks_server::inspect::SUBPROTOCOL;
use navlocks_server::web::{Refusal, admit, is_same_origin, switch_protocols};
use navlocks_wire as wire;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::LocalSet;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::files;

/// The longest answer of the service to a handshake.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// How long the service may take to answer a handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A page on a loopback port, in front of the Unix socket of a service.
#[derive(Debug)]
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    doors: Rc<Doors>,
}

#[derive(Debug)]
struct Doors {
    socket: PathBuf,
    acts: bool,
    /// The token in the address that the user opens; none once it was used.
    once: RefCell<Option<String>>,
    /// The key that the page gets for it, and shows whenever it connects.
    key: String,
}

type Answer = Response<Full<Bytes>>;

impl Gateway {
    /// Opens a loopback port, any free one if it is 0.
    ///
    /// # Errors
    ///
    /// The port is taken, or the system has no randomness to give.
    pub async fn bind(socket: &Path, port: u16, acts: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (once, key) = (RefCell::new(Some(random()?)), random()?);
        let doors = Rc::new(Doors { socket: socket.to_owned(), acts, once, key });
        Ok(Self { listener, address, doors })
    }

    /// Returns the address to open in a browser, with a token that works once. A browser sends no
    /// fragment, so the token is in no log.
    pub fn url(&self) -> String {
        let once = self.doors.once.borrow().clone().unwrap_or_default();
        format!("http://{}/#token={once}", self.address)
    }

    /// Serves until `until` is ready.
    ///
    /// # Errors
    ///
    /// No connection can be taken any more.
    pub async fn run(self, until: impl Future<Output = ()>) -> io::Result<()> {
        let Self { listener, doors, .. } = self;
        let tasks = LocalSet::new();
        let serve = async {
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::task::spawn_local(serve(stream, doors.clone()));
            }
        };
        tokio::select! {
            failed = tasks.run_until(serve) => failed,
            () = until => Ok(()),
        }
    }
}

/// Returns 128 random bits as text.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

async fn serve(stream: TcpStream, doors: Rc<Doors>) {
    let _slower = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let doors = doors.clone();
        async move { Ok::<_, Infallible>(doors.answer(request).await) }
    });
    let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let _broken = http.with_upgrades().await;
}

impl Doors {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let is_head = request.method() == Method::HEAD;
        if request.method() != Method::GET && !is_head {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served here");
        }
        let headers = request.headers();
        if let Err(Refusal { status, sentence }) = admit(headers, &[]) {
            return refuse(status, sentence);
        }
        if request.uri().query().is_some() {
            return refuse(StatusCode::BAD_REQUEST, "nothing is read from a query string");
        }
        match request.uri().path() {
            // A HEAD would use the token up, and has no body for the key.
            "/dashboard/key" | "/dashboard" if is_head => {
                refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here")
            }
            "/dashboard/key" => self.trade(headers),
            "/dashboard" => self.carry(request).await,
            path => match files::page(path) {
                Some(page) => {
                    let mut answer = Response::new(Full::from(page.text));
                    for &(name, value) in page.headers {
                        answer.headers_mut().insert(name, HeaderValue::from_static(value));
                    }
                    answer
                }
                None => refuse(StatusCode::NOT_FOUND, "there is no such page"),
            },
        }
    }

    /// Gives the page its key for the token of the address, once.
    fn trade(&self, headers: &HeaderMap) -> Answer {
        let line = headers.get(header::AUTHORIZATION).and_then(|line| line.to_str().ok());
        let shown = line.and_then(|line| line.strip_prefix("Bearer ")).unwrap_or_default();
        let mut once = self.once.borrow_mut();
        let right = once.as_ref().is_some_and(|once| is_equal(once, shown));
        if !right {
            let sentence = "the address was opened before: run navlocks dashboard again";
            return refuse(StatusCode::UNAUTHORIZED, sentence);
        }
        *once = None;
        text(StatusCode::OK, self.key.clone())
    }

    /// Connects a page with the service.
    async fn carry(&self, mut request: Request<Incoming>) -> Answer {
        let headers = request.headers();
        let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
        let words = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
        let token =
            words.map(str::trim).find_map(|word| word.strip_prefix(wire::TOKEN_SUBPROTOCOL));
        let shown = token.and_then(|token| URL_SAFE_NO_PAD.decode(token).ok());
        let shown = shown.and_then(|token| String::from_utf8(token).ok()).unwrap_or_default();
        if !is_equal(&self.key, &shown) || !is_same_origin(headers, &[], false) {
            return refuse(StatusCode::UNAUTHORIZED, "the page has no key: open it again");
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
        let Some(key) = key.map(str::to_owned) else {
            return refuse(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket");
        };
        let dialled = tokio::time::timeout(HANDSHAKE_MAX, self.dial(&key)).await;
        let Ok(Ok((mut service, early))) = dialled else {
            return refuse(StatusCode::BAD_GATEWAY, "the service does not answer");
        };
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::task::spawn_local(async move {
            let Ok(upgraded) = upgrade.await else { return };
            let mut page = TokioIo::new(upgraded);
            if page.write_all(&early).await.is_ok() {
                let _broken = tokio::io::copy_bidirectional(&mut page, &mut service).await;
            }
        });
        switch_protocols(&derive_accept_key(key.as_bytes()), SUBPROTOCOL)
    }

    /// Opens a dashboard's connection at the service. Returns it, and what it has said already.
    async fn dial(&self, key: &str) -> io::Result<(UnixStream, Vec<u8>)> {
        let mut service = UnixStream::connect(&self.socket).await?;
        let path = if self.acts { "/dashboard/act" } else { "/dashboard" };
        let hello = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        );
        service.write_all(hello.as_bytes()).await?;
        let mut head = Vec::new();
        loop {
            if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                let early = head.split_off(end + 4);
                let switched = head.starts_with(b"HTTP/1.1 101");
                let old = "the service is older than this program, and has no dashboard";
                return if switched { Ok((service, early)) } else { Err(io::Error::other(old)) };
            }
            if head.len() > HEAD_BYTES_MAX || service.read_buf(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn is_equal(secret: &str, shown: &str) -> bool {
    secret.as_bytes().ct_eq(shown.as_bytes()).into()
}

fn refuse(status: StatusCode, sentence: &str) -> Answer {
    text(status, format!("{sentence}\n"))
}

fn text(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

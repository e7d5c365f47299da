//! Dialling a service: the socket, TLS, and the WebSocket handshake.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, handshake::client::Request};

use super::connect::Options;
use super::errors::ConnectError;
use super::zero_rtt;
use navlocks_client::{Url, code_of_status};
use navlocks_wire::{Fault, OFFERED_SUBPROTOCOLS, SUBPROTOCOLS};

/// Any of the sockets.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

pub(crate) type Link = WebSocketStream<Box<dyn Socket>>;

/// The pause before a full socket is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// A socket, and what is to be said over it first.
pub(crate) struct Dialed {
    /// None for the short handshake of a Unix socket.
    request: Option<Request>,
    socket: Box<dyn Socket>,
}

impl Dialed {
    /// Returns true if messages can be sent with the handshake. The services of this project accept
    /// that; other servers of WebSocket may not.
    pub(super) fn takes_messages(&self) -> bool {
        self.request.is_none()
    }
}

/// Connects to this address, up to the socket.
pub(super) async fn dial(options: &Options, url: &Url) -> Result<Dialed, ConnectError> {
    let request = match (url, &options.token) {
        (Url::Unix(_), None) => None,
        _ => Some(request(options, url)?),
    };
    Ok(Dialed { request, socket: socket(options, url).await? })
}

/// Opens a WebSocket. Sends these messages with the handshake, if the socket takes them.
pub(super) async fn open(dialed: Dialed, first: Vec<String>) -> Result<Link, ConnectError> {
    let Dialed { request, socket } = dialed;
    // Messages are short and every read clears the buffer first, so a small one is faster.
    let config = WebSocketConfig::default().read_buffer_size(4 * 1024).write_buffer_size(16 * 1024);
    let Some(request) = request else { return zero_rtt::open(socket, first, config).await };
    let opened = tokio_tungstenite::client_async_with_config(request, socket, Some(config)).await;
    let (link, response) = opened.map_err(|error| match error {
        tungstenite::Error::Http(response) => {
            refused(response.status(), response.body().as_deref().unwrap_or_default())
        }
        tungstenite::Error::Io(error) => ConnectError::Unreachable(error),
        // A service that is killed in the middle of a handshake may be back the next moment.
        tungstenite::Error::Protocol(ProtocolError::HandshakeIncomplete) => {
            ConnectError::Unreachable(io::ErrorKind::UnexpectedEof.into())
        }
        other => ConnectError::Handshake(other.to_string()),
    })?;
    match response.headers().get(SEC_WEBSOCKET_PROTOCOL) {
        Some(protocol) if SUBPROTOCOLS.iter().any(|known| protocol == known) => Ok(link),
        _ => Err(other_protocol()),
    }
}

pub(super) fn other_protocol() -> ConnectError {
    ConnectError::Handshake(format!("it does not speak {OFFERED_SUBPROTOCOLS}"))
}

async fn socket(options: &Options, url: &Url) -> Result<Box<dyn Socket>, ConnectError> {
    let unreachable = ConnectError::Unreachable;
    Ok(match url {
        Url::Unix(path) => Box::new(unix(path).await.map_err(unreachable)?),
        Url::Web { host, port, tls, .. } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
            stream.set_nodelay(true).map_err(unreachable)?;
            if *tls {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| ConnectError::BadUrl(format!("'{host}' is no host name")))?;
                let tls = TlsConnector::from(Arc::new(tls_config(&options.roots)?));
                Box::new(tls.connect(name, stream).await.map_err(tls_failed)?)
            } else {
                Box::new(stream)
            }
        }
    })
}

/// Returns the error of a failed TLS connection, with advice where it is known.
fn tls_failed(error: io::Error) -> ConnectError {
    use tokio_rustls::rustls::{CertificateError, Error};
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let Some(Error::InvalidCertificate(problem)) = tls else {
        return ConnectError::Unreachable(error);
    };
    let advice = match problem {
        CertificateError::UnknownIssuer => {
            "its certificate is of an authority that is not trusted here: name that authority's certificate"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: the service needs a new one"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name: use the name that is in it"
        }
        // The usual self-signed certificate is marked as an authority's.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is marked as an authority's: make it with basicConstraints=CA:FALSE"
        }
        _ => "its certificate is not valid",
    };
    ConnectError::Handshake(format!("{advice} ({error})"))
}

/// Connects to a Unix socket. A service that hangs accepts nothing, and its backlog may be full.
async fn unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL_PAUSE).await,
            connected => return connected,
        }
    }
}

/// Trusts the given certificates; without any, those of the system.
fn tls_config(roots: &[CertificateDer<'static>]) -> Result<ClientConfig, ConnectError> {
    let mut store = RootCertStore::empty();
    if roots.is_empty() {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        store.add_parsable_certificates(roots.iter().cloned());
    }
    if store.is_empty() {
        let problem =
            "no certificate to trust was found: name the authority's with root_certificates()";
        return Err(ConnectError::Handshake(problem.into()));
    }
    Ok(ClientConfig::builder().with_root_certificates(store).with_no_client_auth())
}

fn request(options: &Options, url: &Url) -> Result<Request, ConnectError> {
    let uri = match url {
        // Over a Unix socket there is no host; the handshake wants one all the same.
        Url::Unix(_) => "ws://localhost/".into_client_request(),
        Url::Web { text, .. } => text.into_client_request(),
    };
    let mut request = uri.map_err(|error| ConnectError::BadUrl(error.to_string()))?;
    let headers = request.headers_mut();
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(OFFERED_SUBPROTOCOLS));
    if let Some(token) = &options.token {
        let mut bearer =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| ConnectError::BadToken)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}

/// Returns the error of a service that answers the handshake with another status.
pub(super) fn refused(status: StatusCode, body: &[u8]) -> ConnectError {
    let sentence = String::from_utf8_lossy(body).trim().to_owned();
    let code = code_of_status(status.as_u16(), &sentence);
    let message =
        if sentence.is_empty() { format!("the service answered {status}") } else { sentence };
    ConnectError::Refused(Fault::new(code, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_client::Addresses;

    #[test]
    fn request_for_a_websocket_takes_every_address() {
        let list = "ws://a-b.example:7400,[::1]:1,127.0.0.1,a/Locks;x=1?to=%20b&c=[d]";
        let options = Options::to(Addresses::parse(list).unwrap());
        for url in options.addresses.list() {
            assert_eq!(request(&options, url).unwrap().uri().to_string(), url.to_string());
        }
    }
}

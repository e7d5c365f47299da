//! How a node of a cluster connects to another one.

use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navlocks_wire::SUBPROTOCOL;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::config::explain;

/// The header with the secret of a cluster, by which nodes know each other.
pub(crate) const SECRET: HeaderName = HeaderName::from_static("navlocks-cluster");
/// The header with the party of the client whose messages are carried.
pub(crate) const PARTY: HeaderName = HeaderName::from_static("navlocks-party");
/// The header with the name of the process that answers.
pub(crate) const NODE: HeaderName = HeaderName::from_static("navlocks-node");

/// For a node to take a connection.
const DIAL_MAX: Duration = Duration::from_secs(5);

/// A socket to another node.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket for S {}

/// A WebSocket to another node.
pub(crate) type Link = WebSocketStream<Box<dyn Socket>>;

/// Connects to other nodes.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    /// A file with certificates to trust instead of the system's.
    roots: Option<PathBuf>,
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Dialer {
    pub(crate) fn new(roots: Option<PathBuf>) -> Self {
        Self { roots, tls: OnceCell::new() }
    }

    /// Opens a WebSocket with these headers. Returns it, and the name of the process that answers.
    ///
    /// # Errors
    ///
    /// The node cannot be reached, or is none.
    pub(crate) async fn open(
        &self,
        address: &str,
        headers: &[(HeaderName, String)],
        config: WebSocketConfig,
    ) -> io::Result<(Link, String)> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        timeout(DIAL_MAX, self.open_at(address, headers, config)).await.map_err(late)?
    }

    async fn open_at(
        &self,
        address: &str,
        headers: &[(HeaderName, String)],
        config: WebSocketConfig,
    ) -> io::Result<(Link, String)> {
        let wrong = |why: &str| {
            let text = format!("'{address}' is no address of a node: {why}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let uri: Uri = address.parse().map_err(|_| wrong("it cannot be read"))?;
        let is_encrypted = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return Err(wrong("it begins neither with ws:// nor with wss://")),
        };
        let host = uri.host().ok_or_else(|| wrong("it has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        let socket: Box<dyn Socket> = if is_encrypted {
            let name = ServerName::try_from(host).map_err(|_| wrong("its host is no name"))?;
            Box::new(TlsConnector::from(self.tls()?).connect(name, stream).await?)
        } else {
            Box::new(stream)
        };
        let request = uri.into_client_request().map_err(|error| wrong(&error.to_string()));
        let mut request = request?;
        // Messages pass unread, so both nodes speak the version of the client.
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        for (name, value) in headers {
            let value = HeaderValue::try_from(value).map_err(io::Error::other)?;
            request.headers_mut().insert(name.clone(), value);
        }
        let opened =
            tokio_tungstenite::client_async_with_config(request, socket, Some(config)).await;
        let (link, answer) = opened.map_err(io::Error::other)?;
        let name = answer.headers().get(NODE).and_then(|name| name.to_str().ok());
        Ok((link, name.unwrap_or_default().to_owned()))
    }

    fn tls(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(config.clone());
        }
        let mut store = RootCertStore::empty();
        match &self.roots {
            Some(path) => {
                let bad = |error| explain(io::Error::other(format!("{error}")), "cannot use", path);
                let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
                let found: Vec<_> = found.map_err(bad)?;
                store.add_parsable_certificates(found);
            }
            None => {
                let system = rustls_native_certs::load_native_certs().certs;
                store.add_parsable_certificates(system);
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(self.tls.get_or_init(|| Arc::new(config)).clone())
    }
}

//! Certificates: connections over TLS, and certificates that are renewed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use navlocks_server::TlsFiles;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_tungstenite::tungstenite;

use super::{is_free, with_tokens};
use crate::client::{Client, Stream, handshake, tcp_stream};
use crate::running::{Folder, Running};

/// A connection by TLS of a client that trusts these certificates.
fn tls_client(address: SocketAddr, roots: &RootCertStore) -> Option<Client> {
    let config = ClientConfig::builder_with_provider(Arc::new(
        tokio_rustls::rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .expect("versions")
    .with_root_certificates(roots.clone())
    .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream: Box<dyn Stream> = Box::new(StreamOwned::new(tls, tcp_stream(address)));
    let mut request = handshake();
    let token = "Bearer 0123456789abcdef-b".parse().expect("a header");
    request.headers_mut().insert("Authorization", token);
    tungstenite::client::client(request, stream).ok().map(|(socket, _)| Client(socket))
}

/// Certificates of the tests, which a service reads from a folder of its own.
struct Certificates {
    folder: Folder,
}

impl Certificates {
    fn source(name: &str, kind: &str) -> PathBuf {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/tls");
        files.join(format!("{name}.{kind}.pem"))
    }

    /// The trust of a client that knows these certificates.
    fn roots(names: &[&str]) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for name in names {
            let file = Self::source(name, "cert");
            roots.add(CertificateDer::from_pem_file(file).expect("a certificate")).expect("a root");
        }
        roots
    }

    fn files(&self) -> TlsFiles {
        let (certificate, key) = (self.folder.path().join("cert"), self.folder.path().join("key"));
        TlsFiles { certificate, key }
    }

    fn install(&self, name: &str) {
        let TlsFiles { certificate, key } = self.files();
        std::fs::copy(Self::source(name, "cert"), certificate).expect("a file");
        std::fs::copy(Self::source(name, "key"), key).expect("a file");
    }

    /// A service with the first certificate, which looks for others all the time.
    fn serve() -> (Self, Running) {
        let certificates = Self { folder: Folder::new() };
        certificates.install("localhost");
        let service = Running::with(|config| {
            with_tokens(config);
            config.tls = Some(certificates.files());
            config.limits.reload_interval = Duration::from_millis(10);
        });
        (certificates, service)
    }
}

/// Connects by TLS until the service shows a certificate that the client trusts.
fn until_trusted(address: SocketAddr, roots: &RootCertStore) -> Client {
    loop {
        if let Some(client) = tls_client(address, roots) {
            return client;
        }
    }
}

#[test]
fn certificate_is_read_again_and_sessions_go_on() {
    let (certificates, service) = Certificates::serve();
    let first = Certificates::roots(&["localhost"]);
    let mut kept = tls_client(service.tcp(), &first).expect("the first certificate");
    kept.hello();
    kept.hold(1, "a");
    certificates.install("renewed");
    let mut later = until_trusted(service.tcp(), &Certificates::roots(&["renewed"]));
    later.hello();
    assert!(!is_free(&mut later, 1, "a"));
    assert!(tls_client(service.tcp(), &first).is_none());
    kept.say(r#"{"end":1}"#);
    kept.settle();
    assert!(is_free(&mut later, 2, "a"));
}

#[test]
fn certificate_is_renewed_again_and_again_under_load() {
    let (certificates, service) = Certificates::serve();
    let (address, both) = (service.tcp(), Certificates::roots(&["localhost", "renewed"]));
    let mut kept = tls_client(address, &both).expect("the first certificate");
    kept.hello();
    kept.hold(1, "kept");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load: Vec<_> = (0..4)
            .map(|number| {
                let (over, both) = (&over, &both);
                scope.spawn(move || {
                    let mut sessions = 0;
                    while !over.load(Ordering::Acquire) {
                        let client = tls_client(address, both);
                        let mut client = client.expect("one of the certificates is shown");
                        client.hello();
                        client.hold(1, &number.to_string());
                        client.say("\"bye\"");
                        sessions += 1;
                    }
                    sessions
                })
            })
            .collect();
        for turn in 0..10 {
            let name = ["renewed", "localhost"][turn % 2];
            certificates.install(name);
            let mut client = until_trusted(address, &Certificates::roots(&[name]));
            client.hello();
            assert!(!is_free(&mut client, 1, "kept"));
            kept.settle();
        }
        over.store(true, Ordering::Release);
        for thread in load {
            assert!(thread.join().expect("no connection fails") > 0);
        }
    });
}

#[test]
fn tls_carries_the_same_protocol() {
    // Made for this test alone: it is for localhost, and no client trusts it.
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/tls");
    let (certificate, key) = (files.join("localhost.cert.pem"), files.join("localhost.key.pem"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let service = Running::with(|config| {
        with_tokens(config);
        config.tls = Some(TlsFiles { certificate, key });
        config.tcp = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
    });
    let address = SocketAddr::from(([127, 0, 0, 1], service.tcp().port()));
    let client = || tls_client(address, &roots).expect("the certificate is trusted");
    let (mut first, mut second) = (client(), client());
    first.hello();
    second.hello();
    first.hold(1, "a");
    second.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    second.settle();
    first.say(r#"{"end":1}"#);
    second.granted(1);
    // A client without TLS is not understood, and disturbs no other one.
    let mut plain = tcp_stream(address);
    std::io::Write::write_all(&mut plain, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _reset = std::io::Read::read_to_end(&mut plain, &mut rest);
    assert!(!rest.starts_with(b"HTTP"));
    second.settle();
}

//! TLS for TCP connections.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use crate::config::TlsFiles;
use crate::config::explain;

/// A certificate that expires within this time is warned about at the start of the service.
const EXPIRES_SOON: Duration = Duration::from_secs(7 * SECONDS_OF_DAY);
/// The year 9999: the last time that a certificate can name.
const FAR_FUTURE: u64 = 253_402_300_800;
const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// Makes the acceptor of TLS connections with this certificate.
pub(crate) fn acceptor(files: &TlsFiles) -> io::Result<TlsAcceptor> {
    let TlsFiles { certificate, key } = files;
    let bad = |path, error: &dyn std::fmt::Display| {
        let error = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        explain(error, "cannot use", path)
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| bad(certificate, &error))?;
    if chain.is_empty() {
        let text = match PrivateKeyDer::from_pem_file(certificate) {
            Ok(_) => "it has a private key and no certificate: name the file of the certificate",
            Err(_) => "it has no certificate in PEM",
        };
        return Err(bad(certificate, &text));
    }
    for one in &chain {
        warn_of_expiry(one, certificate);
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound if CertificateDer::from_pem_file(key).is_ok() => {
            bad(key, &"it has a certificate and no private key: name the file of the key")
        }
        pem::Error::NoItemsFound => bad(key, &"it has no private key in PEM"),
        error => bad(key, &error),
    })?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| bad(certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns when a certificate or one that it depends on expires, in seconds of Unix time.
pub(crate) fn expiry(files: &TlsFiles) -> Option<u64> {
    let chain = CertificateDer::pem_file_iter(&files.certificate).ok()?;
    let far = UnixTime::since_unix_epoch(Duration::from_secs(FAR_FUTURE));
    let ends = chain.filter_map(|one| match validity(&one.ok()?, far)? {
        Validity::Expired { not_after } => Some(not_after),
        Validity::NotYet => None,
    });
    ends.min()
}

/// Warns of a certificate that no client accepts at this time, or soon will not.
fn warn_of_expiry(certificate: &CertificateDer<'_>, file: &Path) {
    let now = UnixTime::now();
    let later = now.as_secs().saturating_add(EXPIRES_SOON.as_secs());
    let file = file.display();
    match validity(certificate, now) {
        Some(Validity::Expired { not_after }) => {
            let days = now.as_secs().saturating_sub(not_after) / SECONDS_OF_DAY;
            tracing::warn!(%file, days, "the certificate has expired, and clients refuse it: renew it, and the service reads it again");
        }
        Some(Validity::NotYet) => {
            tracing::warn!(%file, "the certificate is not valid yet, and clients refuse it: is the clock right?");
        }
        None => {
            let then = UnixTime::since_unix_epoch(Duration::from_secs(later));
            if let Some(Validity::Expired { not_after }) = validity(certificate, then) {
                let days = not_after.saturating_sub(now.as_secs()) / SECONDS_OF_DAY;
                tracing::warn!(%file, days, "the certificate expires soon: renew it, and the service reads it again");
            }
        }
    }
}

/// Why a certificate is not valid at some time.
enum Validity {
    Expired { not_after: u64 },
    NotYet,
}

/// Lets the library's own verifier judge a certificate, which looks at the time before anything
/// else.
fn validity(certificate: &CertificateDer<'_>, at: UnixTime) -> Option<Validity> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).ok()?;
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
    let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    let judged = verifier.ok()?.verify_server_cert(certificate, &[], &name, &[], at);
    match judged {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(Validity::Expired { not_after: not_after.as_secs() })
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { .. })) => {
            Some(Validity::NotYet)
        }
        _ => None,
    }
}

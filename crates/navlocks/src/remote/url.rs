//! Addresses of services.

use std::fmt;
use std::path::PathBuf;

use tokio_tungstenite::tungstenite::http::Uri;

/// The address of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Url {
    /// `unix:/run/user/1000/navlocks/navlocks.sock`
    Unix(PathBuf),
    /// `ws://127.0.0.1:7600` or `wss://locks.example:7600`
    Web { uri: Uri, host: String, port: u16, tls: bool },
}

impl Url {
    /// Returns the host if all messages go to another machine unencrypted.
    pub(crate) fn is_in_clear(&self) -> Option<&str> {
        let Self::Web { host, tls: false, .. } = self else { return None };
        let address = host.parse::<std::net::IpAddr>();
        let here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        (!here).then_some(host)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Web { tls: true, .. })
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(format!("'{text}' has no path: write unix:/path/to/socket"))
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let wrong = || {
            format!(
                "'{text}' is no address of a service: write unix:/path, ws://host:port or wss://host:port"
            )
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return Err(wrong()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let is_host = uri.authority().is_some_and(|authority| authority.as_str().ends_with(host));
        let port = match uri.port_u16() {
            Some(port) => port,
            None if is_host => {
                if tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(wrong()),
        };
        // An IPv6 address stands in brackets in an address, and without them everywhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Web { uri, host, port, tls })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Web { uri, .. } => uri.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood() {
        assert_eq!(Url::parse("unix:/a b").unwrap(), Url::Unix("/a b".into()));
        assert_eq!(Url::parse("unix:///a").unwrap(), Url::Unix("/a".into()));
        let parts = |text| match Url::parse(text).unwrap() {
            Url::Web { host, port, tls, .. } => (host, port, tls),
            Url::Unix(path) => panic!("{path:?}"),
        };
        assert_eq!(parts("ws://127.0.0.1:7600"), ("127.0.0.1".into(), 7600, false));
        assert_eq!(parts("wss://[::1]"), ("::1".into(), 443, true));
    }

    #[test]
    fn another_machine_without_tls_is_unencrypted() {
        let clear = |text| Url::parse(text).unwrap().is_in_clear().map(str::to_owned);
        for text in ["unix:/a", "ws://127.0.0.1:1", "ws://[::1]:1", "ws://localhost:1", "wss://a"] {
            assert_eq!(clear(text), None, "{text}");
        }
        assert_eq!(clear("ws://10.0.0.1:1").as_deref(), Some("10.0.0.1"));
        assert_eq!(clear("ws://locks.example").as_deref(), Some("locks.example"));
    }

    #[test]
    fn malformed_address_is_named_in_the_error() {
        for text in ["", "unix:", "http://a", "ws://", "a", "ws:a", "ws://:7600", "ws://a:b"] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}

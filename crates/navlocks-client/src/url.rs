//! Addresses of services.

use std::fmt;
use std::path::PathBuf;

/// The address of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// `unix:/run/user/1000/navlocks/navlocks.sock`
    Unix(PathBuf),
    /// `ws://127.0.0.1:7400` or `wss://locks.example:7400`
    Web {
        /// The whole address.
        text: String,
        /// The host; an IPv6 address has no brackets.
        host: String,
        /// The port.
        port: u16,
        /// Whether all messages are encrypted.
        tls: bool,
    },
}

impl Url {
    /// Returns the host if all messages go to another machine unencrypted.
    pub fn is_in_clear(&self) -> Option<&str> {
        let Self::Web { host, tls: false, .. } = self else { return None };
        let address = host.parse::<std::net::IpAddr>();
        let here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        (!here).then_some(host)
    }

    /// Returns true if all messages are encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Web { tls: true, .. })
    }

    /// Parses an address.
    ///
    /// # Errors
    ///
    /// The text names the address and its problem.
    pub fn parse(text: &str) -> Result<Self, String> {
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
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let tls = match scheme {
            "ws" => false,
            "wss" => true,
            _ => return Err(wrong()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let authority = authority.to_ascii_lowercase();
        let (host, port) = host_and_port(&authority).ok_or_else(wrong)?;
        if !path.bytes().all(is_in_path) {
            return Err(wrong());
        }
        let root = if path.starts_with('/') { "" } else { "/" };
        let text = format!("{scheme}://{authority}{root}{path}");
        let port = port.unwrap_or(if tls { 443 } else { 80 });
        Ok(Self::Web { text, host: host.to_owned(), port, tls })
    }
}

/// Splits `host:port`. An IPv6 address stands in brackets in an address, and without them
/// everywhere else.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, port)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if host.is_empty() || !host.bytes().all(is_in_name) {
                return None;
            }
            (host, port)
        }
    };
    if port.is_empty() {
        return Some((host, None));
    }
    let digits = port.strip_prefix(':').filter(|port| port.bytes().all(|b| b.is_ascii_digit()))?;
    Some((host, Some(digits.parse().ok()?)))
}

/// Returns true if the path or query of an address may have this byte.
fn is_in_path(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Web { text, .. } => f.write_str(text),
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
        assert_eq!(parts("ws://127.0.0.1:7400"), ("127.0.0.1".into(), 7400, false));
        assert_eq!(parts("wss://[::1]"), ("::1".into(), 443, true));
    }

    #[test]
    fn address_is_shown_with_its_path_and_compared_without_case() {
        let shown = |text| Url::parse(text).unwrap().to_string();
        assert_eq!(shown("wss://Locks.Example:7400"), "wss://locks.example:7400/");
        assert_eq!(shown("ws://a/Locks?to=b#c"), "ws://a/Locks?to=b");
        assert_eq!(shown("ws://[::1]?b"), "ws://[::1]/?b");
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
        for text in ["", "unix:", "http://a", "ws://", "a", "ws:a", "ws://:7400", "ws://a:b"]
            .into_iter()
            .chain(["ws://a:", "ws://a:+1", "ws://a:65536", "ws://a b", "ws://a/b c", "ws://u@a"])
            .chain(["ws://[::1", "ws://[a]", "ws://[::1]a", "WS://a"])
        {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}

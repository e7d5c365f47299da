//! The rules for browsers, which the gateway of a dashboard shares. Loopback is no authentication:
//! a page of a stranger can send requests there, and a name of a stranger can lead there.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

/// Why a browser gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// The reason and the remedy, in a sentence.
    pub sentence: &'static str,
}

/// Checks a request for a page or for numbers.
///
/// A stranger's name that leads to this machine (DNS rebinding) makes a browser believe that the
/// stranger's page and this service are one site. It shows in `Host`. An address in numbers cannot
/// be given another meaning.
///
/// # Errors
///
/// The request is refused.
pub fn admit(headers: &HeaderMap, names: &[String]) -> Result<(), Refusal> {
    let host = single(headers, header::HOST.as_str());
    if !host.is_some_and(|host| is_own(host, names)) {
        return Err(Refusal {
            status: StatusCode::MISDIRECTED_REQUEST,
            sentence: "the service does not have this name: use its address, or serve with --host NAME",
        });
    }
    let from = headers.get_all("sec-fetch-site").into_iter();
    let is_own_site = |value: &HeaderValue| value == "same-origin" || value == "none";
    if !from.into_iter().all(is_own_site) {
        return Err(Refusal {
            status: StatusCode::FORBIDDEN,
            sentence: "another site asked for this: type the address into the browser",
        });
    }
    Ok(())
}

/// Returns true if a handshake comes from a page of this service, or from no page at all.
pub fn is_same_origin(headers: &HeaderMap, names: &[String], tls: bool) -> bool {
    if !headers.contains_key(header::ORIGIN) {
        return true;
    }
    let (Some(origin), Some(host)) = (single(headers, "origin"), single(headers, "host")) else {
        return false;
    };
    let scheme = if tls { "https://" } else { "http://" };
    is_own(host, names)
        && origin.strip_prefix(scheme).is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}

/// Answers a WebSocket handshake with its subprotocol, and with what proves that it was understood.
pub fn switch_protocols(accept: &str, subprotocol: &'static str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    answer
}

/// Returns the value of a header that is there once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut lines = headers.get_all(name).into_iter();
    let line = lines.next()?.to_str().ok()?;
    lines.next().is_none().then_some(line)
}

fn is_own(host: &str, names: &[String]) -> bool {
    // The port says nothing: it may be forwarded.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<std::net::IpAddr>().is_ok()
        || name == "localhost"
        || names.iter().any(|own| own.eq_ignore_ascii_case(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_own_names_and_addresses_are_answered() {
        let names = ["Locks.Example".to_owned()];
        for host in ["127.0.0.1:7400", "[::1]:7400", "localhost:1", "locks.example", "192.0.2.7"] {
            assert_eq!(admit(&headers(&[("host", host)]), &names), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7400", "127.0.0.1.evil.example", ""] {
            let refused = admit(&headers(&[("host", host)]), &names).map_err(|it| it.status);
            assert_eq!(refused, Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
        assert!(admit(&headers(&[]), &names).is_err());
        assert!(
            admit(&headers(&[("host", "localhost"), ("host", "evil.example")]), &names).is_err()
        );
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        for (from, allowed) in
            [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false)]
        {
            let headers = headers(&[("host", "localhost"), ("sec-fetch-site", from)]);
            assert_eq!(admit(&headers, &[]).is_ok(), allowed, "{from}");
        }
    }

    #[test]
    fn handshake_of_another_origin_is_refused() {
        let same = |origin, host| {
            is_same_origin(&headers(&[("origin", origin), ("host", host)]), &[], false)
        };
        assert!(same("http://127.0.0.1:7400", "127.0.0.1:7400"));
        assert!(!same("https://127.0.0.1:7400", "127.0.0.1:7400"));
        assert!(!same("http://127.0.0.1:7401", "127.0.0.1:7400"));
        assert!(!same("http://evil.example", "evil.example"));
        assert!(!same("null", "127.0.0.1:7400"));
        assert!(is_same_origin(&headers(&[("host", "x")]), &[], false), "a program has no origin");
    }
}

//! Web origins: which pages may come in. A page cannot choose what its browser says here.

use hyper::header::{self, HeaderMap};
use navlocks_wire::{Fault, FaultCode};

/// The origin of whoever sent these headers; empty for programs, which have none.
pub(crate) fn origin(headers: &HeaderMap, allowed: &[String]) -> Result<String, Fault> {
    let refused = |text: String| Err(Fault::new(FaultCode::ForbiddenOrigin, text));
    let mut lines = headers.get_all(header::ORIGIN).into_iter();
    let Some(line) = lines.next() else { return Ok(String::new()) };
    let origin = match line.to_str() {
        Ok(origin) if lines.next().is_none() => normal(origin),
        _ => return refused("the origin cannot be read".to_owned()),
    };
    if origin == "null" {
        let text = "a page with an opaque origin has no locks: serve it from a real one";
        return refused(text.to_owned());
    }
    if !allowed.iter().any(|known| normal(known) == origin) {
        return refused(format!(
            "pages of {origin} may not use this service: allow them with --allow-origin {origin}"
        ));
    }
    Ok(origin)
}

/// Scheme and host do not care for case, and a slash at the end says nothing.
fn normal(origin: &str) -> String {
    origin.trim().trim_end_matches('/').to_ascii_lowercase()
}

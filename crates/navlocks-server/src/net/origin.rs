//! The web origin of a connection. A page cannot choose what its browser says here.

use hyper::header::{self, HeaderMap};
use navlocks_wire::{Fault, FaultCode};

use crate::config::{Origins, normal_origin};

/// Returns the origin that the service takes the sender of these headers for; empty for programs,
/// which have none.
pub(crate) fn origin(headers: &HeaderMap, origins: &Origins) -> Result<String, Fault> {
    let refused = |text: String| Err(Fault::new(FaultCode::ForbiddenOrigin, text));
    let mut lines = headers.get_all(header::ORIGIN).into_iter();
    let Some(line) = lines.next() else { return Ok(String::new()) };
    let origin = match line.to_str() {
        Ok(origin) if lines.next().is_none() => normal_origin(origin),
        _ => return refused("the origin cannot be read".to_owned()),
    };
    if origin == "null" {
        let text = "a page with an opaque origin has no locks: serve it from a real one";
        return refused(text.to_owned());
    }
    match origins.space(&origin) {
        Some(space) => Ok(space.to_owned()),
        None => refused(format!(
            "pages of {origin} may not use this service: allow them with --allow-origin {origin}"
        )),
    }
}

//! The files of the page. They are HTML, CSS and modules as a browser runs them.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// A file of the page.
pub(crate) struct File {
    kind: &'static str,
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The page may load its own files and talk to its own service, and nothing else; no other page may
/// frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

macro_rules! files {
    ($($path:literal $kind:ident $file:literal,)+) => {
        &[$(($path, File { kind: $kind, text: include_str!(concat!("page/", $file)) }),)+]
    };
}

const FILES: &[(&str, File)] = files! {
    "/" HTML "index.html",
    "/dashboard/style.css" CSS "style.css",
    "/dashboard/icon.svg" SVG "icon.svg",
    "/dashboard/app.js" SCRIPT "app.js",
    "/dashboard/link.js" SCRIPT "link.js",
    "/dashboard/dom.js" SCRIPT "dom.js",
    "/dashboard/format.js" SCRIPT "format.js",
    "/dashboard/parts.js" SCRIPT "parts.js",
    "/dashboard/overview.js" SCRIPT "overview.js",
    "/dashboard/queue.js" SCRIPT "queue.js",
    "/dashboard/tree.js" SCRIPT "tree.js",
    "/dashboard/deadlocks.js" SCRIPT "deadlocks.js",
    "/dashboard/time.js" SCRIPT "time.js",
    "/dashboard/clients.js" SCRIPT "clients.js",
    "/dashboard/events.js" SCRIPT "events.js",
    "/dashboard/acting.js" SCRIPT "acting.js",
};

/// Returns the file at a path.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, file)| file)
}

impl File {
    /// Sets the headers under which a browser gets it.
    pub(crate) fn dress(&self, headers: &mut HeaderMap) {
        let all: [(HeaderName, &'static str); 9] = [
            (header::CONTENT_TYPE, self.kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("permissions-policy"), "interest-cohort=()"),
        ];
        for (name, value) in all {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served_and_names_no_other_host() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/dashboard/page");
        let count = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(count, FILES.len());
        for (path, file) in FILES {
            let namespaces = file.text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(file.text.matches("://").count(), namespaces, "{path} names a host");
        }
    }
}

//! The files of the page. They are HTML, CSS and modules as a browser runs them.

use navlocks_server::inspect::Page;

const HTML: &[(&str, &str)] = &headers("text/html; charset=utf-8");
const CSS: &[(&str, &str)] = &headers("text/css; charset=utf-8");
const SCRIPT: &[(&str, &str)] = &headers("text/javascript; charset=utf-8");
const SVG: &[(&str, &str)] = &headers("image/svg+xml");

/// The page may load its own files and talk to its own service, and nothing else; no other page may
/// frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Returns the headers under which a browser gets a file.
const fn headers(kind: &'static str) -> [(&'static str, &'static str); 9] {
    [
        ("content-type", kind),
        ("content-security-policy", POLICY),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "interest-cohort=()"),
    ]
}

macro_rules! files {
    ($($path:literal $kind:ident $file:literal,)+) => {
        &[$(($path, Page { headers: $kind, text: include_str!(concat!("page/", $file)) }),)+]
    };
}

const FILES: &[(&str, Page)] = files! {
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
pub(crate) fn page(path: &str) -> Option<Page> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, page)| *page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served_and_names_no_other_host() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");
        let count = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(count, FILES.len());
        for (path, file) in FILES {
            // A namespace is no address, and its own host is no other one.
            let harmless = ["http://www.w3.org/2000/svg", "://${location.host}"];
            let known: usize = harmless.iter().map(|text| file.text.matches(text).count()).sum();
            assert_eq!(file.text.matches("://").count(), known, "{path} names a host");
        }
    }
}

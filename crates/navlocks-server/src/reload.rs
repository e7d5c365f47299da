//! Tokens, origins and certificates that change while the service runs. Sessions go on, except
//! those of a token that is gone.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use crate::config::{Config, Origins};
use crate::connection::Shared;
use crate::hub::Metrics;
use crate::net;

/// The identity of a version of a file: it changes when the file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

/// A file, as it was when it was last read.
struct Watched {
    path: PathBuf,
    stamp: Option<Stamp>,
}

impl Watched {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), stamp: stamp(path) }
    }

    /// Returns true if the file is another one since it was last asked.
    fn has_changed(&mut self) -> bool {
        let now = stamp(&self.path);
        now.is_some() && std::mem::replace(&mut self.stamp, now) != now
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let of = |found: Metadata| Stamp {
        inode: found.ino(),
        bytes: found.size(),
        written: (found.mtime(), found.mtime_nsec()),
    };
    std::fs::metadata(path).ok().map(of)
}

/// Looks at the files from time to time, and reads those that have changed, or all when it is told
/// to. A file that cannot be used is logged, and the service goes on with the last good one.
pub(crate) async fn watch(shared: Rc<Shared>) {
    let mut tokens: Vec<Watched> =
        shared.access.borrow().files().into_iter().map(Watched::new).collect();
    let files = shared.config.tls.as_ref();
    let mut tls: Vec<Watched> = files
        .iter()
        .flat_map(|files| [&files.certificate, &files.key])
        .map(|path| Watched::new(path))
        .collect();
    let mut origins: Vec<Watched> =
        shared.config.origins_file.iter().map(|path| Watched::new(path)).collect();
    let has_files = !tokens.is_empty() || !tls.is_empty() || !origins.is_empty();
    loop {
        let told = tokio::select! {
            () = shared.reload.notified() => true,
            () = tokio::time::sleep(shared.config.limits.reload_interval), if has_files => false,
        };
        if !has_files {
            tracing::info!("there is no file of tokens, origins or a certificate to read again");
        }
        // All are asked, so that a pair that changed together is read once.
        let is_due = |files: &mut [Watched]| {
            let changed = files.iter_mut().filter_map(|it| it.has_changed().then_some(())).count();
            changed > 0 || told && !files.is_empty()
        };
        if is_due(&mut tokens) {
            read_tokens(&shared);
        }
        if is_due(&mut tls) {
            read_certificate(&shared);
        }
        if is_due(&mut origins) {
            read_origins(&shared);
        }
    }
}

fn read_tokens(shared: &Shared) {
    let read = shared.access.borrow_mut().read_again();
    match read {
        Ok(()) => {
            let access = shared.access.borrow();
            for hub in shared.hubs.all() {
                hub.borrow_mut().end_unknown(&access, Instant::now());
            }
            tracing::info!("the tokens were read again");
        }
        Err(error) => tracing::error!(%error, "the tokens stay as they were"),
    }
}

/// Pages that are connected stay, because their origin was allowed when they came in.
fn read_origins(shared: &Shared) {
    match Origins::new(&shared.config) {
        Ok(origins) => {
            *shared.origins.borrow_mut() = origins;
            tracing::info!("the origins were read again");
        }
        Err(error) => tracing::error!(%error, "the origins stay as they were"),
    }
}

/// Notes in the metrics when the certificate expires.
pub(crate) fn note_expiry(config: &Config, metrics: &Metrics) {
    if let Some(expiry) = config.tls.as_ref().and_then(net::certificate_expiry) {
        metrics.set_certificate_expiry(expiry);
    }
}

fn read_certificate(shared: &Shared) {
    match shared.config.tls.as_ref().map(net::tls_acceptor).transpose() {
        Ok(tls) => {
            *shared.tls.borrow_mut() = tls;
            note_expiry(&shared.config, shared.metrics());
            tracing::info!("the certificate was read again");
        }
        Err(error) => tracing::error!(%error, "the certificate stays as it was"),
    }
}
